import type { SlotRange, SlotRecord } from "../../../../scheduler/src/slots/history-store.ts";
import type { RunSeen, Seen } from "../seen.ts";
import {
  endOf,
  isEdited,
  isFirst,
  lossesOf,
  pausesOf,
  promptMsOf,
  type Rule,
  runOf,
  triesOf,
  waitingMost,
  within,
  workerUntil,
} from "./rule.ts";

/** Returns the nominal times of the task's periodic schedules. Fixed delays, and times during an edit, are left out. */
export function slotsOf(seen: Seen, task: number): number[] {
  const { plans } = seen.tasks[task] as Seen["tasks"][number];
  const slots: number[] = [];
  for (const [i, { atMs, plan }] of plans.entries()) {
    const untilMs = plans[i + 1]?.fromMs ?? seen.healedMs;
    const { every } = plan;
    if (!every || every.delay) continue;
    const phaseMs = every.ms - (seen.beganMs % every.ms);
    for (let slotMs = phaseMs % every.ms; slotMs < untilMs; slotMs += every.ms) if (slotMs > atMs) slots.push(slotMs);
  }
  return slots;
}

/** The nominal times of a ledger row: several if a calendar moved several slots to the same time. */
export const nominalOf = ({ nominalMs, slotMs }: SlotRecord) => nominalMs ?? [slotMs];

/** True if the range accounts for `slotMs`. A range accounts only for slots of the schedule in force at its version. */
function covers(seen: Seen, task: number, { fromMs, toMs, version }: SlotRange, slotMs: number): boolean {
  const { plans } = seen.tasks[task] as Seen["tasks"][number];
  const { every } = plans.findLast((one) => one.version <= version)?.plan ?? {};
  return every !== undefined && fromMs <= slotMs && slotMs <= toMs && (seen.beganMs + slotMs) % every.ms === 0;
}

/** Each slot is accounted for exactly once: by a ledger row (run, skipped or missed) or by a range of skipped or missed slots. */
export const slotsAccounted: Rule = {
  name: "each slot is accounted for once",
  page: "operations.md: backfill; states.md",
  check(seen) {
    for (const [task, { slots, ranges }] of seen.tasks.entries()) {
      for (const slotMs of slotsOf(seen, task)) {
        const rows = slots.filter((slot) => nominalOf(slot).includes(slotMs)).length;
        const spans = ranges.filter((range) => covers(seen, task, range, slotMs)).length;
        if (rows + spans !== 1) return `slot ${slotMs} of task ${task} has ${rows} rows and lies in ${spans} ranges`;
      }
      for (const slot of slots) {
        const run = slot.runId === null ? undefined : runOf(seen, slot.runId);
        if (slot.outcome === "run" && slot.runId === null)
          return `slot ${slot.slotMs} of task ${task} is a run that has no number`;
        if (run && !isFirst(run))
          return `slot ${slot.slotMs} of task ${task} has run ${slot.runId}, a part that is not the first`;
        if (run && run.slotMs !== slot.slotMs)
          return `slot ${slot.slotMs} of task ${task} has run ${slot.runId} of ${run.slotMs}`;
      }
      const made = seen.runs.filter((run) => run.of === task && run.source === "slot" && isFirst(run));
      for (const run of made) {
        const twin = made.find((other) => other.runId !== run.runId && other.slotMs === run.slotMs);
        if (twin) return `slot ${run.slotMs} of task ${task} has runs ${run.runId} and ${twin.runId}`;
      }
    }
    return undefined;
  },
};

/** A slot within a pause is skipped, unless its run ended before the slot's time. */
export const slotsInPauses: Rule = {
  name: "a slot in a pause is skipped",
  page: "operations.md: backfill",
  check(seen) {
    for (const [task, { slots, ranges, plans }] of seen.tasks.entries()) {
      // A calendar may move a slot to a time outside the pause.
      if (isEdited(seen.scenario, task) || plans[0]?.plan.calendar) continue;
      for (const slotMs of slotsOf(seen, task)) {
        if (!within(pausesOf(seen, task), slotMs)) continue;
        // The slot's run was planned ahead and ended before the slot's time, for example by a cancel.
        if (seen.runs.some((run) => run.of === task && run.slotMs === slotMs && endOf(run) < slotMs)) continue;
        const told = [
          ...slots.filter((slot) => slot.slotMs === slotMs),
          ...ranges.filter(({ fromMs, toMs }) => fromMs <= slotMs && slotMs <= toMs),
        ];
        if (told.some(({ outcome }) => outcome !== "skipped"))
          return `slot ${slotMs} of task ${task}, in a pause, is ${told.map(({ outcome }) => outcome)}`;
      }
    }
    return undefined;
  },
};

