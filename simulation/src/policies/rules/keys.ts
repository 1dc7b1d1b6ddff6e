import { isDeepStrictEqual } from "node:util";
import { endOf, type Rule, runOf, triesOf } from "./rule.ts";

/** At most one unfinished run of a task has a key, and an enqueue returns a run with its own key that lived at that time. */
export const oneLiveRunOfAKey: Rule = {
  name: "one live run of a key",
  page: "enqueue options: key",
  check(seen) {
    const { slackMs } = seen.pace;
    for (const { atMs, live } of seen.looks) {
      const keyed = new Map<string, number>();
      for (const { runId, task, key } of live) {
        if (key === null) continue;
        const other = keyed.get(`${task} ${key}`);
        if (other !== undefined) return `runs ${other} and ${runId} of ${task} have key ${key} at ${atMs}`;
        keyed.set(`${task} ${key}`, runId);
      }
    }
    // All pairs are compared in both directions: run numbers are drawn ahead in blocks, so they do not show which run was created first.
    for (const [i, a] of seen.runs.entries())
      for (const b of seen.runs.slice(i + 1)) {
        if (a.key === null || a.of !== b.of || a.key !== b.key) continue;
        if (a.createdMs + slackMs < endOf(b) && b.createdMs + slackMs < endOf(a))
          return `runs ${a.runId} and ${b.runId} of task ${a.of} with key ${a.key} lived at the same time`;
      }
    for (const { act, fromMs, toMs, runId, created, refused } of seen.done) {
      if (act.op !== "enqueue" || act.key === undefined || refused || runId === undefined) continue;
      const run = runOf(seen, runId);
      if (!run) continue; // the run succeeded, and its task keeps only failures
      if (run.key !== act.key) return `an enqueue with key ${act.key} was given run ${runId} with key ${run.key}`;
      if (created === false && (run.createdMs > toMs + slackMs || endOf(run) < fromMs - slackMs))
        return `an enqueue with key ${act.key} at ${fromMs} was given run ${runId}, which did not live then`;
    }
    return undefined;
  },
};

/**
 * An enqueue with `again` creates a run once the run with the same key has ended, unless a later enqueue with `again` takes the
 * place of the first one.
 */
export const followsItsKey: Rule = {
  name: "once more after the run of the key",
  page: "runs.md: one run of a key",
  check(seen) {
    for (const [place, { act, runId, again }] of seen.done.entries()) {
      if (act.op !== "enqueue" || !again || runId === undefined) continue;
      const isLater = seen.done.slice(place + 1).some((one) => one.again && one.runId === runId);
      const keepsFailures = seen.tasks[act.task]?.plans.some(({ plan }) => plan.history === "failures");
      if (isLater || keepsFailures) continue;
      const holder = runOf(seen, runId);
      // A run that continues as another run passes its key on, so any run with this key that was created after the end counts.
      const after = seen.runs.filter(
        (run) => run.of === act.task && run.key === act.key && holder && run.createdMs >= endOf(holder),
      );
      if (!after.some(({ payload }) => isDeepStrictEqual(payload, JSON.parse(JSON.stringify(act.does)))))
        return `an enqueue with key ${act.key} was to follow run ${runId} of task ${act.task}, and nothing of its payload did`;
    }
    return undefined;
  },
};

/** A run is replaced only by an enqueue with `ifTaken` and the same key, and only before its first attempt. */
export const replacedByItsKey: Rule = {
  name: "what an enqueue replaces",
  page: "runs.md: one run of a key",
  check(seen) {
    for (const { act, runId, replaced } of seen.done) {
      if (act.op !== "enqueue" || replaced === undefined || runId === undefined) continue;
      const old = runOf(seen, replaced);
      if (act.ifTaken === undefined) return `run ${replaced} was replaced by an enqueue that did not ask for it`;
      if (old && (old.state !== "skipped" || old.key !== act.key || triesOf(seen, replaced).length > 0))
        return `run ${replaced} is ${old.state} with key ${old.key}, and was replaced by run ${runId} with key ${act.key}`;
    }
    return undefined;
  },
};

/** A rerun has the task, payload, key, limit key, priority and slot of the old run. */
export const againAlike: Rule = {
  name: "a run made again is like the old one",
  page: "operations.md: dead letters",
  check(seen) {
    for (const { act, runId, created } of seen.done) {
      if (act.op !== "rerun" || !created || runId === undefined) continue;
      const run = runOf(seen, runId);
      const old = seen.runs.find(({ runId: id }) => id === run?.redrives);
      if (!run || !old) continue;
      // "" and null are equal here: "" is the limit key of a run without key if its task limits by key, which an edit may have changed.
      if ((run.limitKey || null) !== (old.limitKey || null))
        return `run ${runId} has limitKey ${run.limitKey}, and ${old.runId}, of which it was made, ${old.limitKey}`;
      for (const part of ["of", "key", "priority", "slotMs"] as const)
        if (run[part] !== old[part])
          return `run ${runId} has ${part} ${run[part]}, and ${old.runId}, of which it was made, ${old[part]}`;
      if (JSON.stringify(run.payload) !== JSON.stringify(old.payload))
        return `run ${runId} has not the payload of ${old.runId}`;
    }
    return undefined;
  },
};
