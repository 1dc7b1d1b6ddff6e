import type { Schedule } from "./schedule.ts";

/** Returns a schedule with the same slots and another method `judge`. */
export const judgedSchedule = (base: Schedule, judge: NonNullable<Schedule["judge"]>): Schedule => ({
  next: (afterMs) => base.next(afterMs),
  previous: (beforeMs) => base.previous(beforeMs),
  words: () => base.words(),
  judge,
  ...(base.nominalTimes ? { nominalTimes: (slotMs: number) => base.nominalTimes?.(slotMs) as number[] } : {}),
});

/**
 * Returns the schedule without the slots whose nominal times (the times before a calendar moves them) are all in the ledger, the store's
 * record of past slots. These slots ran, were skipped or were missed before an edit moved them.
 */
export function withoutAccounted(base: Schedule, accountedMs: readonly number[]): Schedule {
  const accounted = new Set(accountedMs);
  const nominalTimes = (slotMs: number) =>
    (base.nominalTimes?.(slotMs) ?? [slotMs]).filter((nominalMs) => !accounted.has(nominalMs));
  const open = (step: (fromMs: number) => number | null) => (fromMs: number) => {
    let slot = step(fromMs);
    while (slot !== null && nominalTimes(slot).length === 0) slot = step(slot);
    return slot;
  };
  return {
    next: open((afterMs) => base.next(afterMs)),
    previous: open((beforeMs) => base.previous(beforeMs)),
    words: () => base.words(),
    ...(base.judge ? { judge: (slotMs: number, dueMs: number) => base.judge?.(slotMs, dueMs) } : {}),
    nominalTimes,
  };
}
