import type { Violation } from "../../history.ts";
import type { Seen } from "../seen.ts";
import { calendars } from "./calendars.ts";
import { cancelled, endsAsTried, letters, lostWorkers, pausesBetweenTries, quiet, tallies, timeouts } from "./ends.ts";
import { follows, joins, parts } from "./flow.ts";
import { againAlike, followsItsKey, oneLiveRunOfAKey, replacedByItsKey } from "./keys.ts";
import { bounds, notEarly, overlaps, paused, priorities, prompt, rates } from "./places.ts";
import type { Rule } from "./rule.ts";
import { delays, misfires, slotsAccounted, slotsDue, slotsInPauses } from "./slots.ts";

export const rules: readonly Rule[] = [
  oneLiveRunOfAKey,
  againAlike,
  followsItsKey,
  replacedByItsKey,
  endsAsTried,
  lostWorkers,
  pausesBetweenTries,
  cancelled,
  timeouts,
  bounds,
  rates,
  paused,
  notEarly,
  overlaps,
  priorities,
  slotsInPauses,
  slotsAccounted,
  slotsDue,
  calendars,
  delays,
  misfires,
  follows,
  joins,
  parts,
  letters,
  tallies,
  prompt,
  quiet,
];

/** Returns the violation of the first broken rule; undefined if none is broken. @param only the only rule to check; undefined: all */
export function firstBroken(seen: Seen, only?: string): Violation | undefined {
  for (const { name, check } of rules) {
    if (only !== undefined && name !== only) continue;
    const what = check(seen);
    if (what !== undefined) return { invariant: name, what, atMs: seen.endMs };
  }
  return undefined;
}
