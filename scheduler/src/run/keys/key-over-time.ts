import { type Duration, parseDuration } from "../../base/duration.ts";
import { CarillonError } from "../../base/errors.ts";

/** The enqueue options that define what a key means over time. */
export interface KeyOverTime {
  /** For this long from now, another enqueue of the key with this option returns this run, even if the run has ended. */
  uniqueFor?: Duration;
  /**
   * With `ifKeyTaken: "replace"` or "again": however often the run is replaced, it is due no later than this long after the first enqueue
   * that it stands for.
   */
  maxWait?: Duration;
}

interface Given extends KeyOverTime {
  key?: string | undefined;
  ifKeyTaken?: string | undefined;
}

/** The parts of a write that these options produce. */
export interface KeyWrite {
  uniqueForMs?: number;
  maxWaitMs?: number;
}

/** @throws OPTION_INVALID, DURATION_INVALID */
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

/** Whether a write needs a transaction of its own. */
export const isAlone = ({ replaces, uniqueForMs }: { replaces?: boolean; uniqueForMs?: number }): boolean =>
  replaces === true || uniqueForMs !== undefined;
