import type { Change, SqlClient } from "../../../base/change.ts";
import { inOrder } from "../../../task/after.ts";
import { keepEdits } from "../../../task/edits.ts";
import { codeOf, mayReplace, type Standing } from "../../../task/release.ts";
import { definitionText, type TaskDefinition } from "../../../task/task.ts";
import type { Adopted, TaskRecord } from "../../../task/task-record.ts";
import type { BroughtBy, BroughtTask } from "../../../task/task-store.ts";
import { sideBySide } from "../../side-by-side.ts";
import { auditedAdoption } from "../access/audit.ts";
import { lookAgain } from "../claims/set-aside.ts";
import type { Database } from "../database.ts";
import { queryIn, queryOf } from "../query.ts";
import { inFull, markSchedule } from "../schedules/in-full.ts";
import { isApplied, markApplied } from "./applied.ts";
import { edit } from "./edit.ts";
import { groupNumberIn, groupNumbers } from "./groups.ts";
import { createTasks } from "./new-tasks.ts";
import { asRecords, lockTask, readTask, stale, type Tasks } from "./read.ts";
import { bring, enterRelease, leftTasks, standings } from "./releases.ts";
import { asRecord, type TaskRow, taskFields, withRules } from "./task-rows.ts";
import { lockUpstream } from "./upstream.ts";

/** How many edits run in parallel, each in its own transaction. */
const savesAtOnce = 4;

interface Saved {
  record: TaskRecord;
  changed: boolean;
}

export async function save(
  tasks: Tasks,
  definition: TaskDefinition,
  expectedVersion: number | null,
  change: Change,
  client?: SqlClient,
): Promise<Saved> {
  const { name } = definition;
  return write(tasks, { name, make: async () => definition, expectedVersion, change, client });
}

export async function saveAll(
  tasks: Tasks,
  definitions: readonly TaskDefinition[],
  change: Change,
  by: BroughtBy,
): Promise<BroughtTask[]> {
  const { database, s, counted } = tasks;
  const byName = new Map(definitions.map((definition) => [definition.name, definition]));
  await tasks.zones.enter(definitions, [], change.nowMs);
  const releaseId = await enterRelease(database, by.release, change.nowMs);
  const present = await database.query<TaskRow & { is_brought: boolean }>(
    "task-texts",
    `select ${taskFields}, exists (select from ${s}.task_code c where c.task_id = t.id and c.release_id = $2) as is_brought
     from ${s}.task t join ${s}.plan p on p.task_id = t.id where t.name = any($1)`,
    [[...byName.keys()], releaseId],
  );
  const live = present.filter((row) => row.deleted_ms === null);
  const { replacing, others } = await replacements(database, live, byName, change, by);
  // A task that a bundle's files define keeps that definition, even if application code also defines the task: see docs/tasks/as-code.md.
  const asIs = live.filter((row) => !replacing.has(row.name));
  const records: BroughtTask[] = await asRecords(tasks, asIs);
  const brought = new Set(present.filter((row) => row.is_brought).map(({ name }) => name));
  const there = new Set(present.map(({ name }) => name));
  // `createTasks` creates absent tasks in one statement. Three kinds of absent tasks are created later, each in its own
  // transaction: tasks with a calendar, whose removal is prevented meanwhile; tasks that follow others, under a lock and after the
  // tasks that they follow; and schedules of other tasks, because they are made from those tasks.
  const absent = definitions.filter(({ name, calendar, after, of }) => !there.has(name) && !calendar && !after && !of);
  if (absent.length > 0) {
    const ids = await groupNumbers(
      tasks,
      absent.map(({ group }) => group),
    );
    const groupIdOf = ({ group }: TaskDefinition) => ids.get(group) as number;
    const made = await createTasks({ query: queryOf(database), s }, absent, {
      groupIdOf,
      change,
      releaseId,
      zones: tasks.zones,
      isLast: true,
    });
    records.push(...made);
    for (const { name } of made) brought.add(name);
    await counted(made.length);
  }
  const done = new Set(records.map(({ name }) => name));
  const left = definitions.filter(({ name, after }) => !done.has(name) && !after);
  const save = async (definition: TaskDefinition) => {
    const { record } = await write(tasks, {
      name: definition.name,
      make: async (present, client) => {
        const isKept = present && (await isOthers(database, present, { definition, change, by }, client));
        if (isKept) others.add(definition.name);
        else others.delete(definition.name);
        return isKept ? present : keepEdits(definition, present);
      },
      stored: (client, taskId) => bring(database, releaseId, [{ taskId, definition }], client),
      expectedVersion: null,
      change,
    });
    records.push(record);
  };
  await sideBySide(left, savesAtOnce, save);
  for (const defined of inOrder(definitions.filter(({ name, after }) => !done.has(name) && after))) await save(defined);
  const unbrought = records.filter(({ name }) => !brought.has(name));
  await bring(
    database,
    releaseId,
    unbrought.map(({ taskId, name }) => ({ taskId, definition: byName.get(name) as TaskDefinition })),
  );
  return records.map((record) => (others.has(record.name) ? { ...record, isOthers: true } : record));
}

