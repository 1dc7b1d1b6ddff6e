import type { Checker } from "../history.ts";
import { followerName } from "../plan/flow.ts";
import { byHand } from "./one-run-a-slot.ts";

/**
 * Longest time from a claim to its start, in ms. A run that was claimed before the follower was defined does not trigger the follower, even
 * if the run starts later.
 */
const claimedAheadMs = 5_000;
const openMs = 3_000;
const succeeded = 0;

/**
 * Checks that each success of the upstream task creates exactly one run of the following task, and that nothing else, except a rerun by
 * hand, creates one.
 */
export const followedOnce: Checker = {
  invariant: "14: each success begins what comes after it, once",
  check({ operations, dump, clockErrorMs, endStoreMs }) {
    const saved = operations.find(
      ({ kind, task, outcome }) => kind === "save" && task === followerName && outcome === "ok",
    );
    const follower = dump.task.find(({ name }) => name === followerName);
    const upstream = dump.task.find(({ name }) => name === saved?.definition?.after?.tasks[0]);
    if (!follower) return undefined;
    const begun = new Map<number, number>();
    for (const row of [...dump.run, ...dump.run_history]) {
      if (row.task_id !== follower.id || row.source === byHand) continue;
      const [run, parent] = [row.id as number, row.parent_id as number | null];
      if (parent === null) return { what: `it is of ${followerName}, and comes after nothing`, run };
      const other = begun.get(parent);
      if (other !== undefined) return { what: `it comes after run ${parent}, as run ${other} does`, run };
      begun.set(parent, run);
      if (!dump.run_history.some(({ id, outcome }) => id === parent && outcome === succeeded))
        return { what: `it comes after run ${parent}, which has not succeeded`, run };
    }
    if (!saved || !upstream) return undefined;
    const fromMs = (saved.endedStoreMs as number) + clockErrorMs + claimedAheadMs;
    for (const { id, task_id, outcome, started_ms, ended_ms } of dump.run_history) {
      const isWanted = task_id === upstream.id && outcome === succeeded && (started_ms as number) > fromMs;
      if (isWanted && (ended_ms as number) < endStoreMs - openMs && !begun.has(id as number))
        return { what: `it succeeded, and no run of ${followerName} came after it`, run: id as number };
    }
    return undefined;
  },
};
