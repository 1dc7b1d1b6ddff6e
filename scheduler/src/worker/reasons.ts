import { CarillonError } from "../base/errors.ts";

/** Reasons with which a handler is aborted. */
export const tookTooLong = (ms: number) => new CarillonError("TIMEOUT", `the attempt took longer than ${ms} ms`);
export const shutsDown = () => new CarillonError("STOPPED", "the worker is shutting down");
export const sessionLost = (words: string) => new CarillonError("SESSION_LOST", words);
/** The error with which a claim ends if its handler ignored the abort signal and has not returned. */
export const ignoredAbort = () => new CarillonError("TIMEOUT", "the handler did not stop when it was told to");
