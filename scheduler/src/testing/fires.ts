import { CarillonError } from "../errors.ts";
import { compileSchedule, manual, type ScheduleSpec } from "../schedule.ts";

const mostFires = 100_000;

/**
 * When a schedule fires from `from` on and before `to`: worked out, not run. A cron follows its zone through changes of
 * clocks; jitter, misfires and overlap are a run's business, and not in it.
 * @param of a schedule, or whatever has one, such as a task's options or its definition
 * @throws SCHEDULE_INVALID for a fixed delay, whose slots depend on its runs; OPTION_INVALID for more than 100,000 fires
 */
export function firesBetween(
  of: ScheduleSpec | { schedule?: ScheduleSpec },
  from: Date | string | number,
  to: Date | string | number,
): Date[] {
  const spec = "type" in of ? of : (of.schedule ?? manual);
  if (spec.type === "every" && spec.mode === "delay") {
    throw new CarillonError("SCHEDULE_INVALID", "when a fixed delay fires depends on when its runs end", {
      hint: "Let a test tower run it: `tower.advance` returns what ended.",
    });
  }
  const [fromMs, toMs] = [timeOf(from), timeOf(to)];
  const schedule = compileSchedule(spec);
  const fires: Date[] = [];
  for (let next = schedule.next(fromMs - 1); next !== null && next < toMs; next = schedule.next(next)) {
    if (fires.length === mostFires)
      throw new CarillonError("OPTION_INVALID", `it fires more than ${mostFires} times between the two`, {
        hint: "Ask for a shorter time.",
      });
    fires.push(new Date(next));
  }
  return fires;
}

/** @throws OPTION_INVALID */
export function timeOf(given: Date | string | number): number {
  const ms = typeof given === "number" ? given : new Date(given).getTime();
  if (Number.isFinite(ms)) return ms;
  throw new CarillonError("OPTION_INVALID", `${JSON.stringify(given)} is no time`, {
    hint: 'Give a Date, epoch milliseconds, or a text with its offset such as "2030-03-01T00:00:00Z".',
  });
}
