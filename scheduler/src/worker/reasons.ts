import { CarillonError } from "../base/errors.ts";

/** Why a handler is told to stop. */
export const tookTooLong = (ms: number) => new CarillonError("TIMEOUT", `the attempt took longer than ${ms} ms`);
export const shutsDown = () => new CarillonError("STOPPED", "the worker is shutting down");
export const sessionLost = (words: string) => new CarillonError("SESSION_LOST", words);
/** Why its claim ends though it has not returned. */
export const ignoredAbort = () => new CarillonError("TIMEOUT", "the handler did not stop when it was told to");
