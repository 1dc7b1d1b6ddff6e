import { readFileSync } from "node:fs";

/**
 * Returns the lines of a file that other processes append to, without the text after the last newline. A reader can see part of a line that
 * is being written, even if one call writes the line, and a killed process may leave part of a line.
 */
export const wholeLines = (path: string): string[] => readFileSync(path, "utf8").split("\n").slice(0, -1);
