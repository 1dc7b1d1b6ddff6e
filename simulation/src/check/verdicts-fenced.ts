import type { Checker } from "../history.ts";
import { claimsOf } from "./claims.ts";

/** Checks that the success or failure of a run belongs to its last claim, and that the handler of a succeeded run returned. */
export const verdictsFenced: Checker = {
  invariant: "8: no verdict under an older fence, and none that no handler came to",
  check(history) {
    const { dump, executions } = history;
    const last = new Map<number, number>();
    for (const { run, fence } of claimsOf(history).values()) last.set(run, Math.max(fence, last.get(run) ?? 0));
    const byFence = new Map(executions.map((execution) => [execution.fence, execution]));
    for (const row of dump.run_history) {
      const [run, fence, outcome] = [row.id as number, row.fence as number | null, row.outcome as number];
      if (outcome > 1 || fence === null) continue;
      if (last.get(run) !== fence) return { what: `it ended under fence ${fence}, its last is ${last.get(run)}`, run };
      const execution = byFence.get(fence);
      if (
        execution &&
        !execution.toldAgo &&
        row.started_ms !== null &&
        row.started_ms !== Math.round(execution.believedMs)
      )
        return { what: `its end under fence ${fence} tells of another start than that fence's`, run };
      if (outcome !== 0) continue;
      if (execution?.how !== "returned")
        return { what: `it succeeded under fence ${fence}, whose handler came to ${execution?.how ?? "nothing"}`, run };
    }
    for (const { run_id, fence, outcome } of dump.attempt) {
      const execution = byFence.get(fence as number);
      if (outcome === "failed" && execution?.how === "returned" && !execution.deaf)
        return { what: `it was tried again under fence ${fence}, whose handler returned`, run: run_id as number };
    }
    return undefined;
  },
};
