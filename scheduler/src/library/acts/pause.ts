import type { Change, Why } from "../../base/change.ts";
import { CarillonError } from "../../base/errors.ts";
import { shownValue } from "../../base/json.ts";
import { at } from "../../schedule/schedule.ts";
import type { PauseChange } from "../../task/task-store.ts";

export interface PauseOptions extends Why {
  /** When the task is resumed automatically: a Date, epoch milliseconds, or a text with an offset or `Z`. Default: only by `resume`. */
  until?: Date | number | string;
}

export interface PauseResult {
  /** Ids of runs that had already started before they could be held back; these runs continue. */
  started: number[];
  /** The number of waiting runs that are held back until the task is resumed. */
  held: number;
  /** The number of due slots that are skipped because of the pause. */
  skipped: number;
}

/** Adds the end of the pause to a change. @throws OPTION_INVALID if `until` is not a time */
export function pauseChange(change: Change, until: PauseOptions["until"]): PauseChange {
  if (until === undefined) return change;
  try {
    const spec = at(until);
    return { ...change, untilMs: spec.type === "at" ? spec.atMs : null };
  } catch (cause) {
    throw new CarillonError("OPTION_INVALID", `until cannot be ${shownValue(until)}`, {
      path: "until",
      hint: 'Give a Date, epoch milliseconds, or a text such as "2027-03-27T06:00:00Z".',
      cause,
    });
  }
}
