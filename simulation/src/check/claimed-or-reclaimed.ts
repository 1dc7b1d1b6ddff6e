import type { Checker } from "../history.ts";

/** Within this time in ms, a late verdict must be recorded, unless its process ends. */
const toldWithinMs = 100_000;

/**
 * Checks that no claim ends both by a verdict and by being reclaimed, that a claim is reclaimed only after its session has ended, and that
 * the late verdict of a reclaimed claim is recorded if its handler returned and its process lived on.
 */
export const claimedOrReclaimed: Checker = {
  invariant: "12: claimed or reclaimed, never both",
  check({ dump, clockErrorMs, executions, happenings, endMs }) {
    const ends = new Map<number, string>();
    const sessions = new Map(dump.session.map((row) => [row.id as number, row]));
    for (const row of dump.attempt) {
      const fence = row.fence as number;
      const run = row.run_id as number;
      const other = ends.get(fence);
      if (other) return { what: `fence ${fence} ended as ${other} and as ${row.outcome}`, run };
      ends.set(fence, String(row.outcome));
      if (row.outcome !== "lost") continue;
      const session = sessions.get(row.session_id as number);
      const endedMs = session?.ended_ms as number | null | undefined;
      if (endedMs == null || endedMs > (row.ended_ms as number) + 2 * clockErrorMs)
        return { what: `fence ${fence} was taken back while session ${row.session_id} lived`, run };
    }
    for (const row of dump.run_history) {
      const fence = row.fence as number | null;
      if (fence === null || (row.outcome as number) > 1) continue;
      const other = ends.get(fence);
      if (other) return { what: `fence ${fence} ended its run, and before that as ${other}`, run: row.id as number };
    }
    for (const { run_id, fence, outcome } of dump.late_result) {
      const run = run_id as number;
      const applied = dump.run_history.find((row) => row.id === run && row.fence === fence);
      if (applied && applied.outcome === outcome && outcome === 0)
        return { what: `its verdict under fence ${fence} was applied, and refused`, run };
    }
    for (const execution of executions) {
      const { run, fence, node, how, endMs: doneMs } = execution;
      if (ends.get(fence) !== "lost" || how !== "returned" || doneMs === null || doneMs > endMs - toldWithinMs)
        continue;
      const died = happenings.some(
        ({ atMs, what }) =>
          atMs >= doneMs && atMs < doneMs + toldWithinMs && what.startsWith(`${node} `) && / is | begins /.test(what),
      );
      const isTold = dump.late_result.some((row) => row.run_id === run && row.fence === fence);
      if (!died && !isTold)
        return { what: `its late verdict under fence ${fence} is recorded nowhere`, run, atMs: doneMs };
    }
    return undefined;
  },
};
