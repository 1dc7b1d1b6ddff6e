/** The report of a bug: the failure, its input, and the command that feeds it again. */
import fc from "fast-check";
import type { Target } from "./target.ts";

export interface Found {
  readonly target: string;
  readonly what: string;
  readonly input: string;
  /** The command that replays it. */
  readonly command: string;
}

/** @param how the command-line options that reproduce the input */
export const told = (target: Pick<Target, "name">, what: string, input: string, how: string): Found => ({
  target: target.name,
  what,
  input,
  command: `npm run prove -- fuzz ${target.name} ${how}`,
});

export const stackOf = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error);

const shownLength = 4_000;

/** In a form that can be pasted into a test. */
export function shown(input: unknown): string {
  let text: string;
  try {
    text = fc.stringify(input);
  } catch (error) {
    // The input is nested too deeply to be shown; the command reproduces it.
    if (!(error instanceof RangeError)) throw error;
    text = "something deep";
  }
  return text.length <= shownLength ? text : `${text.slice(0, shownLength)}… (${text.length} characters)`;
}
