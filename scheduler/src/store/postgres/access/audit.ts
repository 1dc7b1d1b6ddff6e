import type { AuditEntry, AuditStore } from "../../../access/audit.ts";
import type { Change, SqlClient } from "../../../base/change.ts";
import type { Json } from "../../../base/json.ts";
import type { TaskDefinition } from "../../../task/task.ts";
import type { PauseChange } from "../../../task/task-store.ts";
import type { Database } from "../database.ts";
import { recordChangeSql } from "../events/recording.ts";
import type { TaskRow } from "../tasks/task-rows.ts";

type Entry = Omit<AuditEntry, "entryId">;

const insertSql = (s: string) => `insert into ${s}.audit (at_ms, who, act, about, named, before, after, why)
  values ($1, $2, $3, $4, $5, $6, $7, $8)`;

const values = ({ atMs, who, act, about, named, before, after, why }: Entry): unknown[] => [
  Math.round(atMs),
  who,
  act,
  about,
  named,
  ...[before, after].map((part) => (part === null ? null : JSON.stringify(part))),
  why,
];

/** Records a change in the caller's transaction, so that the change and its entry are committed together. */
export async function audited(client: SqlClient, s: string, entry: Entry): Promise<void> {
  const event = recordChangeSql(s, entry);
  const sql = event === undefined ? insertSql(s) : `with entry as (${insertSql(s)} returning *) ${event}`;
  await client.query(sql, values(entry));
}

/**
 * Records a new version of a task. A version that only results from a change of the task's calendar gets no entry of its own, because the
 * calendar's entry covers it.
 */
export async function auditedEdit(
  client: SqlClient,
  s: string,
  row: TaskRow,
  { definition, text }: { definition: TaskDefinition; text: string },
  { author, reason, nowMs }: Change,
): Promise<void> {
  const there = row.version > 0 && row.deleted_ms === null;
  if (there && row.definition_text === text) return;
  const entry = { atMs: nowMs, who: author, about: "task" as const, named: row.name, why: reason };
  const [before, after] = [row.definition, definition] as unknown as [Json, Json];
  await audited(client, s, { ...entry, act: there ? "edit" : "create", before: there ? before : null, after });
}

/**
 * Records that a task belongs to a bundle of files from now on. If applying the bundle also changes the task, the new version has an entry
 * of its own.
 */
export async function auditedAdoption(
  client: SqlClient,
  s: string,
  { name, bundle: before }: TaskRow,
  { author, reason, nowMs, bundle }: Change,
): Promise<void> {
  if (bundle === undefined || bundle === before) return;
  const entry = { atMs: nowMs, who: author, about: "task" as const, named: name, why: reason, act: "adopt" };
  await audited(client, s, { ...entry, before: { bundle: before }, after: { bundle } });
}

/** Records that a task was paused, resumed or removed. */
export async function auditedTask(
  client: SqlClient,
  s: string,
  act: "pause" | "resume" | "remove",
  row: TaskRow,
  { author, reason, nowMs, untilMs = null }: PauseChange,
): Promise<void> {
  const entry = { atMs: nowMs, who: author, about: "task" as const, named: row.name, why: reason, act };
  const pauseOf = (by: string, why: string, ms: number | null): Json => ({
    paused: { by, why, ...(ms === null ? {} : { until: new Date(ms).toISOString() }) },
  });
  const paused =
    row.paused_ms === null ? { paused: null } : pauseOf(row.paused_by ?? "", row.paused_why ?? "", row.paused_until_ms);
  const before: Json = act === "remove" ? (row.definition as unknown as Json) : paused;
  const after: Json = act === "remove" ? null : act === "pause" ? pauseOf(author, reason, untilMs) : { paused: null };
  await audited(client, s, { ...entry, before, after });
}

/** Returns the id of the run that an entry is about; undefined if the entry is not about a run. */
const runOf = ({ about, named }: AuditEntry): number | undefined =>
  about === "run" && /^[1-9]\d{0,14}$/.test(named) ? Number(named) : undefined;

/** Returns the names of the runs' tasks, by run id. */
async function tasksOfRuns(database: Database, runIds: number[]): Promise<Map<number, string>> {
  const ids = [...new Set(runIds)];
  if (ids.length === 0) return new Map();
  const s = database.schema;
  // Each part of the union uses its table's index of run ids; a join with the history would read the whole history.
  const rows = await database.query<{ id: number; name: string }>(
    "",
    `with found as materialized (
       select id, task_id from ${s}.run where id = any($1) union all select id, task_id from ${s}.run_history where id = any($1))
     select found.id, t.name from found join ${s}.task t on t.id = found.task_id`,
    [ids],
  );
  return new Map(rows.map(({ id, name }) => [id, name]));
}

export function auditStore(database: Database): Pick<AuditStore, "list" | "record"> {
  const s = database.schema;
  return {
    async list({ about, named, who, act, sinceMs, untilMs, entryId }, beforeId, limit) {
      // The statement has no name, so PostgreSQL plans it each time and can leave unused filters out of the plan.
      const entries = await database.query<AuditEntry>(
        "",
        `select id as "entryId", at_ms as "atMs", who, act, about, named, before, after, why from ${s}.audit
         where id < $1 and ($3::text is null or about = $3) and ($4::text is null or named = $4) and ($5::text is null or who = $5)
           and ($6::text is null or act = $6) and ($7::bigint is null or at_ms >= $7) and ($8::bigint is null or at_ms < $8)
           and ($9::bigint is null or id = $9)
         order by id desc limit $2`,
        [
          beforeId,
          limit,
          about ?? null,
          named ?? null,
          who ?? null,
          act ?? null,
          sinceMs ?? null,
          untilMs ?? null,
          entryId ?? null,
        ],
      );
      const tasks = await tasksOfRuns(
        database,
        entries.flatMap((entry) => runOf(entry) ?? []),
      );
      return entries.map((entry) => ({ ...entry, task: tasks.get(runOf(entry) ?? 0) ?? null }));
    },

    async record(entries) {
      const columns = entries.map(values);
      await database.query(
        "audit-record",
        `insert into ${s}.audit (at_ms, who, act, about, named, before, after, why)
         select * from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::jsonb[], $7::jsonb[], $8::text[])`,
        [0, 1, 2, 3, 4, 5, 6, 7].map((at) => columns.map((column) => column[at])),
      );
    },
  };
}
