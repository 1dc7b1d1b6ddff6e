import type { TaskPlan } from "../scenario.ts";
import type { RunSeen, Seen, Try } from "../seen.ts";
import {
  endOf,
  givenUpMs,
  isEdited,
  isStale,
  lossesOf,
  over,
  pausesOf,
  placeUntil,
  plansBetween,
  promptMsOf,
  type Rule,
  runOf,
  type Span,
  triesOf,
  waitingMost,
  within,
  workerUntil,
} from "./rule.ts";

const isGivenUp = ({ pace }: Seen, { abort }: Try, ms: number) =>
  abort !== undefined && abort.atMs + givenUpMs <= ms + pace.slackMs;

/**
 * Returns the task's limit of concurrent runs at `atMs`. Because a start follows its claim within `reactMs`, an edit in that time counts
 * with both its limits. @param pick chooses between the limits before and after the edit; default: the larger one
 */
function limitOf(seen: Seen, task: number, atMs: number, pick = Math.max): number {
  const limits = plansBetween(seen, task, atMs - seen.pace.reactMs, atMs).map(({ overlap = "allow" }) =>
    overlap === "allow"
      ? Number.POSITIVE_INFINITY
      : typeof overlap === "object" && "allow" in overlap
        ? overlap.allow
        : 1,
  );
  return pick(...limits);
}

/** Returns the group's limit of concurrent runs at `ms`: the largest of the limits in force during the `reactMs` before. */
function groupLimitAt({ done, pace }: Seen, group: number, ms: number): number {
  let limits = [Number.POSITIVE_INFINITY];
  for (const { act, fromMs, toMs } of done) {
    if (act.op !== "limit" || act.group !== group || fromMs > ms) continue;
    const runs = act.runs ?? Number.POSITIVE_INFINITY;
    limits = ms <= toMs + pace.reactMs ? [...limits, runs] : [runs];
  }
  return Math.max(...limits);
}

const groupOf = (seen: Seen, task: number, ms: number) => plansBetween(seen, task, ms, ms).at(-1)?.group;
const limitKeyOf = ({ limitKey, key }: RunSeen) => limitKey ?? key ?? "";

/**
 * The number of concurrent runs never exceeds the limit of a task, a key, a group or the worker. Runs that were active when a limit was
 * set or lowered continue, so the rule checks only starts.
 */
export const bounds: Rule = {
  name: "never more than n",
  page: "limits.md",
  check(seen) {
    for (const one of seen.tries) {
      const { task, fromMs, runId } = one;
      const inWorker = seen.tries.filter(
        (other) =>
          other.began < one.began &&
          !(other.end && other.end.ended < one.began) &&
          fromMs <= workerUntil(other) &&
          !isGivenUp(seen, other, fromMs),
      );
      const beside = isStale(one) ? [] : inWorker.filter(({ lostMs }) => lostMs === undefined || lostMs > fromMs);
      const many = (others: Try[], limit: number, what: string) =>
        others.length + 1 > limit
          ? `run ${runId} of task ${task} starts at ${fromMs} beside ${others.map((other) => other.runId)}: ${what} ${limit}`
          : undefined;
      const run = runOf(seen, runId);
      const ofKey = beside.filter((other) => {
        const otherRun = runOf(seen, other.runId);
        return other.task === task && run && otherRun && limitKeyOf(otherRun) === limitKeyOf(run);
      });
      const perKey = Math.max(
        ...plansBetween(seen, task, fromMs - seen.pace.reactMs, fromMs).map(
          (plan) => plan.perKey ?? Number.POSITIVE_INFINITY,
        ),
      );
      const group = groupOf(seen, task, fromMs);
      const ofGroup =
        group === undefined ? [] : beside.filter((other) => groupOf(seen, other.task, other.fromMs) === group);
      const found =
        many(inWorker, seen.scenario.concurrency, "places of the worker") ??
        (one.attempt > 1 && isEdited(seen.scenario, task)
          ? undefined // the run keeps the slot of concurrency that it had before the edit
          : many(
              beside.filter((other) => other.task === task),
              limitOf(seen, task, fromMs),
              "places of the task",
            )) ??
        many(ofKey, perKey, "of a key") ??
        many(
          beside.filter((other) => other.task === task),
          Math.max(...plansBetween(seen, task, 0, fromMs).map((plan) => plan.perWorker ?? Number.POSITIVE_INFINITY)),
          "of a worker",
        ) ??
        (group === undefined ? undefined : many(ofGroup, groupLimitAt(seen, group, fromMs), "of the group"));
      if (found) return found;
    }
    return undefined;
  },
};

