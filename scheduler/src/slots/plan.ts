import { compileSchedule, dueOf, type Schedule, type ScheduleSpec } from "../schedule/schedule.ts";
import type { TaskDefinition } from "../task/task.ts";

/** A slot to store: its nominal time, and when its run is due (later because of jitter or a catch-up rate). */
export interface PlannedSlot {
  slotMs: number;
  dueMs: number;
  /** The times of the task's own schedule that this slot covers; absent if the slot covers only its own time. */
  nominalMs?: number[];
  /** The reason why the slot is recorded as skipped (its calendar or a blackout); absent if it runs. */
  skipped?: string;
  /** The reason why the slot runs at another time; absent if its time is unchanged. */
  note?: string;
}

/**
 * A range of slots that are recorded as missed; both ends are included. The range together with the task's version determines the slots:
 * the times of the task's own schedule in the range, before its calendar changes them. Only the newest `countLimit` missed slots are
 * counted; for the range before them, `count` is null.
 */
export interface MissedRange {
  fromMs: number;
  toMs: number;
  count: number | null;
  reason: string;
  /** "skipped" if the task's calendar or blackouts skipped the slots in the range; absent if the slots were missed. */
  outcome?: "skipped";
}

export interface PlanStep {
  slots: PlannedSlot[];
  missed: MissedRange[];
  /** The first slot that this step does not handle; null if there is none, or if it is known only after a run has ended. */
  nextSlotMs: number | null;
}

/** The input of a planning step: it handles the slots from `nextSlotMs` to `untilMs`, at the time `nowMs`. */
export interface PlanSpan {
  nextSlotMs: number;
  nowMs: number;
  untilMs: number;
}

/** A step plans no further slots for a task once it has this many, and the next step continues. A catch-up may exceed it. */
export const slotsPerStep = 1_000;
const countLimit = 10_000;
/** The reason recorded for a missed slot that would have run under the misfire policy but is older than the policy's `within`. */
export const tooLateReason = "misfire: later than within";

/**
 * Decides what happens to a task's slots from `nextSlotMs` to `untilMs`. It is a pure function, so that the leader, a catch-up planner and
 * a simulation get the same result. If the next slot is overdue by more than the misfire policy's `afterMs`, the policy decides about the
 * overdue slots; all other slots are planned. A fixed delay has no missed slots.
 */
export function planTask(
  definition: TaskDefinition,
  schedule: Schedule,
  seed: number,
  { nextSlotMs, nowMs, untilMs }: PlanSpan,
): PlanStep {
  const step: PlanStep = { slots: [], missed: [], nextSlotMs };
  if (definition.schedule.type === "every" && definition.schedule.mode === "delay") {
    if (nextSlotMs > untilMs) return step;
    // A fixed delay has exactly one slot, which exists because the last run ended. It can be late, but never missed.
    const slot = planned(nextSlotMs);
    // If the slot is skipped, it has no run whose end determines the next slot, so the next slot is a period after the skipped one.
    return { slots: [slot], missed: [], nextSlotMs: slot.skipped === undefined ? null : schedule.next(nextSlotMs) };
  }
  let cursor: number | null = nextSlotMs;
  const lateBefore = nowMs - definition.misfire.afterMs;
  if (nextSlotMs < lateBefore) cursor = catchUp(nextSlotMs);
  while (cursor !== null && cursor <= untilMs && step.slots.length < slotsPerStep) {
    step.slots.push(planned(cursor));
    cursor = schedule.next(cursor);
  }
  step.nextSlotMs = cursor;
  return step;

  function planned(slotMs: number, dueMs = dueOf(definition.schedule, seed, slotMs)): PlannedSlot {
    const { untilMs: _, ...judged } = schedule.judge?.(slotMs, dueMs) ?? { dueMs };
    const nominalMs = schedule.nominalTimes?.(slotMs);
    if (nominalMs === undefined || (nominalMs.length === 1 && nominalMs[0] === slotMs)) return { slotMs, ...judged };
    return { slotMs, ...judged, nominalMs };
  }

  /** Applies the misfire policy to overdue slots. Returns the first slot that normal planning handles. */
  function catchUp(firstMs: number): number | null {
    const { policy, cap, perSecond, withinMs } = definition.misfire;
    const oldestMs = withinMs === undefined ? firstMs : Math.max(firstMs, nowMs - withinMs);
    // `skip` drops only slots overdue by more than `afterMs`; the other policies handle all slots up to now in one catch-up.
    const lastMs = Math.max(firstMs, schedule.previous(policy === "skip" ? lateBefore : nowMs + 1) ?? firstMs);
    const keep = policy === "skip" ? 0 : policy === "fire_once" ? 1 : cap;
    const reason = policy === "all" ? "misfire: all, over its cap" : `misfire: ${policy}`;
    if (schedule.judge) {
      const judge = (slotMs: number) => planned(slotMs, Math.max(slotMs, nowMs));
      const late = catchUpJudged(definition, schedule, { firstMs, oldestMs, lastMs, keep, reason }, judge);
      late.kept.forEach((slot, place) => {
        // At a limited rate, the slot is judged again for the time at which its run will start, because the last of many slots may be due
        // in a blackout.
        if (perSecond === null) step.slots.push(slot);
        else step.slots.push(planned(slot.slotMs, Math.round(nowMs + (place * 1_000) / perSecond)));
      });
      step.slots.push(...late.skipped);
      step.missed.push(...late.missed);
      return schedule.next(lastMs);
    }
    const kept: number[] = [];
    let before: number | null = lastMs;
    while (before !== null && before >= oldestMs && kept.length < keep) {
      kept.unshift(before);
      before = schedule.previous(before);
    }
    const tooLate = oldestMs > firstMs ? schedule.previous(oldestMs) : null;
    const given = tooLate !== null && tooLate >= firstMs ? schedule.next(tooLate) : firstMs;
    if (given !== firstMs) step.missed.push(...missedRanges(schedule, firstMs, tooLate as number, tooLateReason));
    if (before !== null && given !== null && before >= given)
      step.missed.push(...missedRanges(schedule, given, before, reason));
    kept.forEach((slotMs, place) => {
      const spread = perSecond === null ? 0 : nowMs + (place * 1_000) / perSecond;
      step.slots.push({ slotMs, dueMs: Math.max(slotMs, Math.round(spread)) });
    });
    return schedule.next(lastMs);
  }
}

