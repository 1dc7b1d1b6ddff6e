import type { SqlClient } from "../../../base/change.ts";
import { CarillonError } from "../../../base/errors.ts";
import { namespaceOf } from "../../../base/namespace.ts";
import { meant } from "../../../base/nearest.ts";
import { type Ruled, ruledIn } from "../../../schedule/slot-rules.ts";
import type { TaskChange, TaskRecord, VersionRecord } from "../../../task/task-record.ts";
import { staleTask } from "../../../task/versions.ts";
import type { Database } from "../database.ts";
import { queryIn } from "../query.ts";
import type { KnownZones } from "../zones/known-zones.ts";
import type { KnownCalendars } from "./calendars.ts";
import { asRecord, type RecordRow, recordFields, type TaskRow, taskFields, withRules } from "./task-rows.ts";

/** The state that all operations of one task store share. */
export interface Tasks {
  database: Database;
  s: string;
  calendars: KnownCalendars;
  zones: KnownZones;
  /** The numbers of groups, by name. A group keeps its number, unless the store loses the group's row. */
  groups: Map<string, number>;
  /** Called with the number of tasks that were created. */
  counted: (made: number) => Promise<void>;
}

export async function asRecords({ calendars, zones }: Tasks, rows: RecordRow[]): Promise<TaskRecord[]> {
  const known = await calendars.of(rows.map(({ definition }) => definition));
  await zones.readFor(rows);
  return rows.map((row) => {
    const calendar = known.get(row.definition.calendar?.name ?? "");
    return withRules(asRecord(row), calendar, zones.of(row.definition, calendar, row.zones_version));
  });
}

/** Reads the task with this name, even if it is removed; undefined if there never was one. */
export async function readTask({ database, s }: Tasks, name: string): Promise<TaskRow | undefined> {
  const [row] = await database.query<TaskRow>(
    "task-by-name",
    `select ${taskFields} from ${s}.task t join ${s}.plan p on p.task_id = t.id where t.name = $1`,
    [name],
  );
  return row;
}

/** Returns the definition, the calendar and the zone rules by which a task is planned. */
export async function ruledOf({ calendars, zones }: Tasks, client: SqlClient, row: TaskRow): Promise<Ruled> {
  const calendar = await calendars.in(client, row.definition, false);
  await zones.readFor([row], queryIn(client));
  return ruledIn(row.definition, calendar, zones.at(row.zones_version));
}

/** Locks the rows of the task and its plan. @throws TASK_UNKNOWN if there never was a task with this name */
export async function lockTask(client: SqlClient, s: string, name: string): Promise<TaskRow> {
  const { rows } = await client.query(
    `select ${taskFields} from ${s}.task t join ${s}.plan p on p.task_id = t.id where t.name = $1 for update of t, p`,
    [name],
  );
  if (!rows[0]) throw unknownTask(name);
  return rows[0] as unknown as TaskRow;
}

export async function byName(tasks: Tasks, name: string): Promise<TaskRecord> {
  const row = await readTask(tasks, name);
  if (!row || row.deleted_ms !== null) throw unknownTask(name);
  return (await asRecords(tasks, [row]))[0] as TaskRecord;
}

/** Returns the number of the task with this name, even if it is removed. @throws TASK_UNKNOWN */
export async function idOf(database: Database, name: string): Promise<number> {
  const sql = `select id from ${database.schema}.task where name = $1`;
  const [row] = await database.query<{ id: number }>("task-id", sql, [name]);
  if (!row) throw unknownTask(name);
  return row.id;
}

export async function byNames(tasks: Tasks, names: string[]): Promise<TaskRecord[]> {
  const { database, s } = tasks;
  const rows = await database.query<RecordRow>(
    "task-by-names",
    `select ${recordFields} from ${s}.task t join ${s}.plan p on p.task_id = t.id where t.name = any($1) and t.deleted_ms is null`,
    [names],
  );
  return asRecords(tasks, rows);
}

