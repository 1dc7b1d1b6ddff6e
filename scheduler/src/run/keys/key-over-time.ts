import { type Duration, parseDuration } from "../../base/duration.ts";
import { CarillonError } from "../../base/errors.ts";

/** Enqueue options that let a key have an effect over a period of time. */
export interface KeyOverTime {
  /** For this time from now, another enqueue with the same key and this option returns this run, even if the run has ended. */
  uniqueFor?: Duration;
  /**
   * With `ifKeyTaken: "replace"` or "again": a limit to repeated replacement. The run is due no later than this time after the
   * first enqueue in a series in which each enqueue replaced the previous one's run.
   */
  maxWait?: Duration;
}

interface Given extends KeyOverTime {
  key?: string | undefined;
  ifKeyTaken?: string | undefined;
}

/** The fields that these options add to an enqueue write. */
export interface KeyWrite {
  uniqueForMs?: number;
  maxWaitMs?: number;
}

/** Validates these options and converts them to fields of an enqueue write. @throws OPTION_INVALID, DURATION_INVALID */
export function keyOverTime({ uniqueFor, maxWait, key, ifKeyTaken }: Given): KeyWrite {
  const replaces = ifKeyTaken === "replace" || ifKeyTaken === "again";
  if (uniqueFor !== undefined && key === undefined) throw wrong("uniqueFor", "needs a key", "Give `key` too.");
  if (uniqueFor !== undefined && replaces)
    throw wrong(
      "uniqueFor",
      `cannot be combined with ifKeyTaken: "${ifKeyTaken}"`,
      "The first run stands; leave one out.",
    );
  if (maxWait !== undefined && !replaces)
    throw wrong(
      "maxWait",
      'needs ifKeyTaken: "replace" or "again"',
      "Only a run that is replaced could wait on and on.",
    );
  return {
    ...(uniqueFor === undefined ? {} : { uniqueForMs: parseDuration(uniqueFor, "uniqueFor", 1) }),
    ...(maxWait === undefined ? {} : { maxWaitMs: parseDuration(maxWait, "maxWait", 0) }),
  };
}

const wrong = (path: string, what: string, hint: string) =>
  new CarillonError("OPTION_INVALID", `${path} ${what}`, { hint, path });

/** True if a write must be enqueued in a transaction of its own. */
export const isAlone = ({ replaces, uniqueForMs }: { replaces?: boolean; uniqueForMs?: number }): boolean =>
  replaces === true || uniqueForMs !== undefined;
