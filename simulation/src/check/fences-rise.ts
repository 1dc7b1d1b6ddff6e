import { type Checker, wentBack } from "../history.ts";

/**
 * Checks, in the server's order, that a later claim of the same run has a higher fence, and a later term a higher number; that the last
 * fences of two runs differ; and, without a coordination service, that no term begins while the former leader's session lives and has not
 * resigned.
 */
export const fencesRise: Checker = {
  invariant: "7: fences and terms rise",
  check({ applied, dump, coordination }) {
    const highest = new Map<number, number>();
    let term = 0;
    let leader: number | null = null;
    for (const { name, rows, values, atMs } of applied) {
      if (name === "session-end" && rows.length > 0 && values[0] === leader) leader = null;
      if (name === wentBack) leader = null;
      if (name === "session-resign" && values[0] === term) leader = null;
      if (name === "claim" || name === "claim-turn") {
        for (const row of rows) {
          if (row.runId === null) continue;
          const [run, fence] = [row.runId as number, row.fence as number];
          if (fence <= (highest.get(run) ?? 0)) return { what: `fence ${fence} after ${highest.get(run)}`, run, atMs };
          highest.set(run, fence);
        }
      }
      if (name !== "session-campaign" || rows.length === 0) continue;
      const next = rows[0]?.term as number;
      if (next <= term) return { what: `term ${next} after ${term}`, atMs };
      if (leader !== null && !coordination)
        return { what: `term ${next} began while session ${leader} led and lived`, atMs };
      term = next;
      leader = values[0] as number;
    }
    const terms = dump.term.map((row) => row.term as number);
    if (new Set(terms).size !== terms.length) return { what: `a term was given twice: ${terms.join(" ")}` };
    const fences = [...highest.values()];
    return new Set(fences).size === fences.length ? undefined : { what: "two runs have the same fence" };
  },
};
