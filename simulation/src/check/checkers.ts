import type { Checker, History, Violation } from "../history.ts";
import { acknowledged } from "./acknowledged.ts";
import { attempts } from "./attempts.ts";
import { audited } from "./audited.ts";
import { backfilled } from "./backfilled.ts";
import { claimedOrReclaimed } from "./claimed-or-reclaimed.ts";
import { counters } from "./counters.ts";
import { fencesRise } from "./fences-rise.ts";
import { followedOnce } from "./followed-once.ts";
import { handlersTold } from "./handlers-told.ts";
import { limitsHeld } from "./limits-held.ts";
import { lostWorkers } from "./lost-workers.ts";
import { notEarly } from "./not-early.ts";
import { oneRunASlot } from "./one-run-a-slot.ts";
import { operationsKept } from "./operations-kept.ts";
import { placesGiven } from "./places-given.ts";
import { quiet } from "./quiet.ts";
import { recovered } from "./recovered.ts";
import { slotsAccounted } from "./slots-accounted.ts";
import { startLag } from "./start-lag.ts";
import { stopped } from "./stopped.ts";
import { timeouts } from "./timeouts.ts";
import { trustKept } from "./trust-kept.ts";
import { verdictsFenced } from "./verdicts-fenced.ts";

/** All checkers. The order matters: a checker that names a fault directly comes before one that finds only a consequence. */
export const checkers: readonly Checker[] = [
  oneRunASlot,
  fencesRise,
  trustKept,
  claimedOrReclaimed,
  verdictsFenced,
  limitsHeld,
  notEarly,
  stopped,
  lostWorkers,
  attempts,
  handlersTold,
  timeouts,
  slotsAccounted,
  acknowledged,
  followedOnce,
  operationsKept,
  backfilled,
  audited,
  counters,
  startLag,
  placesGiven,
  recovered,
  quiet,
];

/** Returns the first violation that a checker finds. @param more additional checkers that apply only to histories of this kind */
export function firstViolation(history: History, more: readonly Checker[] = []): Violation | undefined {
  for (const { invariant, check } of [...checkers, ...more]) {
    const violation = check(history);
    if (violation) return { ...violation, invariant };
  }
  return undefined;
}
