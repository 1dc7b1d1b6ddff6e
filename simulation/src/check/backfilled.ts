import type { BackfillRange } from "../../../scheduler/src/run/operations.ts";
import type { Checker, History, Operation, Row } from "../history.ts";
import { accepted, isMadeDuring, lastStep, rowOf } from "../play/of-many.ts";
import { definitionsOf } from "./lost-workers.ts";
import { ofASlot, skipped } from "./one-run-a-slot.ts";
import { slotsBetween } from "./oracle.ts";
import { type Span, spansOf } from "./slots-accounted.ts";

type Found = ReturnType<Checker["check"]>;

/** Checks that a backfill creates one run for each slot of its range that has no run yet, and for no other slot. */
export const backfilled: Checker = {
  invariant: "19, 2: a backfill runs each slot of its range that has not run, once",
  check(history) {
    for (const asked of history.operations) {
      const row = asked.request?.kind === "backfill" ? rowOf(history.dump, asked) : undefined;
      const found = row && (made(asked, row, history) ?? left(asked, row, history));
      if (found) return { ...found, what: `backfill ${row.id} (${row.state}): ${found.what}`, task: asked.task };
    }
    return undefined;
  },
};

/** Checks that the runs of a backfill are in its range, and that their number matches the backfill's own count. */
function made(asked: Operation, row: Row, history: History): Found {
  const { dump, clockErrorMs } = history;
  const { fromMs, toMs } = row.range as BackfillRange;
  const runs = new Map([...dump.run, ...dump.run_history].map((run) => [run.id, run]));
  const own = ledgerOf(asked, history).filter(({ reason }) =>
    new RegExp(`\\bbackfill ${row.id}\\b`).test(String(reason)),
  );
  for (const { slot_ms, run_id, task_id } of own) {
    const slotMs = slot_ms as number;
    const run = runs.get(run_id);
    if (!run) return { what: `slot ${slotMs} has no run` };
    if (run.slot_ms !== slotMs || run.source !== ofASlot || run.task_id !== task_id)
      return { what: `run ${run_id} is not of its slot ${slotMs}`, run: run_id as number };
    const isOne = (definitionsOf(history).get(asked.task) ?? []).some(
      ({ schedule }) => slotsBetween(schedule, slotMs, slotMs).length > 0,
    );
    if (slotMs < fromMs || slotMs > toMs || !isOne) return { what: `slot ${slotMs} is none of its range` };
  }
  // The count may include further slots whose run was skipped later: the ledger says so, or another backfill has taken the slot.
  const perhaps = ledgerOf(asked, history).filter(
    (slot) =>
      !own.includes(slot) &&
      slot.run_id !== null &&
      (/: was skipped/.test(String(slot.reason)) ||
        (slot.outcome !== accepted && (isMadeDuring(slot, row, clockErrorMs) || wasSkippedBefore(slot, row, history)))),
  ).length;
  const done = row.done as number;
  return done < own.length || done > own.length + perhaps
    ? { what: `tells of ${done} slots, and the ledger of ${own.length}` }
    : undefined;
}

/**
 * True if the history has an earlier, skipped run of the slot that came due after this backfill began. Then another backfill has
 * taken the slot later, and its run was skipped too.
 */
function wasSkippedBefore({ task_id, slot_ms, run_id }: Row, { created_ms }: Row, { dump, clockErrorMs }: History) {
  return dump.run_history.some(
    (run) =>
      run.task_id === task_id &&
      run.slot_ms === slot_ms &&
      run.outcome === skipped &&
      run.id !== run_id &&
      (run.due_ms as number) >= (created_ms as number) - clockErrorMs,
  );
}

/**
 * Checks that the ledger has every slot of a finished backfill's range. If the backfill was to run missed slots, no slot that was
 * recorded as missed or skipped before the backfill may be left without a run.
 */
function left(asked: Operation, row: Row, history: History): Found {
  if (row.state !== "done") return undefined;
  const { dump, applied, clockErrorMs } = history;
  const untilMs = lastStep(applied, row)?.storeMs ?? (row.ended_ms as number);
  const span = spansOf(asked.task, history).find((one) => isWithin(one, asked.invokedStoreMs, untilMs, clockErrorMs));
  if (!span) return undefined;
  const { fromMs, toMs, missed } = row.range as BackfillRange;
  const expected = slotsBetween(span.definition.schedule, fromMs, Math.min(toMs, row.created_ms as number));
  if (expected.length !== row.total) return { what: `has ${expected.length} slots, and tells of ${row.total}` };
  const ledger = new Map(ledgerOf(asked, history).map((slot) => [slot.slot_ms, slot]));
  const [task] = dump.task.filter(({ name }) => name === asked.task);
  const ranges = dump.slot_range.filter(({ task_id }) => task_id === task?.id);
  const ended = new Map(dump.run_history.map((run) => [run.id, run]));
  const beganMs = (row.created_ms as number) - clockErrorMs;
  for (const slotMs of expected) {
    const slot = ledger.get(slotMs);
    const within = ranges.filter(({ from_ms, to_ms }) => slotMs >= (from_ms as number) && slotMs <= (to_ms as number));
    if (!slot && within.length === 0) return { what: `slot ${slotMs} has no run, and nothing tells of it` };
    if (!missed || slot?.outcome === accepted) continue;
    const run = ended.get(slot?.run_id);
    const toldMs = slot
      ? run?.outcome === skipped
        ? (run.ended_ms as number)
        : (slot.accepted_ms as number)
      : Math.max(...within.map(({ recorded_ms }) => recorded_ms as number));
    if (toldMs < beganMs) return { what: `slot ${slotMs} was told as missed or skipped before, and has no run` };
  }
  return undefined;
}

const isWithin = (span: Span, fromMs: number, toMs: number, errorMs: number) =>
  span.fromMs <= fromMs - errorMs && span.toMs >= toMs + errorMs;

function ledgerOf({ task }: Operation, { dump }: History): Row[] {
  const ids = new Set(dump.task.flatMap(({ id, name }) => (name === task ? [id] : [])));
  return dump.slot.filter(({ task_id }) => ids.has(task_id));
}
