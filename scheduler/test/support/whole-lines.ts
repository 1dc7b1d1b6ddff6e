import { readFileSync } from "node:fs";

/**
 * The lines of a file that other processes append to, without what follows the last newline: a reader can see part of a line that
 * is being written, even if it is written by one call, and a killed process may leave part of a line behind.
 */
export const wholeLines = (path: string): string[] => readFileSync(path, "utf8").split("\n").slice(0, -1);