/** In any period of the rate, at most n attempts start. Tasks whose attempts may have waited after admission are not checked. */
export const rates: Rule = {
  name: "a rate is held",
  page: "limits.md: rate",
  check(seen) {
    for (const [task, { plans }] of seen.tasks.entries()) {
      const { rate } = plans[0]?.plan ?? {};
      if (!rate || plans.some(({ plan }) => JSON.stringify(plan.rate) !== JSON.stringify(rate))) continue;
      const starts = seen.tries.filter((one) => one.task === task && !isStale(one)).map(({ fromMs }) => fromMs);
      // An attempt may be admitted and then wait for the worker or for its group's limit. Its start would then be later than its admission.
      const inWorker = seen.tries.map((one) => ({ fromMs: one.fromMs, toMs: workerUntil(one) }));
      if (over(inWorker, seen.scenario.concurrency - 1)) continue;
      const isLimited = (group: number | undefined) =>
        seen.scenario.acts.some((act) => act.op === "limit" && act.group === group && act.runs !== null);
      if (plans.some(({ plan }) => isLimited(plan.group))) continue;
      const found = over(
        starts.map((fromMs) => ({ fromMs, toMs: fromMs + rate.per - seen.pace.reactMs })),
        rate.limit,
      );
      if (found)
        return `${found.count} tries of task ${task} began within ${rate.per} ms before ${found.atMs}: limit ${rate.limit}`;
    }
    return undefined;
  },
};

/** No run of a paused task starts. */
export const paused: Rule = {
  name: "nothing of a paused task starts",
  page: "states.md: pause",
  check(seen) {
    for (const one of seen.tries)
      if (!isStale(one) && within(pausesOf(seen, one.task), one.fromMs))
        return `run ${one.runId} of task ${one.task} starts at ${one.fromMs}, in a pause`;
    return undefined;
  },
};

/** No attempt begins before its due time. */
export const notEarly: Rule = {
  name: "no try begins before its time",
  page: "schedules.md, enqueue options: in",
  check(seen) {
    for (const { act, runId, fromMs, created } of seen.done) {
      if (act.op !== "enqueue" || !created || runId === undefined) continue;
      const [first] = triesOf(seen, runId);
      const dueMs = fromMs + (act.inMs ?? 0);
      if (first && first.fromMs < dueMs - seen.pace.slackMs)
        return `run ${runId} is due at ${dueMs} and starts at ${first.fromMs}`;
    }
    for (const run of seen.runs) {
      const last = triesOf(seen, run.runId).at(-1);
      // A run that was cancelled between two attempts keeps the due time of the attempt that never began.
      const isOver = run.state === "succeeded" || run.state === "failed";
      // The loss of a claim before the attempt began changes the due time.
      const isLost = lossesOf(seen, run.runId, seen.endMs) > 0;
      if (isOver && !isLost && last && last.fromMs < run.dueMs - seen.pace.slackMs)
        return `run ${run.runId} is due at ${run.dueMs} and starts at ${last.fromMs}`;
    }
    return undefined;
  },
};

/** The earliest time at which the run's last attempt could start if there were no limits. */
const readyMs = (run: RunSeen) => Math.max(run.dueMs, run.createdMs);

/** How long before its due time a run is addressed to a worker, in ms (routing.md). */
const addressedMs = 2_000;
/** Heartbeat interval of a test tower, in ms. */
const beatMs = 30_000;

/**
 * True within one heartbeat after the end of a run that was active when the group's limit was set. No signal reports that end to the
 * waiting runs, so the worker finds them at its next heartbeat.
 */