/** The maximum number of slots that one catch-up examines. Earlier slots are recorded as one range without a count. */
const judgedMost = 10_000;
/** If more slots than this are skipped, they are recorded as ranges instead of one by one. */
const skippedSingly = 500;

/**
 * Catches up a task whose calendar or blackouts exclude slots. Among the newest `judgedMost` slots, the excluded ones are recorded as
 * skipped, and the newest `keep` others from `oldestMs` on run; all remaining slots are missed.
 */
function catchUpJudged(
  definition: TaskDefinition,
  schedule: Schedule,
  {
    firstMs,
    oldestMs,
    lastMs,
    keep,
    reason,
  }: { firstMs: number; oldestMs: number; lastMs: number; keep: number; reason: string },
  judge: (slotMs: number) => PlannedSlot,
): { kept: PlannedSlot[]; skipped: PlannedSlot[]; missed: MissedRange[] } {
  const kept: PlannedSlot[] = [];
  let skipped: PlannedSlot[] = [];
  const given: PlannedSlot[] = [];
  const tooLate: PlannedSlot[] = [];
  let before: number | null = lastMs;
  for (let seen = 0; before !== null && before >= firstMs && seen < judgedMost; seen++) {
    const slot = judge(before);
    if (slot.skipped !== undefined) skipped.unshift(slot);
    else if (before < oldestMs) tooLate.unshift(slot);
    else if (kept.length < keep) kept.unshift(slot);
    else given.unshift(slot);
    before = schedule.previous(before);
  }
  const rangesOf = (slots: PlannedSlot[], why: string): MissedRange[] => {
    const [first, last] = [slots[0], slots.at(-1)];
    if (!first || !last) return [];
    if (schedule.nominalTimes) return nominalRanges(definition.schedule, slots.flatMap(nominalTimesOf), why);
    return [{ fromMs: first.slotMs, toMs: last.slotMs, count: slots.length, reason: why }];
  };
  const missed: MissedRange[] = [];
  const uncounted = before !== null && before >= firstMs;
  const why = before !== null && before < oldestMs ? tooLateReason : reason;
  if (uncounted) missed.push({ fromMs: firstMs, toMs: before as number, count: null, reason: why });
  missed.push(...rangesOf(tooLate, tooLateReason), ...rangesOf(given, reason));
  if (skipped.length > skippedSingly) {
    const ranges = rangesOf(skipped, skipped.at(-1)?.skipped as string);
    missed.push(...ranges.map((range) => ({ ...range, outcome: "skipped" as const })));
    skipped = [];
  }
  return { kept, skipped, missed };
}

const nominalTimesOf = ({ slotMs, nominalMs }: PlannedSlot): number[] => nominalMs ?? [slotMs];

/** Groups nominal times of a schedule into ranges, such that each range contains no other times of the schedule. */
export function nominalRanges(spec: ScheduleSpec, nominalMs: readonly number[], reason: string): MissedRange[] {
  const schedule = compileSchedule(spec);
  const ranges: MissedRange[] = [];
  for (const timeMs of nominalMs.toSorted((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last && schedule.next(last.toMs) === timeMs) {
      last.toMs = timeMs;
      last.count = (last.count ?? 0) + 1;
    } else ranges.push({ fromMs: timeMs, toMs: timeMs, count: 1, reason });
  }
  return ranges;
}

/**
 * Returns the missed slots from one time to another as ranges. If there are more than `countLimit`, the newest `countLimit` are a separate
 * range with a count, because counters and alarms use only ranges that have a count.
 */
export function missedRanges(schedule: Schedule, fromMs: number, toMs: number, reason: string): MissedRange[] {
  const count = countSlots(schedule, fromMs, toMs);
  if (count !== null) return [{ fromMs, toMs, count, reason }];
  let [first, before] = [toMs, schedule.previous(toMs)];
  for (let counted = 1; before !== null && counted < countLimit; counted++) {
    first = before;
    before = schedule.previous(first);
  }
  return [
    { fromMs, toMs: before ?? fromMs, count: null, reason },
    { fromMs: first, toMs, count: countLimit, reason },
  ];
}

/** Returns the number of slots in [fromMs, toMs]; null if there are more than `most`. */
export function countSlots(schedule: Schedule, fromMs: number, toMs: number, most = countLimit): number | null {
  let count = 0;
  let slot = schedule.next(fromMs - 1);
  while (slot !== null && slot <= toMs) {
    if (++count > most) return null;
    slot = schedule.next(slot);
  }
  return count;
}
