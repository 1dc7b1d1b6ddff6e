import type {
  BackfillRange,
  OperationFilter,
  OperationKind,
  OperationRecord,
  OperationState,
} from "../../../run/operations.ts";
import type { RunStore } from "../../../run/run-store.ts";
import type { TaskStore } from "../../../task/task-store.ts";
import type { Database } from "../database.ts";
import type { RunIds } from "../enqueue/run-ids.ts";

/** The stores and helpers that the statements of operations use. */
export interface OperationContext {
  database: Database;
  s: string;
  tasks: TaskStore;
  runs: RunStore;
  /** Draws the numbers of the runs that a single rerun creates. */
  runIds: RunIds;
}

/** The row of an operation that has not ended. */
export interface OpenOperation {
  id: number;
  kind: OperationKind;
  filter: OperationFilter;
  range: BackfillRange | null;
  pause_until_ms: number | null;
  state: OperationState;
  reason: string;
  author: string;
  /** The highest run number when the operation began, so that runs that the operation itself creates are not its targets. */
  last_run_id: number;
  cursor: Cursor;
  batch: BatchItem[] | null;
  steps: number;
  created_ms: number;
}

/** The position that an operation has reached. Each kind of operation uses its own fields. */
export interface Cursor {
  id?: number;
  taskId?: number;
  endedMs?: number;
  at?: number;
  paceMs?: number;
  /** For a cancel operation: runs whose workers were asked to stop them and that may not have ended yet. */
  asked?: number[];
  /** The number of checks of the runs in `asked` since the last batch. The pause before the next check grows with it. */
  looks?: number;
  /** The number of runs that ended in another way although their workers were asked to stop them. */
  late?: number;
}

export interface Progress {
  done: number;
  passed: number;
  failed: number;
  error: string | null;
  cursor: Cursor;
  left: boolean;
  nextMs: number;
}

export interface BatchItem {
  id: number;
  name: string;
}

export interface Batch {
  items: BatchItem[];
  steps: number;
}

export interface Preview {
  total: number;
  first: string[];
}

export interface OperationRow extends OpenOperation {
  author: string;
  total: number;
  done: number;
  passed: number;
  failed: number;
  error: string | null;
  started_ms: number | null;
  ended_ms: number | null;
}

export const asOperation = (row: OperationRow): OperationRecord => ({
  operationId: row.id,
  kind: row.kind,
  filter: row.filter,
  ...(row.range === null ? {} : { range: row.range }),
  ...(row.pause_until_ms === null ? {} : { pauseUntilMs: Number(row.pause_until_ms) }),
  author: row.author,
  reason: row.reason,
  state: row.state,
  total: row.total,
  done: row.done,
  passed: row.passed,
  asked: row.cursor.asked?.length ?? 0,
  late: row.cursor.late ?? 0,
  failed: row.failed,
  error: row.error,
  createdMs: row.created_ms,
  startedMs: row.started_ms,
  endedMs: row.ended_ms,
});