function isUnheard(seen: Seen, group: number, ms: number): boolean {
  const limits = seen.done.filter(({ act }) => act.op === "limit" && act.group === group);
  return seen.tries.some((one) => {
    const untilMs = placeUntil(one);
    const wasThere = limits.some(({ fromMs }) => one.fromMs <= fromMs && fromMs <= untilMs);
    return wasThere && groupOf(seen, one.task, one.fromMs) === group && untilMs <= ms && ms < untilMs + beatMs;
  });
}

/**
 * Returns the unfinished runs of the task at `ms` of which the history has no row. Only their attempts show them; between its attempts,
 * such a run still counts against the limits.
 */
function rowlessAt(seen: Seen, task: number, ms: number): number[] {
  const tries = seen.tries.filter((one) => one.task === task && !runOf(seen, one.runId));
  const begun = new Set(tries.filter(({ fromMs }) => fromMs <= ms).map(({ runId }) => runId));
  return [...begun].filter((runId) => tries.some((one) => one.runId === runId && ms < placeUntil(one)));
}

/** True if a pause, a limit, a full worker or the loss of the worker may keep the run from starting at `ms`. */
function isHeldUp(seen: Seen, run: RunSeen, ms: number, pauses: readonly Span[]): boolean {
  if (pauses.some(({ fromMs, toMs }) => fromMs <= ms && ms <= toMs)) return true;
  // There is no worker until the lost one is replaced.
  if (seen.done.some(({ act, fromMs, toMs }) => act.op === "lose" && fromMs <= ms && ms <= toMs)) return true;
  const running = seen.tries.filter((one) => one.runId !== run.runId && one.fromMs <= ms && ms < placeUntil(one));
  const busy = seen.tries.filter((one) => one.fromMs <= ms && ms < workerUntil(one));
  if (busy.length >= seen.scenario.concurrency) return true;
  const siblings = seen.runs.filter(
    (other) => other.of === run.of && other.runId !== run.runId && other.createdMs <= ms && ms < endOf(other),
  );
  // Each run that was ready before, or has had an attempt, may count against the limit.
  const ahead = siblings.filter(
    (other) => readyMs(other) <= ms || triesOf(seen, other.runId).some(({ fromMs }) => fromMs <= ms),
  );
  const rowless = rowlessAt(seen, run.of, ms).length;
  if (ahead.length + rowless >= limitOf(seen, run.of, ms, Math.min)) return true;
  const [plan] = plansBetween(seen, run.of, ms, ms);
  if (
    plan?.perKey !== undefined &&
    ahead.filter((other) => limitKeyOf(other) === limitKeyOf(run)).length + rowless >= plan.perKey
  )
    return true;
  const { rate, group, perWorker } = plan ?? {};
  // A run that is due soon may already be addressed to the worker, and then counts against `perWorker`.
  const addressed = siblings.filter(
    (other) => readyMs(other) <= ms + addressedMs || triesOf(seen, other.runId).some(({ fromMs }) => fromMs <= ms),
  );
  if (perWorker !== undefined && addressed.length + rowless >= perWorker) return true;
  if (rate) {
    const lately = seen.tries.filter(({ task, fromMs }) => task === run.of && fromMs <= ms && ms - rate.per < fromMs);
    // A run that waits for a retry has already taken its token of the rate, whenever the retry is due.
    const booked = siblings.filter((other) => triesOf(seen, other.runId).some(({ fromMs }) => fromMs <= ms)).length;
    if (lately.length + booked >= rate.limit) return true;
  }
  if (group === undefined) return false;
  if (isUnheard(seen, group, ms)) return true;
  return running.filter((one) => groupOf(seen, one.task, ms) === group).length >= groupLimitAt(seen, group, ms);
}

