import type { RunSeen, Seen, Try } from "../seen.ts";
import { givenUpMs, lossesOf, plansBetween, promptMsOf, type Rule, triesOf } from "./rule.ts";

const wasTold = (one: Try | undefined, code: string) => one?.abort?.code === code;

/** A run's final state follows from its last attempt, as the table "retry" of policies.md states. */
export const endsAsTried: Rule = {
  name: "a run ends as its last try says",
  page: "policies.md: retry",
  check(seen) {
    for (const run of seen.runs) {
      const what = run.endedMs === null ? undefined : whyNot(seen, run, triesOf(seen, run.runId).at(-1));
      if (what) return `run ${run.runId} of task ${run.of} is ${run.state}: ${what}`;
    }
    return undefined;
  },
};

function whyNot(seen: Seen, run: RunSeen, last: Try | undefined): string | undefined {
  const returned = last?.end?.how === "returned";
  switch (run.state) {
    case "succeeded":
      if (!last) return "no try of it was made";
      if (last.lostMs !== undefined) return `the worker of try ${last.attempt} was taken for dead before it ended`;
      if (!returned) return `try ${last.attempt} did not return`;
      // A handler that returned before the abort reached it is allowed here.
      return wasTold(last, "CANCELLED") ? `try ${last.attempt} had been told that it is cancelled` : undefined;
    case "failed": {
      const losses = lossesOf(seen, run.runId, run.endedMs ?? 0);
      if (losses > 0) return lostFor(seen, run, last, losses);
      if (!last) return "no try of it was made";
      if (returned && !last.abort) return `try ${last.attempt} returned`;
      if (wasTold(last, "CANCELLED")) return `try ${last.attempt} had been told that it is cancelled`;
      const plans = plansBetween(seen, run.of, last.fromMs, run.endedMs ?? 0);
      const most = Math.min(...plans.map(({ retry }) => retry?.attempts ?? 1));
      return last.attempt < most ? `try ${last.attempt} of ${most} was not the last` : undefined;
    }
    case "skipped":
      return last ? `try ${last.attempt} was made` : undefined;
    default:
      return undefined;
  }
}

/**
 * Checks that a run that lost workers was allowed to fail: its last attempt threw, its task's policy made it fail, or an operator decided
 * about it.
 */
function lostFor(seen: Seen, run: RunSeen, last: Try | undefined, losses: number): string | undefined {
  const plans = plansBetween(seen, run.of, 0, run.endedMs ?? 0);
  if (last && last.lostMs === undefined && last.end?.how === "threw") return undefined;
  const decided = seen.done.some(({ act, runId, refused }) => act.op === "decide" && runId === run.runId && !refused);
  const byPolicy = plans.some(
    ({ onWorkerLost = "retry", workerLosses = 3 }) =>
      onWorkerLost === "fail" || (onWorkerLost === "ask" ? decided : losses >= workerLosses),
  );
  return byPolicy ? undefined : `it lost ${losses} workers, and its task tries again`;
}

/** Runs that a dead worker had claimed are retried, failed or held for a decision, as their task defines. */
export const lostWorkers: Rule = {
  name: "what a dead worker had",
  page: "policies.md: onWorkerLost",
  check(seen) {
    for (const { lost = [], fromMs } of seen.done)
      for (const runId of lost) {
        const run = seen.runs.find((one) => one.runId === runId);
        if (!run) continue;
        const [plan, ...others] = plansBetween(seen, run.of, fromMs, fromMs);
        if (!plan || others.length > 0) continue;
        const { onWorkerLost = "retry", workerLosses = 3 } = plan;
        const later = triesOf(seen, runId).find(
          (one) => one.fromMs > fromMs || (one.fromMs === fromMs && one.lostMs === undefined),
        );
        const decided = seen.done.some(
          ({ act, runId: of, refused, toMs }) =>
            act.op === "decide" && act.how === "retry" && of === runId && !refused && toMs >= fromMs,
        );
        const ends =
          onWorkerLost === "fail" || (onWorkerLost === "retry" && lossesOf(seen, runId, fromMs) >= workerLosses);
        if (later && (ends || (onWorkerLost === "ask" && !decided)))
          return `run ${runId}, lost at ${fromMs}, ${onWorkerLost}, workerLosses ${workerLosses}, begins again at ${later.fromMs}`;
        if (ends && run.state !== "failed" && run.state !== "cancelled")
          return `run ${runId}, lost at ${fromMs}, ${onWorkerLost}, workerLosses ${workerLosses}, is ${run.state}`;
      }
    return undefined;
  },
};

/**
 * A run has at most as many attempts as its task allows, beside those whose worker was lost. Each attempt begins after the
 * policy's pause, counted from the end of the previous attempt.
 */
