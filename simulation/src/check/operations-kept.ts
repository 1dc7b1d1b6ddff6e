import type { OperationFilter } from "../../../scheduler/src/run/operations.ts";
import { type Outcome, outcomes } from "../../../scheduler/src/run/run.ts";
import type { Checker, Dump, History, Operation, Row } from "../history.ts";
import { isMeant, lastStep } from "../play/of-many.ts";
import { claimsOf } from "./claims.ts";
import { byHand } from "./one-run-a-slot.ts";

/**
 * The longest time in ms in which an operation ends without faults, in addition to the time that its rate takes. Another process takes over
 * a dead process's batch after 5 s.
 */
const endsWithinMs = 15_000;
/** Age in ms after which a change is either committed or will never be. */
const committedMs = 30_000;
/** The longest delay in ms of a recorded end, because its process was cut off or the store was unreachable. */
const heldUpMs = 150_000;
/** Errors with which an operation may fail: its task was removed, or the task's slots can no longer be computed. */
const mayBreak = /^(?:TASK_UNKNOWN|OPTION_INVALID)/;
const [cancelled, dismissed] = [2, 2];

type Found = ReturnType<Checker["check"]>;

/**
 * Checks that the store has exactly the requested operations on many runs or tasks, that each of them comes to its end and leaves out no
 * target, and that its counts match its effects.
 */
export const operationsKept: Checker = {
  invariant: "19: an operation is begun once, comes to its end, and counts what it did",
  check(history) {
    const { operations, dump } = history;
    for (const asked of operations) {
      const wrong = asked.kind === "begin operation" ? begun(asked, history) : stop(asked, history);
      if (wrong) return wrong;
    }
    for (const row of dump.operation) {
      const asked = operations.find(({ id }) => id === row.reason);
      if (!asked) return { what: `operation ${row.id} was asked for by nobody` };
      const wrong = ended(row, history) ?? counted(asked, row, history) ?? left(asked, row, history);
      if (wrong) return { ...wrong, what: `operation ${row.id} (${row.kind}, ${row.state}): ${wrong.what}` };
    }
    const again = dump.operation.filter(({ kind }) => kind === "rerun" || kind === "redrive");
    const said = again.reduce((sum, { done }) => sum + (done as number), 0);
    const made = [...dump.run, ...dump.run_history].filter(({ source }) => source === byHand).length;
    return said === made ? undefined : { what: `${made} runs were made anew, and operations tell of ${said}` };
  },
};

function begun(asked: Operation, { dump }: History): Found {
  const { id, outcome, answer } = asked;
  const rows = dump.operation.filter(({ reason }) => reason === id);
  const [least, most] = outcome === "ok" ? [1, 1] : outcome === "refused" ? [0, 0] : [0, 1];
  if (rows.length < least || rows.length > most) return { what: `${id} (${outcome}) began ${rows.length} operations` };
  const [row] = rows;
  if (!row) return undefined;
  if (outcome === "ok" && answer !== `operation ${row.id}`) return { what: `${id} was told of ${answer}: ${row.id}` };
  const entries = dump.audit.filter(({ named, act }) => named === String(row.id) && act === row.kind).length;
  return entries === 1 ? undefined : { what: `operation ${row.id} has ${entries} entries of its beginning` };
}

function stop({ kind, id, outcome, operationId }: Operation, { dump }: History): Found {
  const row = dump.operation.find((one) => one.id === operationId);
  if (kind !== "stop operation" || outcome !== "ok" || !row) return undefined;
  return row.state === "stopped" || row.state === "stopping" || row.state === "failed"
    ? undefined
    : { what: `${id} stopped operation ${row.id}, which is ${row.state}` };
}

function ended({ ended_ms, created_ms, range, total, state, error }: Row, history: History): Found {
  const { endStoreMs, epochMs, recoveredMs, clockErrorMs, slackMs } = history;
  if (state === "failed" && !mayBreak.test(String(error))) return { what: `was broken off: ${error}` };
  const perSecond = (range as { perSecond: number | null } | null)?.perSecond;
  const paceMs = perSecond ? ((total as number) * 1_000) / perSecond : 0;
  const openMs = endStoreMs - Math.max(created_ms as number, epochMs + recoveredMs);
  if (ended_ms === null && openMs > endsWithinMs + paceMs + 2 * clockErrorMs + slackMs)
    return { what: `open for ${Math.round(openMs)} ms with everything in order` };
  return undefined;
}

function counted(asked: Operation, row: Row, history: History): Found {
  const { dump } = history;
  const { total, done, passed, late, failed } = row as Record<"total" | "done" | "passed" | "late" | "failed", number>;
  const sum = done + passed + late + failed;
  if (row.state === "done" ? sum !== total : sum > total)
    return { what: `${done} done, ${passed} passed, ${late} too late and ${failed} failed, of ${total}` };
  const most = mostOf(asked, row, history);
  if (sum > most) return { what: `acted on ${sum}, where ${most} were to be acted on` };
  const letters = dump.dead_letter.filter(({ operation_id }) => operation_id === row.id);
  if (row.kind === "redrive" || row.kind === "dismiss") {
    if (letters.length !== done) return { what: `tells of ${done} letters, and has ${letters.length}` };
    if (row.kind === "dismiss" && letters.some(({ state }) => state !== dismissed))
      return { what: "dismissed a letter, which is not" };
  }
  const made = letters.flatMap(({ redriven_by }) => (redriven_by === null ? [] : [redriven_by]));
  if (new Set(made).size !== made.length) return { what: "one run stands for two letters" };
  const own = dump.run_history.filter(({ outcome, why }) => outcome === cancelled && why === row.reason).length;
  // A stop ends the operation at once; runs whose workers it had asked to stop them may be cancelled later, and count no more.
  return own > done + (row.asked as number)
    ? { what: `tells of ${done} runs and has asked for ${row.asked}, and ${own} were cancelled by it` }
    : undefined;
}

