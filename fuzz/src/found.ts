/** The report of a bug: what failed, the input, and the command that feeds this input again. */
import fc from "fast-check";
import type { Target } from "./target.ts";

export interface Found {
  readonly target: string;
  readonly what: string;
  readonly input: string;
  /** The command that feeds the input again. */
  readonly command: string;
}

/** Creates the report of a bug. @param how command-line options that feed the input again */
export const told = (target: Pick<Target, "name">, what: string, input: string, how: string): Found => ({
  target: target.name,
  what,
  input,
  command: `npm run prove -- fuzz ${target.name} ${how}`,
});

export const stackOf = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error);

const shownLength = 4_000;

/**
 * Returns the input as JavaScript source that can be pasted into a test; cut if it is long, and replaced by a short text if it is nested
 * too deeply.
 */
export function shown(input: unknown): string {
  let text: string;
  try {
    text = fc.stringify(input);
  } catch (error) {
    // The input is nested too deeply to be printed; the command still reproduces it.
    if (!(error instanceof RangeError)) throw error;
    text = "something deep";
  }
  return text.length <= shownLength ? text : `${text.slice(0, shownLength)}… (${text.length} characters)`;
}
