import type { Schedule } from "./schedule.ts";

/** The same slots with another `judge`. */
export const judgedSchedule = (base: Schedule, judge: NonNullable<Schedule["judge"]>): Schedule => ({
  next: (afterMs) => base.next(afterMs),
  previous: (beforeMs) => base.previous(beforeMs),
  words: () => base.words(),
  judge,
  ...(base.nominalTimes ? { nominalTimes: (slotMs: number) => base.nominalTimes?.(slotMs) as number[] } : {}),
});

/**
 * The same slots, without those whose nominal times are all in the ledger already: these ran, were skipped or were missed before an edit
 * moved them to their present slots.
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