export async function byIds(tasks: Tasks, taskIds: number[]): Promise<TaskRecord[]> {
  const { database, s } = tasks;
  const rows = await database.query<RecordRow>(
    "task-by-ids",
    `select ${recordFields} from ${s}.task t join ${s}.plan p on p.task_id = t.id where t.id = any($1)`,
    [taskIds],
  );
  return asRecords(tasks, rows);
}

export async function list(tasks: Tasks): Promise<TaskRecord[]> {
  const { database, s } = tasks;
  const rows = await database.query<RecordRow>(
    "task-list",
    `select ${recordFields} from ${s}.task t join ${s}.plan p on p.task_id = t.id where t.deleted_ms is null order by t.name`,
  );
  return asRecords(tasks, rows);
}

export async function schedulesOf(tasks: Tasks, name: string, afterName: string, most: number): Promise<TaskRecord[]> {
  const { database, s } = tasks;
  const rows = await database.query<RecordRow>(
    "task-schedules",
    `select ${recordFields} from ${s}.task t join ${s}.plan p on p.task_id = t.id
     where t.of_name = $1 and t.deleted_ms is null and t.name > $2 order by t.name limit $3`,
    [name, afterName, most],
  );
  return asRecords(tasks, rows);
}

export async function scheduleCounts({ database, s }: Tasks, names: string[]): Promise<Map<string, number>> {
  const rows = await database.query<{ name: string; schedules: number }>(
    "task-schedule-counts",
    `select of_name as name, count(*)::int as schedules from ${s}.task where of_name = any($1) and deleted_ms is null group by 1`,
    [names],
  );
  return new Map(rows.map(({ name, schedules }) => [name, schedules]));
}

export async function changedSince({ database, s }: Tasks, sinceMs: number): Promise<TaskChange[]> {
  return database.query<TaskChange>(
    "task-changed",
    `select id as "taskId", version, changed_ms as "changedMs" from ${s}.task where changed_ms >= $1`,
    [Math.round(sinceMs)],
  );
}

export async function versions(tasks: Tasks, name: string): Promise<VersionRecord[]> {
  const { database, s } = tasks;
  const taskId = await idOf(database, name);
  return database.query<VersionRecord>(
    "task-versions",
    `select version, definition, author, reason, changed_ms as "changedMs" from ${s}.task_version
         where task_id = $1 order by version desc`,
    [taskId],
  );
}

/** Returns the error for an outdated version. Its message has both versions, the author of the present one, and the differences. */
export async function stale(
  { database, s }: Tasks,
  name: string,
  expected: number,
  client?: SqlClient,
): Promise<CarillonError> {
  const text = `select v.version, v.definition, v.author, v.reason, v.changed_ms::float8 as "changedMs"
                from ${s}.task t join ${s}.task_version v on v.task_id = t.id
                where t.name = $1 and v.version in (t.version, $2) order by (v.version = t.version) desc`;
  const rows = client
    ? (await client.query(text, [name, expected])).rows
    : await database.query("", text, [name, expected]);
  const [present, before] = rows as unknown as (VersionRecord | undefined)[];
  return staleTask(name, expected, present, before);
}

export function unknownTask(name: string, near = ""): CarillonError {
  return new CarillonError("TASK_UNKNOWN", `there is no task ${JSON.stringify(name)}${near}`, {
    hint: "See `carillon tasks list`.",
  });
}

/** The most existing names with which an unknown name is compared to suggest one. */
const nearMost = 2_000;

/** @throws TASK_UNKNOWN if the task does not exist; the error suggests a similar name in the same namespace, if there is one */
export async function checkTask(client: SqlClient, s: string, name: string): Promise<void> {
  const live = `from ${s}.task where deleted_ms is null and version > 0`;
  const { rows } = await client.query(`select ${live} and name = $1`, [name]);
  if (rows.length > 0) return;
  const { rows: others } = await client.query(
    `select name ${live} and starts_with(name, $2) and abs(length(name) - length($1::text)) < 5 limit ${nearMost}`,
    [name, name.slice(0, name.indexOf("/") + 1)],
  );
  const names = others.map((row) => String(row.name)).filter((one) => namespaceOf(one) === namespaceOf(name));
  throw unknownTask(name, meant(name, names));
}