/** A run that is due starts promptly once there is capacity for it. */
export const prompt: Rule = {
  name: "what is due and has room starts",
  page: "limits.md: priority and turns",
  check(seen) {
    const times = [
      ...seen.tries.flatMap((one) => [one.fromMs, placeUntil(one)]),
      ...seen.runs.flatMap((run) => [run.createdMs, run.dueMs, endOf(run)]),
      ...seen.done.map(({ toMs }) => toMs),
    ];
    const marks = [...new Set(times)].filter(Number.isFinite).sort((a, b) => a - b);
    for (const run of seen.runs) {
      const last = triesOf(seen, run.runId).at(-1);
      const untilMs = last && last.fromMs >= run.dueMs ? last.fromMs : endOf(run);
      if (!Number.isFinite(untilMs)) continue; // the rule `quiet` reports it
      // After the loss of its worker, a run whose task has `onWorkerLost: "ask"` waits for an operator's decision.
      const asks = seen.tasks[run.of]?.plans.some(({ plan }) => plan.onWorkerLost === "ask");
      if (asks && lossesOf(seen, run.runId, seen.endMs) > 0) continue;
      const rated = seen.tasks[run.of]?.plans.some(({ plan }) => plan.rate);
      // A token stays spent if its run is paused, edited or cancelled before it starts.
      if (rated && seen.done.some(({ act }) => ["pause", "cancel", "edit", "lose"].includes(act.op))) continue;
      // The edit that ends the schedule at the end of the scenario has the same effect on tokens.
      const isEditedMeanwhile = seen.tasks[run.of]?.plans.some(({ atMs }) => run.createdMs < atMs && atMs < untilMs);
      if (rated && isEditedMeanwhile) continue;
      const pauses = pausesOf(seen, run.of);
      let freeMs: number | undefined;
      const spans = marks.filter((ms) => readyMs(run) <= ms && ms < untilMs);
      if (rated)
        for (const { fromMs } of seen.tries)
          if (fromMs + 10_000 < untilMs && fromMs + 10_000 > readyMs(run)) spans.push(fromMs + 10_000);
      for (const ms of [...spans.sort((a, b) => a - b), untilMs]) {
        if (freeMs !== undefined && ms - freeMs > promptMsOf(seen))
          return `run ${run.runId} of task ${run.of} waits from ${freeMs} to ${ms}, with room for it`;
        if (isHeldUp(seen, run, ms, pauses)) freeMs = undefined;
        else freeMs ??= ms;
      }
    }
    return undefined;
  },
};

/** When runs wait for the worker, the run with the highest priority starts first. Tasks with limits or routes are not checked. */
export const priorities: Rule = {
  name: "a higher priority comes first",
  page: "limits.md: priority and turns",
  check(seen) {
    const isPlain = (task: number) =>
      (seen.tasks[task]?.plans ?? []).every(
        ({ plan: { overlap = "allow", perKey, rate, group, perWorker, route } }) =>
          overlap === "allow" && !rate && !route && [perKey, group, perWorker].every((limit) => limit === undefined),
      );
    for (const one of seen.tries) {
      const run = runOf(seen, one.runId);
      if (!run || isStale(one) || one.attempt !== run.attempt || one.fromMs <= readyMs(run)) continue;
      for (const other of seen.runs) {
        const first = triesOf(seen, other.runId)[0];
        const waits = first && first.attempt === other.attempt && first.fromMs > one.fromMs;
        if (!waits || !isPlain(other.of) || other.priority <= run.priority) continue;
        // The worker may have chosen its run shortly before the other run became ready.
        if (
          readyMs(other) > one.fromMs - promptMsOf(seen) ||
          pausesOf(seen, other.of).some(({ toMs }) => toMs > readyMs(other) - 1)
        )
          continue;
        return `run ${run.runId} of priority ${run.priority} starts at ${one.fromMs} before ${other.runId} of priority ${other.priority}, due at ${other.dueMs}`;
      }
    }
    return undefined;
  },
};

/**
 * Checks the effect of `overlap` on runs that fall due while another run of the task is active. Tasks whose `overlap` was edited are
 * left out.
 */
export const overlaps: Rule = {
  name: "overlap",
  page: "policies.md: overlap",
  check(seen) {
    for (const run of seen.runs) {
      const { plans = [] } = seen.tasks[run.of] ?? {};
      const overlap = plans[0]?.plan.overlap ?? "allow";
      const isSame = plans.every(({ plan }) => JSON.stringify(plan.overlap ?? "allow") === JSON.stringify(overlap));
      const wasReplaced = seen.done.some(({ replaced }) => replaced === run.runId);
      if (!isSame || wasReplaced) continue;
      const what = overlapBroken(seen, run, overlap);
      if (what) return `run ${run.runId} of task ${run.of}, overlap ${JSON.stringify(overlap)}: ${what}`;
    }
    return tooManyWait(seen);
  },
};

