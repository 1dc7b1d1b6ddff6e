import type { Answer } from "../../api/call.ts";

export type LogLine = Answer<"listLogs">["items"][number];

/** The least severe comes first. */
export const levels = ["debug", "info", "warn", "error"] as const;
export type Level = (typeof levels)[number];

/** The filter of a log: lines of at least the level `least`, and of one attempt (undefined: of all attempts). */
export interface Only {
  least: Level;
  attempt: number | undefined;
}

/** Converts the filter into query parameters; "debug" is the lowest level and needs no parameter. */
export const askedOf = ({ least, attempt }: Only): { level?: Level; attempt?: number } => ({
  ...(least === "debug" ? {} : { level: least }),
  ...(attempt === undefined ? {} : { attempt }),
});

export const isShown = (line: LogLine, { least, attempt }: Only): boolean =>
  levels.indexOf(line.level) >= levels.indexOf(least) && (attempt === undefined || line.attempt === attempt);
