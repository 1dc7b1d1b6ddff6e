import type { Answer } from "../api/call.ts";

/** A run as its own screen reads it. */
export type Run = Answer<"getRun">;
/** A run as a list has it. */
export type ListedRun = Answer<"listRuns">["items"][number];
