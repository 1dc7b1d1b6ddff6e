import { inOrder } from "../after.ts";
import type { Calendar } from "../calendar.ts";
import { pause } from "../clock.ts";
import { CarillonError } from "../errors.ts";
import { missedRanges } from "../planning.ts";
import { plannedSchedule, slotsPassed } from "../slot-rules.ts";
import type {
  Change,
  Counters,
  IsWanted,
  SqlClient,
  TaskChange,
  TaskRecord,
  TaskStore,
  VersionRecord,
} from "../store.ts";
import { definitionText, type TaskDefinition } from "../task.ts";
import { keepEdits } from "../task-edits.ts";
import { staleTask } from "../task-versions.ts";
import { isApplied, markApplied, markRemoved } from "./applied.ts";
import { auditedAdoption, auditedEdit, auditedTask } from "./audit.ts";
import { KnownCalendars, type Replanning } from "./calendars.ts";
import type { Database } from "./database.ts";
import { settleGates } from "./gates.ts";
import { growthOfTasks } from "./growth.ts";
import { afterEndOf, createTasks, gateOf } from "./new-tasks.ts";
import { rehang } from "./rehang.ts";
import { lookAgain, takeUp, takeUpLeft } from "./set-aside.ts";
import { notifySql } from "./signals.ts";
import { asRecord, type TaskRow, withCalendar } from "./task-rows.ts";
import { lockUpstream, saveUpstream } from "./upstream.ts";
import { skipPassed, type Withdrawal, withdraw } from "./withdraw.ts";

const recallAgainMs = 10;

/** An edit is a transaction of its own; so many go side by side. */
const savesAtOnce = 4;

