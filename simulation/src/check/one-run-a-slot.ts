import type { Checker, Dump } from "../history.ts";

/** Numbers by which the store encodes sources of runs (the first two) and an outcome. */
export const ofASlot = 1;
export const byHand = 3;
export const skipped = 3;

/** Returns the ids of runs that were rerun by hand, and of the runs that follow them; both may have the slot of an earlier run. */
function askedAgain(dump: Dump): Set<number> {
  const again = new Set<number>();
  const rows = [...dump.run, ...dump.run_history].sort((a, b) => (a.id as number) - (b.id as number));
  for (const { id, source, parent_id } of rows)
    if (source === byHand || again.has(parent_id as number)) again.add(id as number);
  return again;
}

/**
 * Checks that a slot has one run, apart from reruns and from backfills of skipped runs; that a run ends once; and that a fence belongs to
 * one execution.
 */
export const oneRunASlot: Checker = {
  invariant: "1: one run a slot, one accepted completion",
  check({ dump, executions }) {
    const isBackfilled = dump.operation.some(({ kind }) => kind === "backfill");
    const ofSlot = new Map<string, number>();
    const ended = new Set<number>();
    for (const row of dump.run_history) {
      const id = row.id as number;
      if (ended.has(id)) return { what: `run ${id} is twice in history`, run: id };
      ended.add(id);
    }
    for (const row of [...dump.run, ...dump.run_history]) {
      const id = row.id as number;
      if (row.slot_ms === null || row.source !== ofASlot) continue;
      // A backfill may create a second run for a slot whose run was skipped.
      if (isBackfilled && row.outcome === skipped) continue;
      const slot = `${row.task_id} ${row.slot_ms}`;
      const other = ofSlot.get(slot);
      if (other !== undefined && other !== id)
        return { what: `runs ${other} and ${id} are both of slot ${slot}`, run: id };
      ofSlot.set(slot, id);
    }
    for (const { id } of dump.run)
      if (ended.has(id as number)) return { what: `run ${id} lives and has ended`, run: id as number };
    const again = askedAgain(dump);
    const started = new Map<string, number>();
    const fences = new Map<number, number>();
    for (const { run, task, slotMs, fence, startMs } of executions) {
      const before = fences.get(fence);
      if (before !== undefined) return { what: `fence ${fence} was started twice`, run, atMs: startMs };
      fences.set(fence, run);
      if (slotMs === null || again.has(run)) continue;
      const slot = `${task} ${slotMs}`;
      const other = started.get(slot);
      if (other !== undefined && other !== run)
        return { what: `slot ${slot} was started as run ${other} and as run ${run}`, run, atMs: startMs };
      started.set(slot, run);
    }
    return undefined;
  },
};
