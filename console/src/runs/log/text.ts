import { bare } from "./ansi.ts";
import type { LogLine } from "./levels.ts";

export const fieldsText = (fields: unknown): string =>
  typeof fields === "object" && fields !== null
    ? Object.entries(fields)
        .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
        .join(" ")
    : "";

/** The text of a line that is searched. */
export const textOf = (line: LogLine) => `${bare(line.message)} ${fieldsText(line.fields)}`;

/** Formats one line of a downloaded log: time in UTC, level, attempt, message, fields. */
export function lineText({ at, level, attempt, message, fields }: LogLine): string {
  const more = fieldsText(fields);
  return `${at} ${level.toUpperCase().padEnd(5)} #${attempt} ${bare(message)}${more === "" ? "" : ` ${more}`}\n`;
}