export function taskStore(database: Database): TaskStore & { replan: Replanning } {
  const s = database.schema;
  const fields = `t.id, t.name, t.version, t.group_id, t.definition, t.definition_text, t.paused_ms, t.paused_by,
                  t.paused_why, t.deleted_ms, t.changed_ms, p.next_slot_ms, t.bundle, t.applied_version`;
  const from = `${s}.task t join ${s}.plan p on p.task_id = t.id`;

  const counted = growthOfTasks(database);

  /** A group keeps its number for ever. */
  const groups = new Map<string, number>();

  const calendars = new KnownCalendars(database);
  const asRecords = async (rows: TaskRow[]): Promise<TaskRecord[]> => {
    const known = await calendars.of(rows.map(({ definition }) => definition));
    return rows.map((row) => withCalendar(asRecord(row), known.get(row.definition.calendar?.name ?? "")));
  };

  const store: TaskStore & { replan: Replanning } = {
    async replan(client, name, change) {
      const row = await lock(client, name);
      const { definition, definition_text: text, group_id: groupId } = row;
      await edit(client, row, definition, text, groupId, change, await calendars.in(client, definition, false));
    },

    async save(definition, expectedVersion, change) {
      return write(definition.name, () => definition, expectedVersion, change);
    },

    async saveAll(definitions, change) {
      const byName = new Map(definitions.map((definition) => [definition.name, definition]));
      const present = await database.query<TaskRow>(
        "task-texts",
        `select ${fields} from ${from} where t.name = any($1)`,
        [[...byName.keys()]],
      );
      // What a bundle's files define, code does not define as well: see docs/as-code.md.
      const isSo = (row: TaskRow, defined: TaskDefinition | undefined) =>
        row.bundle !== null || (defined && row.definition_text === definitionText(keepEdits(defined, row.definition)));
      const records = await asRecords(
        present.filter((row) => row.deleted_ms === null && isSo(row, byName.get(row.name))),
      );
      const there = new Set(present.map(({ name }) => name));
      // One with a calendar is made by a transaction of its own, which keeps the calendar from going away.
      // So is one that comes after others, after them and under a lock.
      const absent = definitions.filter(({ name, calendar, after }) => !there.has(name) && !calendar && !after);
      if (absent.length > 0) {
        const ids = new Map<string, number>();
        for (const { group } of absent) if (!ids.has(group)) ids.set(group, await store.group(group));
        const made = await createTasks(database, absent, ({ group }) => ids.get(group) as number, change);
        records.push(...made);
        await counted(made.length);
      }
      const done = new Set(records.map(({ name }) => name));
      const left = definitions.filter(({ name, after }) => !done.has(name) && !after);
      const save = async (defined: TaskDefinition) => {
        const { record } = await write(defined.name, (present) => keepEdits(defined, present), null, change);
        records.push(record);
      };
      const saveSome = async () => {
        for (let next = left.pop(); next !== undefined; next = left.pop()) await save(next);
      };
      await Promise.all(Array.from({ length: savesAtOnce }, saveSome));
      for (const defined of inOrder(definitions.filter(({ name, after }) => !done.has(name) && after)))
        await save(defined);
      return records;
    },

    async byName(name) {
      const [row] = await read(name);
      if (!row || row.deleted_ms !== null) throw unknown(name);
      return (await asRecords([row]))[0] as TaskRecord;
    },

    async byNames(names) {
      const rows = await database.query<TaskRow>(
        "task-by-names",
        `select ${fields} from ${from} where t.name = any($1) and t.deleted_ms is null`,
        [names],
      );
      return asRecords(rows);
    },

    async byIds(taskIds) {
      const rows = await database.query<TaskRow>("task-by-ids", `select ${fields} from ${from} where t.id = any($1)`, [
        taskIds,
      ]);
      return asRecords(rows);
    },

    async changedSince(sinceMs) {
      return database.query<TaskChange>(
        "task-changed",
        `select id as "taskId", version, changed_ms as "changedMs" from ${s}.task where changed_ms >= $1`,
        [Math.round(sinceMs)],
      );
    },

    async list() {
      const rows = await database.query<TaskRow>(
        "task-list",
        `select ${fields} from ${from} where t.deleted_ms is null order by t.name`,
      );
      return asRecords(rows);
    },

    async versions(name) {
      const { taskId } = await store.byName(name);
      return database.query(
        "task-versions",
        `select version, definition, author, reason, changed_ms as "changedMs" from ${s}.task_version
         where task_id = $1 order by version desc`,
        [taskId],
      );
    },

    async pause(name, change, isWanted) {
      const mark = (client: SqlClient, id: number) =>
        client.query(
          `update ${s}.task set paused_ms = $2, paused_by = $3, paused_why = $4, changed_ms = $2 where id = $1`,
          [id, Math.round(change.nowMs), change.author, change.reason],
        );
      const { taskId } = await stop(name, "paused", change, mark, null, isWanted);
      return { recalled: await recallClaimed(taskId) };
    },

    async remove(name, change, expectedVersion = null) {
      const mark = (client: SqlClient, id: number) => markRemoved(client, s, id, change);
      const { taskId } = await stop(name, "removed", change, mark, expectedVersion);
      return { recalled: await recallClaimed(taskId) };
    },

    async resume(name, change, isWanted) {
      const taskId = await database.transaction(async (client) => {
        const row = await lock(client, name);
        if (row.deleted_ms !== null) throw unknown(name);
        if (row.paused_ms === null || (isWanted && !(await isWanted(client)))) return row.id;
        await auditedTask(client, s, "resume", row, change);
        await client.query(
          `update ${s}.task set paused_ms = null, paused_by = null, paused_why = null, changed_ms = $2 where id = $1`,
          [row.id, Math.round(change.nowMs)],
        );
        const calendar = await calendars.in(client, row.definition, false);
        await replan(client, row, row.definition, change.nowMs, false, calendar);
        await takeUp(client, s, [row.id], change.nowMs);
        await client.query(`select ${notifySql(s, "'tasks'")}`);
        return row.id;
      });
      await lookAgain(database, taskId, change.nowMs);
    },

    takeUpLeft: (changedSinceMs, nowMs) => takeUpLeft(database, { changedSinceMs }, nowMs),

    async counters(taskIds) {
      const names = ["succeeded", "failed", "cancelled", "skipped", "missed", "retried"] as const;
      const rows = await database.query<Counters & { taskId: number }>(
        "task-counters",
        `select task_id as "taskId", ${names.map((n) => `sum(${n})::bigint as ${n}`).join(", ")} from (
           select task_id, ${names.join(", ")} from ${s}.tally where task_id = any($1)
           union all select task_id, ${names.join(", ")} from ${s}.tally_delta where task_id = any($1)) x group by task_id`,
        [taskIds],
      );
      return new Map(rows.map(({ taskId, ...counters }) => [taskId, counters]));
    },

    async foldCounters(limit) {
      const [row] = await database.query<{ folded: number }>(
        "task-fold",
        `with gone as (
           delete from ${s}.tally_delta where ctid = any(array(select ctid from ${s}.tally_delta limit $1 for update skip locked))
           returning *),
         folded as (
           insert into ${s}.tally as t (task_id, succeeded, failed, cancelled, skipped, missed, retried)
           select task_id, sum(succeeded), sum(failed), sum(cancelled), sum(skipped), sum(missed), sum(retried)
           from gone group by task_id order by task_id
           on conflict (task_id) do update set
             succeeded = t.succeeded + excluded.succeeded, failed = t.failed + excluded.failed,
             cancelled = t.cancelled + excluded.cancelled, skipped = t.skipped + excluded.skipped,
             missed = t.missed + excluded.missed, retried = t.retried + excluded.retried)
         select count(*)::int as folded from gone`,
        [limit],
      );
      return row?.folded ?? 0;
    },

    async group(name) {
      const known = groups.get(name);
      if (known !== undefined) return known;
      const [row] = await database.query<{ id: number }>(
        "task-group",
        `with made as (insert into ${s}.worker_group (name) select $1
                       where not exists (select from ${s}.worker_group where name = $1)
                       on conflict do nothing returning id)
         select id from made union all select id from ${s}.worker_group where name = $1`,
        [name],
      );
      // Another node made it between this statement's snapshot and its insert.
      if (!row) return store.group(name);
      groups.set(name, row.id);
      return row.id;
    },
  };
  return store;

  /** @param make the definition, from the one that is there; undefined: there is none, or it was removed */
  async function write(
    name: string,
    make: (present: TaskDefinition | undefined) => TaskDefinition,
    expectedVersion: number | null,
    change: Change,
  ): Promise<{ record: TaskRecord; changed: boolean }> {
    const live = (row: TaskRow | undefined) => (row && row.version > 0 && row.deleted_ms === null ? row : undefined);
    const [present] = await read(name);
    const wanted = make(live(present)?.definition);
    const wantedText = definitionText(wanted);
    if (present && live(present)?.definition_text === wantedText && isApplied(present, change)) {
      if (expectedVersion !== null && expectedVersion !== present.version) throw await stale(name, expectedVersion);
      return { record: (await asRecords([present]))[0] as TaskRecord, changed: false };
    }
    const groupId = await store.group(wanted.group);
    const flows = wanted.after !== undefined || live(present)?.definition.after !== undefined;
    const written = await database.transaction(async (client) => {
      // Before the task's own row: whoever changes a calendar locks the two in this order.
      let calendar = await calendars.in(client, wanted, true);
      if (flows) await lockUpstream(client, s);
      // Creating first and locking then lets two nodes that start at once agree on who was first.
      await create(client, wanted, wantedText, groupId, change);
      const row = await lock(client, name);
      if (expectedVersion !== null && expectedVersion !== row.version) throw await stale(name, expectedVersion, client);
      const definition = make(live(row)?.definition);
      const text = definitionText(definition);
      if (definition.calendar?.name !== calendar?.name) calendar = await calendars.in(client, definition, true);
      if (live(row)?.definition_text === text) {
        await markApplied(client, s, row.id, row.version, change);
        await auditedAdoption(client, s, row, change);
        return {
          record: withCalendar(asRecord({ ...row, bundle: change.bundle ?? row.bundle }), calendar),
          changed: false,
        };
      }
      // Someone edited the group since it was read: its number is asked for outside of a transaction.
      if (definition.group !== wanted.group) return undefined;
      if (!flows && (definition.after ?? live(row)?.definition.after)) return undefined;
      const record = await edit(client, row, definition, text, groupId, change, calendar);
      return { record: withCalendar(record, calendar), changed: true };
    });
    if (!written) return write(name, make, expectedVersion, change);
    if (written.changed) await lookAgain(database, written.record.taskId, change.nowMs);
    return written;
  }

  async function read(name: string): Promise<TaskRow[]> {
    return database.query<TaskRow>("task-by-name", `select ${fields} from ${from} where t.name = $1`, [name]);
  }

  async function lock(client: SqlClient, name: string): Promise<TaskRow> {
    const { rows } = await client.query(`select ${fields} from ${from} where t.name = $1 for update of t, p`, [name]);
    if (!rows[0]) throw unknown(name);
    return rows[0] as unknown as TaskRow;
  }

  /** Both versions, who made the present one, and what they differ in. */
  async function stale(name: string, expected: number, client?: SqlClient): Promise<CarillonError> {
    const text = `select v.version, v.definition, v.author, v.reason, v.changed_ms::float8 as "changedMs"
                  from ${s}.task t join ${s}.task_version v on v.task_id = t.id
                  where t.name = $1 and v.version in (t.version, $2) order by (v.version = t.version) desc`;
    const rows = client
      ? (await client.query(text, [name, expected])).rows
      : await database.query("", text, [name, expected]);
    const [present, before] = rows as unknown as (VersionRecord | undefined)[];
    return staleTask(name, expected, present, before);
  }

  /** Version 0 is a row that `edit` fills in the same transaction. */
  async function create(client: SqlClient, definition: TaskDefinition, text: string, groupId: number, change: Change) {
    await client.query(
      `with made as (
         insert into ${s}.task (name, version, group_id, definition, definition_text, gate, created_ms, changed_ms)
         values ($1, 0, $2, $3, $4, 0, $5, $5) on conflict (name) do nothing returning id)
       insert into ${s}.plan (task_id, version) select id, 0 from made`,
      [definition.name, groupId, JSON.stringify(definition), text, Math.round(change.nowMs)],
    );
  }

  async function edit(
    client: SqlClient,
    row: TaskRow,
    definition: TaskDefinition,
    text: string,
    groupId: number,
    change: Change,
    calendar: Calendar | undefined,
  ): Promise<TaskRecord> {
    const now = Math.round(change.nowMs);
    const version = row.version + 1;
    const { gate, limit } = gateOf(definition);
    await withdraw(client, s, row.id, now, "edited");
    await account(client, row, now, "edited before it could be planned");
    await client.query(
      `update ${s}.task set version = $2, group_id = $3, definition = $4, definition_text = $5, gate = $6, gate_limit = $7,
              changed_ms = $8, deleted_ms = null, paused_ms = case when deleted_ms is null then paused_ms end where id = $1`,
      [row.id, version, groupId, JSON.stringify(definition), text, gate, limit, now],
    );
    await client.query(
      `insert into ${s}.task_version (task_id, version, definition, author, reason, changed_ms) values ($1, $2, $3, $4, $5, $6)`,
      [row.id, version, JSON.stringify(definition), change.author, change.reason, now],
    );
    await markApplied(client, s, row.id, version, change);
    const paused = row.paused_ms !== null && row.deleted_ms === null;
    await client.query(`update ${s}.plan set version = $2, paused = $3 where task_id = $1`, [row.id, version, paused]);
    if (definition.after ?? row.definition.after) await saveUpstream(client, s, row.id, definition);
    if (row.version > 0) await rehang(client, s, row.id);
    if (gate > 0) await client.query(`insert into ${s}.gate (task_id) values ($1) on conflict do nothing`, [row.id]);
    const nextSlotMs = await replan(client, row, definition, change.nowMs, paused, calendar);
    await settleGates(client, s, [row.id], change.nowMs, false);
    await auditedEdit(client, s, row, definition, text, change);
    await client.query(`select ${notifySql(s, "'tasks'")}`);
    return asRecord({
      ...row,
      version,
      group_id: groupId,
      definition,
      changed_ms: now,
      next_slot_ms: nextSlotMs,
      bundle: change.bundle ?? row.bundle,
      deleted_ms: null,
      paused_ms: paused ? row.paused_ms : null,
    });
  }

  /** Sets the plan's next slot: the first after now that the ledger does not have. */
  async function replan(
    client: SqlClient,
    { id: taskId, version: before }: TaskRow,
    definition: TaskDefinition,
    nowMs: number,
    paused: boolean,
    calendar: Calendar | undefined,
  ) {
    const afterEnd = afterEndOf(definition);
    const { rows } = await client.query(
      `select array(select slot_ms::float8 from ${s}.slot where task_id = $1 and slot_ms > $2) as accepted,
              exists (select from ${s}.run where task_id = $1 and after_end) as running`,
      [taskId, Math.round(nowMs)],
    );
    const accepted = new Set(rows[0]?.accepted as number[]);
    const waits = paused || (afterEnd !== null && rows[0]?.running === true);
    const compiled = plannedSchedule(definition, calendar);
    // Only of a task that was there: a slot that came due before there was one is nobody's.
    if (before > 0 && !paused) await skipPassed(client, s, taskId, slotsPassed(definition, calendar, nowMs), nowMs);
    let next = waits ? null : compiled.next(nowMs);
    // Not simply after the last: a slot withdrawn just now may come before one that a worker has claimed ahead.
    while (next !== null && accepted.has(next)) next = compiled.next(next);
    await client.query(`update ${s}.plan set next_slot_ms = $2, after_end_ms = $3, paused = $4 where task_id = $1`, [
      taskId,
      next === null ? null : Math.round(next),
      afterEnd,
      paused,
    ]);
    return next;
  }

  /** Slots that came due under the old definition and were not planned yet are not forgotten. */
  async function account(client: SqlClient, row: TaskRow, now: number, reason: string): Promise<void> {
    const first = row.next_slot_ms === null ? null : Number(row.next_slot_ms);
    if (first === null || first > now) return;
    const known = row.definition.calendar ? await calendars.in(client, row.definition, false) : undefined;
    const schedule = plannedSchedule(row.definition, known);
    const last = schedule.previous(now + 1) ?? first;
    const missed = missedRanges(schedule, first, last, reason);
    await client.query(
      `with told as (
         insert into ${s}.slot_range (task_id, version, from_ms, to_ms, slots, outcome, reason, recorded_ms)
         select $1, $2, i.from_ms, i.to_ms, i.slots, 3, $6, $7 from unnest($3::bigint[], $4::bigint[], $5::bigint[]) as i (from_ms, to_ms, slots)
         returning slots)
       insert into ${s}.tally_delta (task_id, missed) select $1, sum(slots) from told where slots is not null`,
      [
        ...[row.id, row.version, missed.map(({ fromMs }) => fromMs), missed.map(({ toMs }) => toMs)],
        ...[missed.map(({ count }) => count), reason, now],
      ],
    );
  }

  /** What pause and remove share: no slot of this task is planned any more, and what was is taken back. */
  async function stop(
    name: string,
    how: Extract<Withdrawal, "paused" | "removed">,
    change: Change,
    mark: (client: SqlClient, taskId: number) => Promise<unknown>,
    expectedVersion: number | null = null,
    isWanted?: IsWanted,
  ): Promise<{ taskId: number }> {
    return database.transaction(async (client) => {
      const row = await lock(client, name);
      if (row.deleted_ms !== null) throw unknown(name);
      if (expectedVersion !== null && expectedVersion !== row.version) throw await stale(name, expectedVersion, client);
      if (how === "paused" && row.paused_ms !== null) return { taskId: row.id };
      if (isWanted && !(await isWanted(client))) return { taskId: row.id };
      const now = Math.round(change.nowMs);
      await account(client, row, now, `${how} before it could be planned`);
      await client.query(`update ${s}.plan set paused = true, next_slot_ms = null where task_id = $1`, [row.id]);
      await withdraw(client, s, row.id, now, how);
      await mark(client, row.id);
      await auditedTask(client, s, how === "paused" ? "pause" : "remove", row, change);
      await client.query(`select ${notifySql(s, "'tasks'")}`);
      return { taskId: row.id };
    });
  }

  /** Asks back what is claimed; passes over rows that someone is writing, and comes again until none is left. */
  async function recallClaimed(taskId: number): Promise<number[]> {
    const recalled = new Set<number>();
    for (;;) {
      const rows = await database.query<{ id: number }>(
        "task-recall",
        `update ${s}.run set recall = 2, recall_why = 'its task was stopped' where id = any(array(
           select id from ${s}.run where task_id = $1 and state = 3 and recall = 0 for update skip locked))
         returning id`,
        [taskId],
      );
      for (const { id } of rows) recalled.add(id);
      const open = await database.query<{ id: number; asked: boolean }>(
        "task-recall-open",
        `select id, recall > 0 as asked from ${s}.run where task_id = $1 and state = 3 and started_ms is null`,
        [taskId],
      );
      // Also what was asked back before, by a cancellation or a newer run: until it is answered, that may start.
      for (const { id, asked } of open) if (asked) recalled.add(id);
      if (open.every(({ asked }) => asked)) break;
      // Someone ends it in a transaction of their own, which may take its time.
      await pause(database.clock, recallAgainMs);
    }
    if (recalled.size > 0) await database.query("", `select ${notifySql(s, "'recall'")}`);
    return [...recalled];
  }
}

function unknown(name: string): CarillonError {
  return new CarillonError("TASK_UNKNOWN", `there is no task ${JSON.stringify(name)}`, {
    hint: "See `carillon tasks list`.",
  });
}
