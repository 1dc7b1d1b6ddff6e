import type { Answer } from "../api/call.ts";

/** A task as the API returns it for its own screen. */
export type Task = Answer<"getTask">;
