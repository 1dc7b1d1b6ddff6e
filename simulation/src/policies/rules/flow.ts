import type { Rule } from "./rule.ts";

/** Each end of the kind that a task comes after begins one run of it. */
export const follows: Rule = {
  name: "what comes after begins once for each end",
  page: "policies.md: after",
  check(seen) {
    for (const [task, { after }] of seen.scenario.tasks.entries()) {
      if (!after) continue;
      const upstream = seen.runs.filter(({ of }) => of === after.task);
      // Of a task whose successes are counted alone, rows stay where others come after it.
      const begins = (state: string) =>
        (state === "succeeded" && after.on !== "failure") || (state === "failed" && after.on !== "success");
      const wanted = upstream.filter(({ state }) => begins(state)).length;
      const made = seen.runs.filter(({ of, source }) => of === task && source === "after").length;
      if (made !== wanted)
        return `${made} runs of task ${task} came after task ${after.task}, and ${wanted} of its runs ended so (${after.on})`;
    }
    return undefined;
  },
};

/** A run that fans out has its children, and one run that joins them once all have ended. */
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
    const children = seen.runs.filter(({ of, source }) => of === first.task && source === "child");
    const wanted = spawns.reduce((sum, one) => sum + (one?.children ?? 0), 0);
    if (children.length !== wanted)
      return `${children.length} children of task ${first.task} for ${parents.length} parents: ${wanted}`;
    const again = new Set(
      seen.done.filter(({ act, created }) => act.op === "rerun" && created).map(({ runId }) => runId),
    );
    const made = seen.runs.filter(
      ({ of, source, runId }) => of === first.join && source === "join" && !again.has(runId),
    );
    if (made.length !== parents.length) return `${made.length} runs join the children of ${parents.length} parents`;
    return undefined;
  },
};