/** A slot is due at its time or later by at most its jitter; a slot in a delaying blackout is due when the blackout ends. */
export const slotsDue: Rule = {
  name: "when a slot is due",
  page: "schedules.md: jitter; policies.md: blackout",
  check(seen) {
    for (const run of seen.runs) {
      const { plans = [] } = seen.tasks[run.of] ?? {};
      if (run.source !== "slot" || run.slotMs === null || isEdited(seen.scenario, run.of)) continue;
      // After a further attempt, the due time is that of the attempt, not of the slot.
      if (run.attempt > 1 || (run.attempt === 1 && run.state === "cancelled")) continue;
      // The loss of a claim also changes the due time.
      if (lossesOf(seen, run.runId, seen.endMs) > 0) continue;
      const { every, blackout } = plans[0]?.plan ?? {};
      // Blackouts are checked against the due time, because jitter may move a slot out of a blackout or into one.
      const isBlack = (ms: number) => blackout !== undefined && blackout.fromMs <= ms && ms < blackout.toMs;
      if (isBlack(run.dueMs)) return `run ${run.runId} of slot ${run.slotMs} is due at ${run.dueMs}, in a blackout`;
      const isMoved = !every?.jitterMs && isBlack(run.slotMs);
      if (isMoved && blackout?.then === "skip")
        return `run ${run.runId} is of slot ${run.slotMs}, in a blackout that skips`;
      const leastMs = isMoved ? (blackout?.toMs ?? 0) : run.slotMs;
      const mostMs = Math.max(leastMs, run.slotMs) + (every?.jitterMs ?? 0);
      const mayBlack = blackout !== undefined;
      const resumedMs = Math.max(0, ...pausesOf(seen, run.of).map(({ toMs }) => toMs));
      if (run.dueMs > mostMs && !mayBlack && run.dueMs > resumedMs + promptMsOf(seen) && run.createdMs < run.dueMs)
        return `run ${run.runId} of slot ${run.slotMs} is due at ${run.dueMs}, at most ${mostMs}`;
    }
    return undefined;
  },
};

/** With a fixed delay, each slot is one delay after the end of the previous run. */
export const delays: Rule = {
  name: "a fixed delay counts from the end of the last run",
  page: "schedules.md",
  check(seen) {
    for (const [task, { plans }] of seen.tasks.entries()) {
      const { every, history } = plans[0]?.plan ?? {};
      // With a `history` option, the previous run may have no row.
      if (history) continue;
      if (!every?.delay || isEdited(seen.scenario, task) || pausesOf(seen, task).length > 0) continue;
      const made = seen.runs
        .filter(({ of, source }) => of === task && source === "slot")
        .sort((a, b) => (a.slotMs ?? 0) - (b.slotMs ?? 0));
      for (const [i, run] of made.entries()) {
        const before = made[i - 1];
        if (!before || before.endedMs === null) continue;
        const gapMs = (run.slotMs ?? 0) - before.endedMs;
        if (Math.abs(gapMs - every.ms) > promptMsOf(seen))
          return `slot ${run.slotMs} of task ${task} is ${gapMs} ms after the end of run ${before.runId}: ${every.ms}`;
      }
    }
    return undefined;
  },
};

/** True if the worker may have been full between the run's due time and its claim. */
const mayBeFull = (seen: Seen, { runId, dueMs, claimedMs }: RunSeen) =>
  seen.tries.filter((one) => one.runId !== runId && one.fromMs <= (claimedMs ?? 0) && workerUntil(one) >= dueMs)
    .length >= seen.scenario.concurrency;

/**
 * With the policy `skip`, a run that is later than the policy allows does not start. Misfire policies skip no run that is not late,
 * and `all` skips none.
 */
export const misfires: Rule = {
  name: "misfire",
  page: "policies.md: misfire",
  check(seen) {
    for (const run of seen.runs) {
      const { plans = [] } = seen.tasks[run.of] ?? {};
      if (run.source !== "slot" || isEdited(seen.scenario, run.of)) continue;
      const { misfire, every, overlap = "allow", perKey, rate, group } = plans[0]?.plan ?? {};
      if (every?.delay) continue;
      const { policy = "fire_once", after = 10_000 } = misfire ?? {};
      const [first] = triesOf(seen, run.runId);
      const lateMs = (first ? (run.attempt === 1 ? (run.claimedMs ?? 0) : run.dueMs) : endOf(run)) - run.dueMs;
      const wasPaused = pausesOf(seen, run.of).length > 0;
      // The misfire policy applies to a limited run when it gets its slot of concurrency. Then it may still wait for the worker or for
      // its group.
      const hasPlace = overlap !== "allow" || perKey !== undefined || rate !== undefined;
      const mayBeLate = hasPlace && (group !== undefined || mayBeFull(seen, run));
      if (
        policy === "skip" &&
        first &&
        run.attempt === 1 &&
        lateMs > after + promptMsOf(seen) &&
        !wasPaused &&
        !mayBeLate
      )
        return `run ${run.runId} of slot ${run.slotMs} was claimed ${lateMs} ms late, and its task skips after ${after}`;
      const mayOverlap = overlap === "skip" || overlap === "replace" || waitingMost(overlap) !== undefined;
      if (run.state !== "skipped" || mayOverlap || wasPaused) continue;
      if (policy === "all") return `run ${run.runId} of slot ${run.slotMs} was skipped, and its task runs all`;
      if (lateMs < after - seen.pace.slackMs)
        return `run ${run.runId} of slot ${run.slotMs} was given up ${lateMs} ms late: its task does so after ${after}`;
      // Reads the ledger instead of the runs: a successful run may have no row, and a retried run shows the due time of its last attempt.
      const newer = seen.tasks[run.of]?.slots.some(
        ({ slotMs, outcome }) =>
          slotMs > (run.slotMs ?? 0) && slotMs <= endOf(run) + seen.pace.slackMs && outcome !== "skipped",
      );
      if (policy === "fire_once" && !newer)
        return `run ${run.runId} of slot ${run.slotMs} was given up, and there was no newer one`;
    }
    return undefined;
  },
};
