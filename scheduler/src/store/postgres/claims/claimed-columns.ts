import type { Json } from "../../../base/json.ts";
import type { ClaimedRun } from "../../../run/claim-store.ts";
import type { Overrides } from "../../../run/enqueue-options.ts";
import type { RunLabels } from "../../../task/kinds/run-labels.ts";

type More = [
  fence: number,
  key: string | null,
  shard: [number, number] | null,
  state: Json,
  losses: number,
  snoozes: number,
  overrides: Overrides | null,
  expiresMs: number | null,
  labels: RunLabels | null,
  readyMs: number | null,
];

/** The claimed runs in one row: fields that every run has are columns; fields that few runs have are in `more`, keyed by fence. */
export interface ClaimedColumns {
  runIds: number[] | null;
  fences: number[];
  /** Due times in ms, relative to the time of the claim. */
  dueInMs: number[];
  /**
   * Task, version, attempt and priority if they are equal for all runs and no run has a slot; otherwise null, and the columns hold them.
   */
  alike: [taskId: number, version: number, attempt: number, priority: number] | null;
  taskIds: number[] | null;
  versions: number[] | null;
  attempts: number[] | null;
  slotMs: (number | null)[] | null;
  priorities: number[] | null;
  linked: number[] | null;
  paused: number[] | null;
  /** The payloads joined by commas; null if no run has a payload. */
  payloads: string | null;
  more: More[] | null;
}

/** A run enqueued at most this many ms after its due time counts as enqueued in time. */
const madeLateMs = 100;

/**
 * SQL: the time since which the run `r` waits only for a worker; null if this time is its due time. See run/handling/lateness.ts. The run
 * of a slot always counts as enqueued in time.
 */
export const readyMsSql = `nullif(greatest(r.due_ms, r.ready_ms, case when r.slot_ms is null and r.created_ms > r.due_ms + ${madeLateMs} then r.created_ms end), r.due_ms)`;

/**
 * SQL: the fields of a run `r` that a claim returns. `state` is the state that an earlier attempt saved.
 * @param followed SQL condition: other runs or tasks wait for the run's end, for a reason that the run's own row does not show
 */
export const claimedFields = (
  followed: string,
) => `r.id as "runId", r.task_id as "taskId", r.version, r.fence, r.attempt, r.losses, r.snoozes, r.due_ms as "dueMs", r.slot_ms as "slotMs",
    r.priority, r.key, r.payload, r.shard, r.checkpoint as state, r.overrides, r.expires_ms as "expiresMs", r.labels, ${readyMsSql} as "readyMs", (r.gate > 0 or r.after_end or r.parent_id is not null or ${followed}) as linked`;

/**
 * SQL: returns the claimed runs, `taken`, in one row. The runs of a backlog mostly belong to one task; to check this is faster than to
 * write and read columns of equal values. All payloads are one text, because building one JSON value per run took longer than all the
 * columns.
 * @param now SQL for the time of the claim; times are sent relative to it, because such numbers have few digits
 * @param beside further result columns, each preceded by a comma
 */
export const columnsSql = (now: string, beside = "") => `
  , one as materialized (select "taskId", version, attempt, priority from taken limit 1
  ), various as materialized (
    select exists (select from taken, one where taken."taskId" <> one."taskId" or taken.version <> one.version or taken.attempt <> one.attempt
      or taken.priority <> one.priority or taken."slotMs" is not null) as yes
  )
  select array_agg("runId") as "runIds", array_agg(fence) as fences, array_agg("dueMs" - ${now}::bigint) as "dueInMs",
         (select array["taskId", version, attempt, priority] from one, various where not various.yes) as alike,
         array_agg("taskId") filter (where (select yes from various)) as "taskIds",
         array_agg(version) filter (where (select yes from various)) as versions,
         array_agg(attempt) filter (where (select yes from various)) as attempts,
         array_agg("slotMs") filter (where (select yes from various)) as "slotMs",
         array_agg(priority) filter (where (select yes from various)) as priorities,
         array_agg(fence) filter (where linked) as linked, array_agg(fence) filter (where paused) as paused,
         case when count(payload) > 0 then string_agg(coalesce(payload::text, 'null'), ',') end as payloads,
         json_agg(json_build_array(fence, key, shard, state, losses, snoozes, overrides, "expiresMs", labels, "readyMs")) filter (where key is not null or shard is not null or state is not null
           or losses > 0 or snoozes > 0 or overrides is not null or "expiresMs" is not null or labels is not null or "readyMs" is not null) as more${beside}
  from taken`;

export function claimedRuns(columns: ClaimedColumns | undefined, nowMs: number): (ClaimedRun & { paused: boolean })[] {
  if (!columns?.runIds) return [];
  const { alike, fences, dueInMs, taskIds, versions, attempts, slotMs, priorities } = columns;
  const linked = new Set(columns.linked);
  const paused = new Set(columns.paused);
  const more = new Map(columns.more?.map((row) => [row[0], row]));
  const payloads = columns.payloads === null ? null : (JSON.parse(`[${columns.payloads}]`) as Json[]);
  const [taskId, version, attempt, priority] = alike ?? [];
  return columns.runIds.map((runId, i) => {
    const fence = fences[i] as number;
    const [, key, shard, state, losses, snoozes, overrides, expiresMs, labels, readyMs] =
      (more.size > 0 && more.get(fence)) || none;
    return {
      runId,
      taskId: taskId ?? (taskIds?.[i] as number),
      version: version ?? (versions?.[i] as number),
      fence,
      attempt: attempt ?? (attempts?.[i] as number),
      losses,
      snoozes,
      dueMs: nowMs + (dueInMs[i] as number),
      readyMs,
      slotMs: slotMs?.[i] ?? null,
      priority: priority ?? (priorities?.[i] as number),
      key,
      payload: payloads?.[i] ?? null,
      shard,
      overrides,
      expiresMs,
      labels,
      state,
      linked: linked.size > 0 && linked.has(fence),
      paused: paused.size > 0 && paused.has(fence),
    };
  });
}

const none: [undefined, null, null, null, 0, 0, null, null, null, null] = [
  undefined,
  null,
  null,
  null,
  0,
  0,
  null,
  null,
  null,
  null,
];
