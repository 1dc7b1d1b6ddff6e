import type { LostWorker } from "../../browse-store.ts";
import type { Database } from "../database.ts";

/**
 * Returns workers whose last session ended because they were silent, or because the coordination service no longer showed them. A worker
 * whose name a live session has is left out, because it has come back.
 */
export async function lostWorkers(database: Database, sinceMs: number, limit: number): Promise<LostWorker[]> {
  const s = database.schema;
  return database.query<LostWorker>(
    "browse-lost-workers",
    `select * from (
       select distinct on (node) node, role, host, pid, groups, started_ms as "startedMs", seen_ms as "seenMs", ended_ms as "endedMs",
         ended_why as why
       from ${s}.session where ended_ms >= $1 and cardinality(groups) > 0 order by node, ended_ms desc) o
     where (starts_with(why, 'silent') or starts_with(why, 'not shown by'))
       and not exists (select from ${s}.session l where l.node = o.node and l.ended_ms is null)
     order by "endedMs" desc, node limit $2`,
    [sinceMs, limit],
  );
}
