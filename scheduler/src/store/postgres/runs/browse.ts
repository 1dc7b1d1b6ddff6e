import { isCarillonError } from "../../../base/errors.ts";
import type { Member, Term } from "../../../cluster/session-store.ts";
import type { DeadLetter } from "../../../run/dead-letters.ts";
import type { OperationFilter, OperationRecord } from "../../../run/operations.ts";
import { likeOf } from "../../../run/operations.ts";
import type { RunRecord } from "../../../run/run-record.ts";
import type { RunStore } from "../../../run/run-store.ts";
import type { SlotRecord } from "../../../slots/history-store.ts";
import type { TaskRecord, VersionRecord } from "../../../task/task-record.ts";
import type { TaskStore } from "../../../task/task-store.ts";
import type { BrowseStore, Found, RunBrowse, RunPage, TaskBrowse, WorkerRecord } from "../../browse-store.ts";
import { lostWorkers } from "../cluster/lost-workers.ts";
import { asMember, type MemberRow, memberFields } from "../cluster/sessions.ts";
import type { Database } from "../database.ts";
import { alikeTasks } from "../schedules/alike.ts";
import { runState } from "../states.ts";
import { slotFields } from "../tasks/history.ts";
import { inNamespacesSql } from "../tasks/task-filter.ts";
import { arrivedLogs, browseLogs } from "./browse-logs.ts";
import { browseRuns } from "./browse-runs.ts";
import { letterValues, openLettersSql } from "./dead-letters.ts";
import { asOperation, type OperationRow } from "./operation-rows.ts";
import { wholeRuns } from "./whole-runs.ts";

const versionFields = `version, definition, author, reason, changed_ms as "changedMs"`;

export function browseStore(database: Database, tasks: TaskStore, runs: RunStore): BrowseStore {
  return {
    whole: wholeRuns(database),
    comingTasks: (namespaces, limit) => comingTasks(database, tasks, namespaces, limit),
    tasks: (browse) => tasksOf(database, tasks, browse),
    alikeTasks: (filter) => alikeTasks(database, tasks, filter),
    versions: (taskId, beforeVersion, limit) => versions(database, taskId, beforeVersion, limit),
    versionsAt: (taskId, versions) => versionsAt(database, taskId, versions),
    slots: (taskId, fromMs, beforeMs, limit) => slots(database, taskId, fromMs, beforeMs, limit),
    runs: (browse) => runsOf(database, browse),
    logs: (runId, beside, limit, look) => browseLogs(database, runId, beside, limit, look),
    arrived: (runId, read, limit) => arrivedLogs(database, runId, read, limit),
    letters: (filter, before, limit) => letters(database, filter, before, limit),
    operations: (beforeId, limit) => operations(database, beforeId, limit),
    nodes: (afterName, limit) => nodes(database, afterName, limit),
    workers: (afterName, group, limit) => workers(database, afterName, group, limit),
    lostWorkers: (sinceMs, limit) => lostWorkers(database, sinceMs, limit),
    terms: (beforeTerm, limit) => terms(database, beforeTerm, limit),
    search: (text, namespaces, limit) => search(database, runs, text, namespaces, limit),
  };
}

async function comingTasks(
  database: Database,
  tasks: TaskStore,
  namespaces: readonly string[] | null,
  limit: number,
): Promise<TaskRecord[]> {
  const s = database.schema;
  const rows = await database.query<{ name: string }>(
    "browse-coming",
    `select t.name from ${s}.plan p join ${s}.task t on t.id = p.task_id
     where p.next_slot_ms is not null and t.deleted_ms is null and t.paused_ms is null
       and ${inNamespacesSql("t.name", "$2::text[]")} order by p.next_slot_ms limit $1`,
    [limit, namespaces],
  );
  return tasks.byNames(rows.map(({ name }) => name));
}

async function tasksOf(
  database: Database,
  tasks: TaskStore,
  { afterName, group, matching, paused, owner, namespaces, of, schedules, limit }: TaskBrowse,
): Promise<TaskRecord[]> {
  const s = database.schema;
  const rows = await database.query<{ name: string }>(
    "",
    `select name from ${s}.task t where deleted_ms is null and version > 0 and name > $1
       and ($2::text is null or group_id = (select id from ${s}.worker_group where name = $2))
       and ($3::text is null or name like $3) and ($4::boolean is null or (paused_ms is not null) = $4)
       and ${inNamespacesSql("name", "$6::text[]")} and ($7::text is null or of_name = $7) and ($8 or of_name is null)
       and ($9::text is null or definition->>'owner' = $9)
     order by name limit $5`,
    [afterName, group, matching === null ? null : likeOf(matching), paused, limit, namespaces, of, schedules, owner],
  );
  const records = await tasks.byNames(rows.map(({ name }) => name));
  const byName = new Map(records.map((record) => [record.name, record]));
  return rows.flatMap(({ name }) => byName.get(name) ?? []);
}

function versions(database: Database, taskId: number, beforeVersion: number, limit: number): Promise<VersionRecord[]> {
  const s = database.schema;
  return database.query<VersionRecord>(
    "browse-versions",
    `select ${versionFields} from ${s}.task_version where task_id = $1 and version < $2 order by version desc limit $3`,
    [taskId, Math.min(beforeVersion, 2 ** 31 - 1), limit],
  );
}

