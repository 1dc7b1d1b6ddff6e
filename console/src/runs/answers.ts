import type { Answer } from "../api/call.ts";

/** A run as the API returns it for its own screen. */
export type Run = Answer<"getRun">;
/** A run as the API returns it in a list. */
export type ListedRun = Answer<"listRuns">["items"][number];
