import type { Answer } from "../../api/call.ts";

export type LogLine = Answer<"listLogs">["items"][number];

/** The least severe comes first. */
export const levels = ["debug", "info", "warn", "error"] as const;
export type Level = (typeof levels)[number];
