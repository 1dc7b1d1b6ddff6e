import type { Json } from "../json.ts";
import type { ClaimedRun } from "../store.ts";

/** One row: what every run has as columns, what few have with its fence before it. */
export interface ClaimedColumns {
  runIds: number[] | null;
  taskIds: number[];
  versions: number[];
  fences: number[];
  attempts: number[];
  dueMs: number[];
  slotMs: (number | null)[];
  priorities: number[];
  linked: number[] | null;
  paused: number[] | null;
  more: [fence: number, key: string | null, payload: Json, shard: [number, number] | null, state: Json][] | null;
}

/** What a claim returns, `taken`, in one row. */
export const columnsSql = `
  select array_agg("runId") as "runIds", array_agg("taskId") as "taskIds", array_agg(version) as versions, array_agg(fence) as fences,
         array_agg(attempt) as attempts, array_agg("dueMs") as "dueMs", array_agg("slotMs") as "slotMs", array_agg(priority) as priorities,
         array_agg(fence) filter (where linked) as linked, array_agg(fence) filter (where paused) as paused,
         json_agg(json_build_array(fence, key, payload, shard, state))
           filter (where key is not null or payload is not null or shard is not null or state is not null) as more
  from taken`;

export function claimedRuns(columns: ClaimedColumns | undefined): (ClaimedRun & { paused: boolean })[] {
  if (!columns?.runIds) return [];
  const { taskIds, versions, fences, attempts, dueMs, slotMs, priorities } = columns;
  const linked = new Set(columns.linked);
  const paused = new Set(columns.paused);
  const more = new Map(columns.more?.map((row) => [row[0], row]));
  return columns.runIds.map((runId, i) => {
    const fence = fences[i] as number;
    const [, key, payload, shard, state] = more.get(fence) ?? none;
    return {
      runId,
      taskId: taskIds[i] as number,
      version: versions[i] as number,
      fence,
      attempt: attempts[i] as number,
      dueMs: dueMs[i] as number,
      slotMs: slotMs[i] as number | null,
      priority: priorities[i] as number,
      key,
      payload,
      shard,
      state,
      linked: linked.has(fence),
      paused: paused.has(fence),
    };
  });
}

const none: [undefined, null, null, null, null] = [undefined, null, null, null, null];