export const pausesBetweenTries: Rule = {
  name: "tries and the pauses between them",
  page: "task-options.md: retry",
  check(seen) {
    for (const run of seen.runs) {
      const tries = triesOf(seen, run.runId);
      for (const [i, one] of tries.entries()) {
        // The attempt before this one followed the retry policy that was in force when it was claimed. That was not before the end of the
        // attempt before it.
        const sinceMs = tries[i - 2]?.end?.atMs ?? run.createdMs;
        const what = i === 0 ? undefined : tooSoon(seen, run, tries[i - 1] as Try, one, sinceMs);
        if (what) return `run ${run.runId} of task ${run.of}: ${what}`;
        if (one.attempt !== i + 1 && one.attempt > i + 1 + lossesOf(seen, run.runId, one.fromMs))
          return `run ${run.runId} of task ${run.of}: its try ${i + 1} is numbered ${one.attempt}`;
      }
    }
    return undefined;
  },
};

function tooSoon(seen: Seen, run: RunSeen, before: Try, one: Try, sinceMs: number): string | undefined {
  if (before.lostMs !== undefined) return undefined;
  const losses = lossesOf(seen, run.runId, before.fromMs);
  const stoppedMs =
    before.end && before.abort ? Math.min(before.end.atMs, before.abort.atMs + givenUpMs) : before.end?.atMs;
  const endedMs = stoppedMs ?? (before.abort ? before.abort.atMs + givenUpMs : Number.POSITIVE_INFINITY);
  if (before.end?.how === "returned" && !before.abort)
    return `try ${before.attempt} returned, and was followed by another`;
  const plans = plansBetween(seen, run.of, sinceMs, endedMs).map(({ retry }) => retry);
  const most = Math.max(...plans.map((retry) => retry?.attempts ?? 1));
  if (one.attempt > most + lossesOf(seen, run.runId, one.fromMs)) return `try ${one.attempt} of at most ${most}`;
  const pauses = plans.map((retry) => pauseOf(retry, Math.max(1, before.attempt - losses)));
  const least = Math.min(...pauses.map(({ leastMs }) => leastMs));
  const gapMs = one.fromMs - endedMs;
  if (gapMs < Math.floor(least) - seen.pace.slackMs)
    return `${gapMs} ms between tries ${before.attempt} and ${one.attempt}, at least ${least}`;
  const longest = Math.max(...pauses.map(({ mostMs }) => mostMs));
  // The due time belongs to this attempt only if the run succeeded or failed with it, and its claim was not lost.
  const isLast =
    one.attempt === run.attempt && (run.state === "succeeded" || run.state === "failed") && one.lostMs === undefined;
  const hasRate = plansBetween(seen, run.of, 0, seen.endMs).some(({ rate }) => rate);
  if (isLast && !hasRate && run.dueMs - endedMs > longest + 1 + seen.pace.reactMs)
    return `try ${one.attempt} is due ${run.dueMs - endedMs} ms after the one before, at most ${longest}`;
  return undefined;
}

function pauseOf(retry: Seen["scenario"]["tasks"][number]["retry"], attempt: number) {
  const { backoff = "exponential", delay = 1_000, maxDelay = 3_600_000, jitter = 0.2 } = retry ?? {};
  const mostMs = Math.min(backoff === "fixed" ? delay : delay * 2 ** (attempt - 1), maxDelay);
  return { mostMs, leastMs: mostMs * (1 - jitter) };
}

/**
 * After a cancel, a run begins no further attempt: a waiting run ends at once, a running one is aborted. Otherwise runs are cancelled
 * only by the overlap policy `replace`.
 */
export const cancelled: Rule = {
  name: "what is cancelled stops, and nothing else does",
  page: "policies.md: retry; states.md: cancel",
  check(seen) {
    const asked = new Set<number>();
    for (const { act, runId, outcome, fromMs, toMs } of seen.done) {
      if (act.op !== "cancel" || outcome === undefined || runId === undefined) continue;
      asked.add(runId);
      const tries = triesOf(seen, runId);
      const later = tries.find((one) => one.fromMs > toMs);
      if (later) return `run ${runId}, cancelled at ${toMs}, began try ${later.attempt} at ${later.fromMs}`;
      const run = seen.runs.find(({ runId: id }) => id === runId);
      if (outcome === "cancelled" && run && run.state !== "cancelled")
        return `run ${runId} was cancelled, and is ${run.state}`;
      const last = tries.at(-1);
      const stoppedMs = toMs + promptMsOf(seen);
      const running = last && (last.end?.atMs ?? Number.POSITIVE_INFINITY) > stoppedMs;
      if (outcome === "stopping" && running && !(last.abort && last.abort.atMs <= stoppedMs))
        return `run ${runId} was not told to stop, though that was asked for at ${fromMs}`;
      if (last && wasTold(last, "CANCELLED") && run && run.state !== "cancelled")
        return `run ${runId} was told that it is cancelled, and is ${run.state}`;
    }
    for (const run of seen.runs) {
      if (run.state !== "cancelled" || asked.has(run.runId)) continue;
      const replaces = plansBetween(seen, run.of, run.createdMs, run.endedMs ?? 0).some(
        ({ overlap }) => overlap === "replace",
      );
      if (!replaces) return `run ${run.runId} of task ${run.of} is cancelled, which was not asked for`;
    }
    return undefined;
  },
};

