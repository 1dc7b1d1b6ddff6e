import type { Answer } from "../api/call.ts";

/** A task as its own screen reads it. */
export type Task = Answer<"getTask">;
