import type { Change, SqlClient } from "../../../base/change.ts";
import type { AppliedStore, AppliedTask } from "../../../task/applied-store.ts";
import { appliedItems } from "../access/applied-items.ts";
import type { Database } from "../database.ts";
import { sourceNumber } from "../enqueue/sources.ts";
import { runState } from "../states.ts";

const slot = sourceNumber("slot");

export function appliedStore(database: Database): AppliedStore {
  const s = database.schema;
  return {
    read: (names, bundle) =>
      database.query<AppliedTask>(
        "applied-read",
        `select t.name, t.version, t.deleted_ms is not null as removed, t.definition, t.bundle, a.definition as applied,
                v.author, v.reason, v.changed_ms::float8 as "changedMs",
                case when t.name = any($1) then 0 else (
                  select count(*) from ${s}.run r where r.task_id = t.id and r.state <> ${runState.claimed} and (
                    r.source <> ${slot} or r.attempt > 0 or r.slot_ms <= extract(epoch from clock_timestamp()) * 1000)) end::int as waiting
         from ${s}.task t
         join ${s}.task_version v on v.task_id = t.id and v.version = t.version
         left join ${s}.task_version a on a.task_id = t.id and a.version = t.applied_version
         where t.name = any($1) or t.bundle = $2 order by t.name`,
        [names, bundle],
      ),
    items: (kind, names, bundle) => appliedItems(database, kind, names, bundle),
  };
}

/**
 * Returns true if the change is not by a bundle, or if the task's row already has the bundle and the version that it would write.
 */
export const isApplied = (
  { bundle, applied_version, version }: { bundle: string | null; applied_version: number | null; version: number },
  change: Change,
): boolean => change.bundle === undefined || (bundle === change.bundle && applied_version === version);

/** Records the bundle of a task in the transaction that stores its version, so that both always change together. */
export async function markApplied(
  client: SqlClient,
  s: string,
  taskId: number,
  version: number,
  { bundle }: Change,
): Promise<void> {
  if (bundle === undefined) return;
  await client.query(`update ${s}.task set bundle = $2, applied_version = $3 where id = $1`, [taskId, bundle, version]);
}

/** Marks a task as removed, without a bundle. The next definition of the task sets its bundle again. */
export async function markRemoved(client: SqlClient, s: string, taskId: number, change: Change): Promise<void> {
  await client.query(
    `update ${s}.task set deleted_ms = $2, changed_ms = $2, deleted_by = $3, deleted_why = $4, bundle = null,
            applied_version = null where id = $1`,
    [taskId, Math.round(change.nowMs), change.author, change.reason],
  );
}
