import type { Answer } from "../../api/call.ts";

export type LogLine = Answer<"listLogs">["items"][number];

/** The least severe comes first. */
export const levels = ["debug", "info", "warn", "error"] as const;
export type Level = (typeof levels)[number];

/** The lines that are shown: those of a least level, and of one attempt or (undefined) of all. */
export interface Only {
  least: Level;
  attempt: number | undefined;
}

/** The choice in the form of a request. */
export const askedOf = ({ least, attempt }: Only): { level?: Level; attempt?: number } => ({
  ...(least === "debug" ? {} : { level: least }),
  ...(attempt === undefined ? {} : { attempt }),
});

export const isShown = (line: LogLine, { least, attempt }: Only): boolean =>
  levels.indexOf(line.level) >= levels.indexOf(least) && (attempt === undefined || line.attempt === attempt);
