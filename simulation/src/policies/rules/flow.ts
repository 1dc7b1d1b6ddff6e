import { isFirst, type Rule } from "./rule.ts";

/** Each run of the followed task that ends with the wanted result (`after.on`) creates exactly one run of the following task. */
export const follows: Rule = {
  name: "what comes after begins once for each end",
  page: "policies.md: after",
  check(seen) {
    for (const [task, { after }] of seen.scenario.tasks.entries()) {
      if (!after) continue;
      const upstream = seen.runs.filter(({ of }) => of === after.task);
      // All rows of the followed task exist: even with a history of failures only, successes keep their rows if another task follows.
      const begins = (state: string) =>
        (state === "succeeded" && after.on !== "failure") || (state === "failed" && after.on !== "success");
      const wanted = upstream.filter(({ state }) => begins(state)).length;
      const made = seen.runs.filter((run) => run.of === task && run.source === "after" && isFirst(run)).length;
      if (made !== wanted)
        return `${made} runs of task ${task} came after task ${after.task}, and ${wanted} of its runs ended so (${after.on})`;
    }
    return undefined;
  },
};

/** A run that fans out has all its children, and exactly one run that joins them. */
export const joins: Rule = {
  name: "children are joined once",
  page: "flow.md",
  check(seen) {
    const parents = seen.runs.filter(({ runId, state }) => {
      const does = seen.tries.find((one) => one.runId === runId)?.does;
      return does?.spawns && state === "succeeded";
    });
    const spawns = parents.map(({ runId }) => seen.tries.find((one) => one.runId === runId)?.does.spawns);
    const [first] = spawns;
    if (!first) return undefined;
    const children = seen.runs.filter((run) => run.of === first.task && run.source === "child" && isFirst(run));
    const wanted = spawns.reduce((sum, one) => sum + (one?.children ?? 0), 0);
    if (children.length !== wanted)
      return `${children.length} children of task ${first.task} for ${parents.length} parents: ${wanted}`;
    const again = new Set(
      seen.done.filter(({ act, created }) => act.op === "rerun" && created).map(({ runId }) => runId),
    );
    const made = seen.runs.filter(
      (run) => run.of === first.join && run.source === "join" && !again.has(run.runId) && isFirst(run),
    );
    if (made.length !== parents.length) return `${made.length} runs join the children of ${parents.length} parents`;
    return undefined;
  },
};

/** A run in parts has each part exactly once. The rule checks that each part number occurs as often as the first one. */
export const parts: Rule = {
  name: "a run has all of its parts",
  page: "routing.md",
  check(seen) {
    for (const [task, { plans }] of seen.tasks.entries()) {
      // With a `history` option, successful parts may have no row, so they cannot be counted.
      if (plans.some(({ plan }) => plan.history)) continue;
      /** The number of runs of each part, by the total number of parts. */
      const counts = new Map<number, number[]>();
      for (const { of, shard, source } of seen.runs) {
        // A rerun repeats only one part, so it is not counted.
        if (of !== task || !shard || source === "manual") continue;
        const [index, total] = shard;
        if (index >= total) return `a run of task ${task} is part ${index} of ${total}`;
        const ofEach = counts.get(total) ?? Array<number>(total).fill(0);
        counts.set(total, ofEach.with(index, (ofEach[index] as number) + 1));
      }
      for (const [total, [first, ...others]] of counts) {
        const at = others.findIndex((count) => count !== first);
        if (at >= 0)
          return `task ${task} has part ${at + 1} of ${total} ${others[at]} times, and the first one ${first} times`;
      }
    }
    return undefined;
  },
};