/**
 * Finds the tasks outside bundles whose stored definition differs: `replacing` get this release's definition, `others` keep another
 * release's.
 */
async function replacements(
  database: Database,
  rows: readonly TaskRow[],
  byName: ReadonlyMap<string, TaskDefinition>,
  change: Change,
  by: BroughtBy,
): Promise<{ replacing: Set<string>; others: Set<string> }> {
  const differing = rows.flatMap(({ name, bundle, definition, definition_text }) => {
    const given = byName.get(name);
    return given && bundle === null && definition_text !== definitionText(keepEdits(given, definition)) ? [given] : [];
  });
  if (differing.length === 0) return { replacing: new Set(), others: new Set() };
  const { release, graceMs } = by;
  const known = await standings(database, { release, definitions: differing, sinceMs: change.nowMs - graceMs });
  const names = differing.map(({ name }) => name);
  const isReplaced = (name: string) => mayReplace(release, known.get(name) as Standing);
  return {
    replacing: new Set(names.filter(isReplaced)),
    others: new Set(names.filter((name) => !isReplaced(name))),
  };
}

/** Returns true if the task must keep its present definition, which belongs to another release. */
async function isOthers(
  database: Database,
  present: TaskDefinition,
  { definition, change, by }: { definition: TaskDefinition; change: Change; by: BroughtBy },
  client?: SqlClient,
): Promise<boolean> {
  if (codeOf(present) === codeOf(definition)) return false;
  const { release, graceMs } = by;
  const asked = { release, definitions: [definition], sinceMs: change.nowMs - graceMs };
  return !mayReplace(release, (await standings(database, asked, client)).get(definition.name) as Standing);
}

/** @see TaskStore.adoptLeft */
export async function adoptLeft(tasks: Tasks, graceMs: number, change: Change): Promise<Adopted[]> {
  const adopted: Adopted[] = [];
  for (;;) {
    const left = await leftTasks(tasks.database, change.nowMs - graceMs);
    for (const { name, code, definition, from, to } of left) {
      const make = async (present: TaskDefinition | undefined) =>
        present && codeOf(present) !== code ? present : keepEdits(definition, present);
      const reason = `no process of release ${from} is left; ${to} is the newest of those that live`;
      const { changed } = await write(tasks, { name, make, expectedVersion: null, change: { ...change, reason } });
      if (changed) adopted.push({ task: name, from, to });
    }
    if (left.length === 0) return adopted;
  }
}

interface TaskWrite {
  name: string;
  /**
   * Makes the definition from the present one, which is undefined if the task does not exist or is removed.
   * @param client the transaction that stores the definition, with the task locked
   */
  make: (present: TaskDefinition | undefined, client?: SqlClient) => Promise<TaskDefinition>;
  /** Stores further data in the transaction that stores the definition. */
  stored?: (client: SqlClient, taskId: number) => Promise<void>;
  expectedVersion: number | null;
  change: Change;
  /** The caller's transaction, if this write must be a part of it. */
  client?: SqlClient | undefined;
}