function versionsAt(database: Database, taskId: number, versions: number[]): Promise<VersionRecord[]> {
  const s = database.schema;
  return database.query<VersionRecord>(
    "browse-versions-at",
    `select ${versionFields} from ${s}.task_version where task_id = $1 and version = any($2) order by version`,
    [taskId, versions],
  );
}

function slots(
  database: Database,
  taskId: number,
  fromMs: number,
  beforeMs: number,
  limit: number,
): Promise<SlotRecord[]> {
  const s = database.schema;
  return database.query<SlotRecord>(
    "",
    `select ${slotFields(s)} from ${s}.slot l where task_id = $1 and slot_ms >= $2 and slot_ms < $3 order by slot_ms desc limit $4`,
    [taskId, Math.floor(fromMs), Math.ceil(beforeMs), limit],
  );
}

function runsOf(database: Database, browse: RunBrowse): Promise<RunPage> {
  return browseRuns(database, browse);
}

async function letters(
  database: Database,
  filter: OperationFilter,
  before: { endedMs: number; runId: number } | null,
  limit: number,
): Promise<DeadLetter[]> {
  const s = database.schema;
  const rows = await database.query<Omit<DeadLetter, "state">>(
    "",
    `select d.run_id as "runId", t.name as task, d.ended_ms as "endedMs", d.fingerprint, d.redriven_by as "redrivenBy"
     from ${s}.dead_letter d join ${s}.task t on t.id = d.task_id
     where ${openLettersSql(s, filter)} and d.ended_ms <= $7 and (d.ended_ms, d.run_id) < ($7, $8)
     order by d.ended_ms desc, d.run_id desc limit $9`,
    [
      ...letterValues(filter),
      before?.endedMs ?? Number.MAX_SAFE_INTEGER,
      before?.runId ?? Number.MAX_SAFE_INTEGER,
      limit,
    ],
  );
  return rows.map((row) => ({ ...row, state: "open" as const }));
}

async function operations(database: Database, beforeId: number, limit: number): Promise<OperationRecord[]> {
  const s = database.schema;
  const rows = await database.query<OperationRow>(
    "browse-operations",
    `select * from ${s}.operation where id < $1 order by id desc limit $2`,
    [beforeId, limit],
  );
  return rows.map(asOperation);
}

async function nodes(database: Database, afterName: string, limit: number): Promise<Member[]> {
  const s = database.schema;
  const rows = await database.query<MemberRow>(
    "browse-nodes",
    `select ${memberFields} from ${s}.session where ended_ms is null and role = 'node' and node > $1 order by node limit $2`,
    [afterName, limit],
  );
  return rows.map(asMember);
}

async function workers(
  database: Database,
  afterName: string,
  group: string | null,
  limit: number,
): Promise<WorkerRecord[]> {
  const s = database.schema;
  const rows = await database.query<MemberRow & { held: number }>(
    "browse-workers",
    `select ${memberFields},
            (select count(*) from ${s}.run r where r.session_id = o.id and r.state = ${runState.claimed}) as held
     from ${s}.session o where ended_ms is null and cardinality(groups) > 0 and node > $1 and ($2::text is null or $2 = any(groups))
     order by node limit $3`,
    [afterName, group, limit],
  );
  return rows.map(({ held, ...row }): WorkerRecord => ({ ...asMember(row), held }));
}

function terms(database: Database, beforeTerm: number, limit: number): Promise<Term[]> {
  const s = database.schema;
  return database.query<Term>(
    "browse-terms",
    `select term, node, session_id as "sessionId", elected_ms as "electedMs", ended_ms as "endedMs", ended_why as "endedWhy"
     from ${s}.term where term < $1 order by term desc limit $2`,
    [beforeTerm, limit],
  );
}

async function search(
  database: Database,
  runs: RunStore,
  text: string,
  namespaces: readonly string[] | null,
  limit: number,
): Promise<Found> {
  const s = database.schema;
  const like = `%${text.replace(/[\\%_]/g, "\\$&")}%`;
  const named = [like, limit, namespaces];
  const [found, workers, calendars] = await Promise.all([
    database.query<{ name: string; group: string }>(
      "browse-search-tasks",
      `select t.name, g.name as group from ${s}.task t join ${s}.worker_group g on g.id = t.group_id
       where t.deleted_ms is null and t.version > 0 and t.name ilike $1 and ${inNamespacesSql("t.name", "$3::text[]")} order by length(t.name), t.name limit $2`,
      named,
    ),
    database.query<{ node: string; role: "node" | "worker" }>(
      "browse-search-workers",
      `select node, role from ${s}.session where ended_ms is null and node ilike $1 order by node limit $2`,
      [like, limit],
    ),
    database.query<{ name: string }>(
      "browse-search-calendars",
      `select name from ${s}.calendar where removed_ms is null and name ilike $1 and ${inNamespacesSql("name", "$3::text[]")} order by name limit $2`,
      named,
    ),
  ]);
  const run = /^\d{1,15}$/.test(text) ? await runCalled(runs, Number(text)) : null;
  const names = calendars.map(({ name }) => name);
  return { tasks: found, workers, calendars: names, runs: run === null ? [] : [run] };
}

async function runCalled(runs: RunStore, runId: number): Promise<RunRecord | null> {
  try {
    return await runs.find(runId);
  } catch (error) {
    if (isCarillonError(error, "RUN_UNKNOWN")) return null;
    throw error;
  }
}