/** Returns a violation if more runs wait for their first attempt than the task's `overlap.queue` allows. */
function tooManyWait(seen: Seen): string | undefined {
  for (const [task, { plans }] of seen.tasks.entries()) {
    const most = waitingMost(plans[0]?.plan.overlap);
    const isSame = plans.every(({ plan }) => waitingMost(plan.overlap) === most);
    if (most === undefined || !isSame || pausesOf(seen, task).length > 0) continue;
    for (const { atMs, live } of seen.looks) {
      const waiting = live.filter(
        (run) => run.task.endsWith(`-t${task}`) && run.state === "held" && run.attempt === 0 && run.dueMs <= atMs,
      );
      if (waiting.length > most) return `${waiting.length} runs of task ${task} wait at ${atMs}: at most ${most} may`;
    }
  }
  return undefined;
}

function overlapBroken(seen: Seen, run: RunSeen, overlap: NonNullable<TaskPlan["overlap"]>): string | undefined {
  const tries = triesOf(seen, run.runId);
  const others = seen.runs.filter((other) => other.of === run.of && other.runId !== run.runId);
  const dueMs = readyMs(run);
  if (run.state === "skipped" && (overlap === "skip" || overlap === "replace") && run.source !== "slot") {
    const endedMs = endOf(run);
    const beside = others.some(
      (other) =>
        other.createdMs <= endedMs &&
        endOf(other) >= endedMs &&
        (readyMs(other) <= endedMs || triesOf(seen, other.runId).length > 0),
    );
    // Attempts show the runs that have no row. Such a run counts from its first attempt to the end of its last.
    const underWay = seen.tries.some(
      (one) =>
        one.task === run.of &&
        one.fromMs <= endedMs &&
        seen.tries.some((last) => last.runId === one.runId && endedMs <= placeUntil(last)),
    );
    if (!beside && !underWay) return "it was skipped with nothing before it";
  }
  const most = waitingMost(overlap);
  const mayBeSkipped = overlap === "skip" || overlap === "replace" || most !== undefined;
  if (run.state === "skipped" && !mayBeSkipped && run.slotMs === null) return "it was skipped";
  // If successes may have no row, the number of waiting runs is unknown, so this is not checked.
  const hasRows = seen.tasks[run.of]?.plans.every(({ plan }) => plan.history !== "failures");
  if (run.state === "skipped" && most !== undefined && run.slotMs === null && hasRows) {
    const endedMs = endOf(run);
    const waiting = others.filter(
      (other) =>
        other.createdMs <= endedMs &&
        // A retried run shows only the due time of its last attempt, so it counts as waiting.
        (readyMs(other) <= endedMs || other.attempt > 1) &&
        endOf(other) > endedMs &&
        !triesOf(seen, other.runId).some(({ fromMs }) => fromMs < endedMs),
    );
    if (waiting.length < most) return `it was skipped at ${endedMs}, while ${waiting.length} waited`;
  }
  if (pausesOf(seen, run.of).length > 0 || tries.length > 1) return undefined;
  const { reactMs } = seen.pace;
  const before = seen.tries.find(
    (one) =>
      one.task === run.of &&
      one.runId !== run.runId &&
      one.fromMs < dueMs - reactMs &&
      dueMs + reactMs < placeUntil(one),
  );
  if (!before || run.state === "cancelled") return undefined;
  if (overlap === "skip" && run.state !== "skipped" && before.abort === undefined)
    return `it came due at ${dueMs} while ${before.runId} was under way, and was not skipped`;
  if (
    overlap === "replace" &&
    tries.length > 0 &&
    !(before.abort && before.abort.atMs <= dueMs + promptMsOf(seen)) &&
    placeUntil(before) > dueMs + promptMsOf(seen)
  )
    return `it came due at ${dueMs}, and ${before.runId}, which was under way, was not told to stop`;
  return undefined;
}