const live = (row: TaskRow | undefined) => (row && row.version > 0 && row.deleted_ms === null ? row : undefined);

/** @see TaskStore.save */
export async function write(tasks: Tasks, given: TaskWrite): Promise<Saved> {
  const { database, s, calendars } = tasks;
  const { name, stored, expectedVersion, change } = given;
  const make = async (present: TaskDefinition | undefined, client?: SqlClient) =>
    inFull(tasks, await given.make(present, client), present, client);
  const present = await readTask(tasks, name);
  const { definition: wanted } = await make(live(present)?.definition);
  const wantedText = definitionText(wanted);
  if (present && live(present)?.definition_text === wantedText && isApplied(present, change)) {
    if (expectedVersion !== null && expectedVersion !== present.version)
      throw await stale(tasks, name, expectedVersion);
    return { record: (await asRecords(tasks, [present]))[0] as TaskRecord, changed: false };
  }
  await tasks.zones.enter([wanted], [], change.nowMs);
  const flows = wanted.after !== undefined || live(present)?.definition.after !== undefined;
  const written = await database.within(given.client, async (client) => {
    // The calendar is locked before the task, because a change of a calendar locks the two in this order.
    let calendar = await calendars.in(client, wanted, true);
    if (flows) await lockUpstream(client, s);
    const groupId = await groupNumberIn(tasks, client, wanted.group);
    // The row is inserted first and locked afterwards: if two nodes start at the same time, the second waits and then reads the version of
    // the first.
    await create(client, s, { definition: wanted, text: wantedText, groupId, nowMs: change.nowMs });
    const row = await lockTask(client, s, name);
    if (expectedVersion !== null && expectedVersion !== row.version)
      throw await stale(tasks, name, expectedVersion, client);
    const { definition, ofVersion } = await make(live(row)?.definition, client);
    const text = definitionText(definition);
    if (definition.calendar?.name !== calendar?.name) calendar = await calendars.in(client, definition, true);
    if (live(row)?.definition_text === text) {
      await markApplied(client, s, row.id, row.version, change);
      await auditedAdoption(client, s, row, change);
      await tasks.zones.readFor([row], queryIn(client));
      return {
        record: withRules(
          asRecord({ ...row, bundle: change.bundle ?? row.bundle }),
          calendar,
          tasks.zones.of(row.definition, calendar, row.zones_version),
        ),
        changed: false,
      };
    }
    // The task's group, or the tasks that it follows, changed after they were read. The number of a group must be read, and the lock of
    // `lockUpstream` taken, before the task is locked, so `write` starts again.
    if (definition.group !== wanted.group) return undefined;
    if (!flows && (definition.after ?? live(row)?.definition.after)) return undefined;
    await stored?.(client, row.id);
    const record = await edit(tasks, client, { row, definition, text, groupId, calendar, change });
    await markSchedule(client, s, row.id, { of: definition.of, ofVersion });
    return { record, changed: true };
  });
  if (!written) return write(tasks, given);
  tasks.groups.set(written.record.definition.group, written.record.groupId);
  if (written.changed) await lookAgain(database, written.record.taskId, change.nowMs);
  return written;
}

/** Inserts a row with version 0, which `edit` completes in the same transaction, unless the name has a row already. */
async function create(
  client: SqlClient,
  s: string,
  { definition, text, groupId, nowMs }: { definition: TaskDefinition; text: string; groupId: number; nowMs: number },
): Promise<void> {
  await client.query(
    `with made as (
       insert into ${s}.task (name, version, group_id, definition, definition_text, gate, created_ms, changed_ms)
       values ($1, 0, $2, $3, $4, 0, $5, $5) on conflict (name) do nothing returning id)
     insert into ${s}.plan (task_id, version) select id, 0 from made`,
    [definition.name, groupId, JSON.stringify(definition), text, Math.round(nowMs)],
  );
}
