import type { Schedule } from "./schedule.ts";

/** The same slots, judged otherwise. */
export const judgedSchedule = (base: Schedule, judge: NonNullable<Schedule["judge"]>): Schedule => ({
  next: (afterMs) => base.next(afterMs),
  previous: (beforeMs) => base.previous(beforeMs),
  words: () => base.words(),
  judge,
});
