import { type BackfillRange, likeOf } from "../../../scheduler/src/run/operations.ts";
import type { Applied, Dump, Operation, Row } from "../history.ts";

/** The number by which the store encodes the outcome of a slot that became a run. */
export const accepted = 1;

/** True if the operation's filter includes the task. */
export function isMeant({ request }: Operation, task: string): boolean {
  const { task: named, matching } = request?.filter ?? {};
  if (named !== undefined) return named === task;
  return matching === undefined || new RegExp(`^${likeOf(matching).replaceAll("%", ".*")}$`).test(task);
}

/** Returns the row of a requested operation. The reason of each operation is the id of its request. */
export const rowOf = ({ operation }: Pick<Dump, "operation">, { id }: Operation): Row | undefined =>
  operation.find(({ reason }) => reason === id);

/** Returns the statement with which the operation's last step ended; the operation does nothing after it. */
export const lastStep = (applied: readonly Applied[], { id }: Row): Applied | undefined =>
  applied.findLast(
    ({ name, values }) => (name === "operation-settle" || name === "operation-advance") && values[0] === id,
  );

/** True if a backfill may have created the slot's run. The slot's reason says so, unless that run was skipped later. */
export function isCaughtUp(slot: Row, { operation }: Pick<Dump, "operation">, errorMs: number): boolean {
  if (/\bbackfill \d+/.test(String(slot.reason))) return true;
  if (slot.run_id === null || slot.outcome === accepted) return false;
  return operation.some((row) => isMadeDuring(slot, row, errorMs));
}

/** True if the row is a backfill whose range includes the slot, and if the slot was accepted while the backfill was carried out. */
export function isMadeDuring(slot: Row, { kind, range, created_ms, ended_ms }: Row, errorMs: number): boolean {
  if (kind !== "backfill") return false;
  const { fromMs, toMs } = range as BackfillRange;
  const [slotMs, acceptedMs] = [slot.slot_ms as number, slot.accepted_ms as number];
  const untilMs = (ended_ms as number | null) ?? Number.POSITIVE_INFINITY;
  return (
    slotMs >= fromMs &&
    slotMs <= toMs &&
    acceptedMs >= (created_ms as number) - errorMs &&
    acceptedMs <= untilMs + errorMs
  );
}

/**
 * Adds one operation per task for each pause or resume of many tasks, for the checks that follow the state of a task.
 * @returns all operations, in order
 */
export function withThoseOfMany(
  operations: readonly Operation[],
  applied: readonly Applied[],
  dump: Pick<Dump, "operation" | "task">,
): Operation[] {
  const told = operations.flatMap((asked): Operation[] => {
    const { kind } = asked.request ?? {};
    const row = rowOf(dump, asked);
    if (!row || (kind !== "pause" && kind !== "resume")) return [];
    const last = lastStep(applied, row);
    const hasEnded = row.ended_ms !== null && row.state !== "failed";
    const endedMs = hasEnded ? (last?.atMs ?? asked.invokedMs) : null;
    const { id, node, invokedMs, invokedStoreMs } = asked;
    const tasks = [...new Set(dump.task.map(({ name }) => name as string))].filter((task) => isMeant(asked, task));
    return tasks.map((task) => ({
      id: `${id} of ${task}`,
      kind: `${kind} task`,
      node,
      task,
      invokedMs,
      invokedStoreMs,
      endedMs,
      isOfMany: true,
      endedStoreMs: hasEnded ? (last?.storeMs ?? invokedStoreMs) : null,
      outcome:
        row.state === "done" && row.failed === 0 && wasThere(operations, task, invokedMs, endedMs) ? "ok" : "unknown",
    }));
  });
  return [...operations, ...told].sort((a, b) => a.invokedMs - b.invokedMs);
}

/** True if the task certainly existed during the whole period. */
function wasThere(operations: readonly Operation[], task: string, fromMs: number, toMs: number | null): boolean {
  const own = operations.filter((one) => one.task === task && (one.kind === "save" || one.kind === "remove task"));
  const before = own.filter(({ invokedMs }) => invokedMs <= fromMs);
  const saved = before.at(-1);
  return (
    toMs !== null &&
    saved?.kind === "save" &&
    saved.outcome === "ok" &&
    // All earlier requests must have ended before this save, because a request of a suspended process could be carried out later.
    before.every((one) => one.endedMs !== null && one.endedMs <= (one === saved ? fromMs : saved.invokedMs)) &&
    own.every(({ invokedMs }) => invokedMs <= fromMs || invokedMs > toMs)
  );
}
