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
