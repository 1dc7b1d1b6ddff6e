import type { TaskDefinition } from "../../../scheduler/src/task/task.ts";
import type { Checker, History, Operation } from "../history.ts";
import { isCaughtUp } from "../play/of-many.ts";
import { slotsBetween } from "./oracle.ts";

/** Runs that are due within this time in ms after an edit may have been claimed already, so the edit does not withdraw them. */
const aheadMs = 1_500;
const openMs = 3_000;

export interface Span {
  readonly definition: TaskDefinition;
  readonly fromMs: number;
  readonly toMs: number;
  readonly next: string;
}

/**
 * Checks the periods in which a task was certainly enabled under one definition: each of its slots is in the ledger (the table of accepted
 * slots) or in a recorded range, and the ledger has no other slot. Surplus slots of fixed delays are not checked.
 */
export const slotsAccounted: Checker = {
  invariant: "2, 5: every slot accounted for, none invented",
  check(history) {
    const { dump, endStoreMs, clockErrorMs } = history;
    // When each run ended, by its id.
    const endOf = new Map(dump.run_history.map(({ id, ended_ms }) => [id as number, ended_ms as number]));
    for (const row of dump.task) {
      const [task, id] = [row.name as string, row.id as number];
      const own = dump.slot.filter(({ task_id }) => task_id === id);
      const ledger = new Set(own.map(({ slot_ms }) => slot_ms as number));
      // Slots that a backfill created follow the schedule at the time of the backfill, so backfilled.ts checks them.
      const caughtUp = new Set(
        own.flatMap((slot) => (isCaughtUp(slot, dump, clockErrorMs) ? [slot.slot_ms as number] : [])),
      );
      const ranges = dump.slot_range.filter(({ task_id }) => task_id === id);
      const endedMs = new Map(
        own.map(({ slot_ms, run_id }) => [slot_ms as number, endOf.get(run_id as number) ?? Number.POSITIVE_INFINITY]),
      );
      const isTold = (slotMs: number) =>
        ledger.has(slotMs) ||
        ranges.some(({ from_ms, to_ms }) => slotMs >= (from_ms as number) && slotMs <= (to_ms as number));
      for (const { definition, fromMs, toMs, next } of spansOf(task, history)) {
        const from = fromMs + clockErrorMs + 50;
        const to = Math.min(toMs - clockErrorMs - 50, endStoreMs - openMs);
        const expected = new Set(slotsBetween(definition.schedule, from, to));
        const why = () =>
          `${JSON.stringify(definition.schedule)} from ${Math.round(fromMs)} to ${Math.round(toMs)} (${next})`;
        for (const slotMs of expected)
          if (!isTold(slotMs))
            return {
              what: `slot ${slotMs} of ${task} is not accounted for: ${why()}`,
              task,
              atMs: slotMs - history.epochMs,
            };
        if (definition.schedule.type === "every" && definition.schedule.mode === "delay") continue;
        for (const slotMs of ledger) {
          if (slotMs <= from + aheadMs || slotMs >= to || expected.has(slotMs) || caughtUp.has(slotMs)) continue;
          if ((endedMs.get(slotMs) as number) > fromMs)
            return {
              what: `slot ${slotMs} of ${task} is none of its schedule's: ${why()}`,
              task,
              atMs: slotMs - history.epochMs,
            };
        }
      }
    }
    return undefined;
  },
};

/** Returns the periods in which a task's state is certain: each from the end of one change to the beginning of the next. */
export function spansOf(task: string, { operations, endStoreMs }: History): Span[] {
  const changes = operations.filter(
    (one) => one.task === task && /save|task$/.test(one.kind) && one.outcome !== "refused",
  );
  const spans: Span[] = [];
  let definition: TaskDefinition | null | undefined = null;
  let paused: boolean | undefined = false;
  let fromMs = 0;
  for (const [i, change] of [...changes, undefined].entries()) {
    const toMs = change?.invokedStoreMs ?? endStoreMs;
    if (definition && paused === false && fromMs < toMs)
      spans.push({ definition, fromMs, toMs, next: change?.id ?? "the end" });
    if (!change) break;
    if (change.endedStoreMs === null) break; // the change may be applied at any time, so no later state is certain
    const overlaps = changes.some((other, j) => j !== i && overlap(change, other));
    fromMs = Math.max(fromMs, change.endedStoreMs);
    if (change.outcome === "unknown" || overlaps) {
      if (change.kind === "save" || change.kind === "remove task" || overlaps) definition = undefined;
      if (change.kind !== "save" || overlaps) paused = undefined;
      continue;
    }
    if (change.kind === "save") {
      if (definition === null) paused = false;
      if (definition === undefined && paused !== false) paused = undefined;
      definition = change.definition;
    } else if (change.kind === "remove task") {
      definition = null;
      paused = false;
    } else if (definition !== null) paused = change.kind === "pause task";
  }
  return spans;
}

const overlap = (a: Operation, b: Operation): boolean =>
  a.invokedMs <= (b.endedMs ?? Number.POSITIVE_INFINITY) && b.invokedMs <= (a.endedMs ?? Number.POSITIVE_INFINITY);