/** An attempt that exceeds its task's timeout is aborted, and no attempt is aborted by the timeout earlier. */
export const timeouts: Rule = {
  name: "a try is stopped at its timeout",
  page: "task-options.md: timeout",
  check(seen) {
    for (const one of seen.tries) {
      // A run keeps the definition that was in force when it was claimed, also while it waits inside the worker for its start.
      const run = seen.runs.find(({ runId }) => runId === one.runId);
      const sinceMs = one.attempt === run?.attempt ? (run.claimedMs ?? run.createdMs) : (run?.createdMs ?? 0);
      const plans = plansBetween(seen, one.task, Math.min(sinceMs, one.fromMs), one.fromMs + 1);
      const limits = plans.map(({ timeout }) => timeout ?? Number.POSITIVE_INFINITY);
      const untilMs = one.end?.atMs ?? seen.endMs;
      const stoppedMs = one.abort?.atMs ?? untilMs;
      const longest = Math.max(...limits) + promptMsOf(seen);
      if (stoppedMs - one.fromMs > longest)
        return `run ${one.runId}, try ${one.attempt} ran for ${stoppedMs - one.fromMs} ms: limit ${limits}`;
      if (wasTold(one, "TIMEOUT") && stoppedMs - one.fromMs < Math.min(...limits) - seen.pace.slackMs)
        return `run ${one.runId}, try ${one.attempt} was stopped after ${stoppedMs - one.fromMs} ms: limit ${limits}`;
    }
    return undefined;
  },
};

/** A failed run has a dead letter, and no other run has one; a dead letter that was redriven is no longer open. */
export const letters: Rule = {
  name: "no failure without a letter",
  page: "operations.md: dead letters",
  check(seen) {
    for (const { runId, state, letter } of seen.runs) {
      if ((state === "failed") !== (letter !== null))
        return `run ${runId} is ${state}, and ${letter ? "a" : "no"} dead letter`;
      const again = seen.done.find(
        ({ act, created, runId: made }) =>
          act.op === "rerun" && created && made !== undefined && made === letter?.redrivenBy,
      );
      if (letter?.state === "redriven" && !again)
        return `the letter of run ${runId} is redriven, by a run that was not asked for`;
      const made = seen.runs.find(({ redrives }) => redrives === runId);
      if (letter?.state === "open" && made)
        return `the letter of run ${runId} is open, though run ${made.runId} was made of it`;
    }
    return undefined;
  },
};

/**
 * A task's counters are equal to the numbers of its ended runs, including runs of which the history keeps no row, and of its slots
 * without a run.
 */
export const tallies: Rule = {
  name: "counters are equal to what ended",
  page: "history.md",
  check(seen) {
    for (const [of, { counters, ranges, slots }] of seen.tasks.entries()) {
      const runs = seen.runs.filter((run) => run.of === of);
      const rows = new Set(runs.map(({ runId }) => runId));
      const gone = new Set(
        seen.tries.filter(({ task, runId }) => task === of && !rows.has(runId)).map(({ runId }) => runId),
      );
      const count = (state: string) => runs.filter((run) => run.state === state).length;
      const inRanges = (outcome: string) =>
        ranges.filter((r) => r.outcome === outcome).reduce((sum, r) => sum + (r.slots ?? 0), 0);
      const rowless = (outcome: string) =>
        slots.filter((slot) => slot.outcome === outcome && slot.runId === null).length;
      // A misfire policy skipped these runs: their state is "skipped", but the counters count their slots as missed.
      const givenUp = runs.filter(({ error }) => /"misfire: /.test(JSON.stringify(error))).length;
      const wanted = {
        succeeded: count("succeeded") + gone.size,
        failed: count("failed"),
        cancelled: count("cancelled"),
        skipped: count("skipped") - givenUp + inRanges("skipped") + rowless("skipped"),
        missed: givenUp + inRanges("missed") + rowless("missed"),
      };
      for (const [name, value] of Object.entries(wanted))
        if (counters[name as keyof typeof wanted] !== value)
          return `task ${of} counts ${counters[name as keyof typeof wanted]} ${name}, and there are ${value}`;
    }
    return undefined;
  },
};

/** Once every task is resumed and no group is limited, every run ends. */
export const quiet: Rule = {
  name: "all that was asked for ends",
  page: "states.md",
  check({ looks }) {
    const { live = [], atMs = 0 } = looks.at(-1) ?? {};
    const [run] = live;
    return run && `at ${atMs} run ${run.runId} of ${run.task} is ${run.state}`;
  },
};