/** Returns an upper bound of the number of targets that an operation can have found. */
function mostOf(asked: Operation, row: Row, { dump, clockErrorMs, operations }: History): number {
  const { created_ms, last_run_id } = row;
  const filter = row.filter as OperationFilter;
  const names = new Map(dump.task.map(({ id, name }) => [id, name as string]));
  const isOfIts = ({ task_id }: Row) => isMeant(asked, names.get(task_id) ?? "");
  const [sinceMs, beganMs] = [filter.sinceMs ?? 0, created_ms as number];
  const endedMs = (row.ended_ms as number | null) ?? Number.POSITIVE_INFINITY;
  const states = filter.states ?? ["failed"];
  switch (row.kind) {
    case "pause":
    case "resume":
      return dump.task.filter(({ name }) => isMeant(asked, name as string)).length;
    case "rerun":
      return dump.run_history.filter(
        (run) =>
          isOfIts(run) &&
          states.includes(outcomes[run.outcome as number] as Outcome) &&
          (run.ended_ms as number) >= sinceMs &&
          // Runs that ended while the operation was carried out count too, because the operation may not have reached them yet.
          (run.ended_ms as number) <= endedMs + clockErrorMs,
      ).length;
    case "cancel": {
      const ended = dump.run_history.filter((run) => (run.ended_ms as number) > beganMs - heldUpMs - clockErrorMs);
      const there = [...dump.run, ...ended].filter(
        (run) => isOfIts(run) && (run.id as number) <= (last_run_id as number),
      ).length;
      return there + withdrawnBeside(asked, row, dump, operations);
    }
    case "backfill":
      return Number.POSITIVE_INFINITY; // backfilled.ts checks the slots of backfills
    default:
      return dump.dead_letter.filter(isOfIts).length;
  }
}

/** Returns an upper bound of the number of runs that a concurrent pause, edit or removal has withdrawn without leaving a row. */
function withdrawnBeside(asked: Operation, row: Row, dump: Dump, operations: readonly Operation[]): number {
  const [beganMs, endedMs] = [row.created_ms as number, (row.ended_ms as number | null) ?? Number.POSITIVE_INFINITY];
  const isBeside = operations.some(
    ({ kind, task, invokedStoreMs, endedStoreMs }) =>
      (kind === "save" || kind === "pause task" || kind === "remove task") &&
      isMeant(asked, task) &&
      invokedStoreMs <= endedMs &&
      (endedStoreMs ?? Number.POSITIVE_INFINITY) >= beganMs,
  );
  if (!isBeside) return 0;
  const known = new Set([...dump.run, ...dump.run_history].map(({ id }) => id as number));
  return Array.from({ length: row.last_run_id as number }, (_, i) => i + 1).filter((id) => !known.has(id)).length;
}

/** Finds targets that existed when the operation began, and on which it did not act. */
function left(asked: Operation, row: Row, history: History): Found {
  if (row.state !== "done" || row.failed !== 0) return undefined;
  const { dump, applied } = history;
  const names = new Map(dump.task.map(({ id, name }) => [id, name as string]));
  if (row.kind === "cancel") {
    const overMs = lastStep(applied, row)?.atMs ?? asked.invokedMs;
    const born = bornBefore(asked, history);
    const claims = [...claimsOf(history).values()];
    const claim = claims.find(
      ({ run, atMs }) => atMs > overMs && born.has(run) && isMeant(asked, names.get(born.get(run)) ?? ""),
    );
    return claim && { what: "had it cancelled, and it was claimed again", run: claim.run, atMs: claim.atMs };
  }
  if (row.kind !== "redrive" && row.kind !== "dismiss") return undefined;
  const failures = applied.filter(({ name }) => name === "settle-finish-failed");
  const letter = dump.dead_letter.find(({ run_id, task_id, state }) => {
    if (state !== 0 || !isMeant(asked, names.get(task_id) ?? "")) return false;
    const told = failures.findLast(({ values }) => numbersOf(values[0]).includes(run_id as number));
    return told !== undefined && told.atMs < asked.invokedMs - committedMs;
  });
  return letter && { what: "left its letter open", run: letter.run_id as number };
}

/** Parses the numbers of an array in PostgreSQL's text form, as the server receives it. */
const numbersOf = (array: unknown) => String(array).slice(1, -1).split(",").map(Number);

/** Returns the runs that certainly existed when the operation began, with the ids of their tasks. */
function bornBefore(asked: Operation, { operations, dump, clockErrorMs }: History): Map<number, unknown> {
  const acknowledged = new Set(
    operations.flatMap(({ run, endedMs, outcome, kind }) =>
      kind === "enqueue" && outcome === "ok" && (endedMs as number) < asked.invokedMs ? [run] : [],
    ),
  );
  const beforeMs = asked.invokedStoreMs - committedMs - clockErrorMs;
  for (const { run_id, accepted_ms } of dump.slot)
    if (run_id !== null && (accepted_ms as number) < beforeMs) acknowledged.add(run_id as number);
  const runs = [...dump.run, ...dump.run_history].filter(({ id }) => acknowledged.has(id as number));
  return new Map(runs.map(({ id, task_id }) => [id as number, task_id]));
}
