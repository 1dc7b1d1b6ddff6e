import { CarillonError } from "../errors.ts";
import { liveStates, outcomes } from "../run.ts";
import type { AttemptRecord, Enqueued, EnqueueWrite, LogLine, RunStore, SqlClient } from "../store.ts";
import { audited } from "./audit.ts";
import type { Database } from "./database.ts";
import { lockPlans, settleGates } from "./gates.ts";
import { asRunRecord, type RunRow, runRecordSql, stateNames } from "./run-rows.ts";
import { notifyReadySql, notifySql } from "./signals.ts";
import { sourceNumber } from "./sources.ts";

const preparedRowsMax = 50;
/** Whoever ends a run has its own estimate of the store's clock. */
const clocksApartMs = 60_000;
const levels = ["debug", "info", "warn", "error"] as const;

export function runStore(database: Database): RunStore {
  const s = database.schema;

  /**
   * A key that a live run has already makes no new one; the caller is given that run instead. All or nothing: with one
   * task gone no run is made, so the caller can send the others again.
   */
  const insertSql = (id: string) => `
    with i as (
      select ${id} as id, i.* from unnest($1::int[], $2::jsonb[], $3::bigint[], $4::text[], $5::smallint[], $6::smallint[], $8::text[])
        with ordinality as i (task_id, payload, due_ms, key, priority, source, limit_key, place)
    ), gone as materialized (
      select 1 from i where not exists (select from ${s}.task t where t.id = i.task_id and t.deleted_ms is null)
    ), made as (
      insert into ${s}.run (id, task_id, group_id, version, state, due_ms, created_ms, priority, gate, after_end, source, key, payload, limit_key)
      select i.id, t.id, case when t.routed then 0 else t.group_id end, t.version,
             case when t.paused_ms is not null then 1 when t.gate > 0 then 0 else 2 end, i.due_ms, $7,
             coalesce(i.priority, (t.definition->>'priority')::smallint), t.gate, false, i.source, i.key, i.payload,
             coalesce(i.limit_key, case when t.lanes then coalesce(i.key, '') end)
      from i join ${s}.task t on t.id = i.task_id and t.deleted_ms is null
      where not exists (select from gone)
      order by i.place
      on conflict (task_id, key) where key is not null do nothing returning id, due_ms, state, group_id
    ), told as (
      ${notifyReadySql(s, "made where state = 2")}
    )
    select i.place, coalesce(made.id, r.id) as id, made.id is not null as created, made.state = 0 as held, (select count(*) from told)
    from i left join made on made.id = i.id left join ${s}.run r on r.task_id = i.task_id and r.key = i.key
    order by i.place`;

  function insertValues(writes: EnqueueWrite[], nowMs: number): unknown[] {
    return [
      writes.map(({ taskId }) => taskId),
      writes.map(({ payload }) => payload),
      writes.map(({ dueMs }) => Math.round(dueMs)),
      writes.map(({ key }) => key),
      writes.map(({ priority }) => priority),
      writes.map(({ source }) => sourceNumber(source)),
      Math.round(nowMs),
      writes.map(({ limitKey }) => limitKey ?? null),
    ];
  }

  const recordSql = (table: "run" | "run_history") => runRecordSql(s, table);

  const store: RunStore = {
    async enqueue(writes, nowMs) {
      const undrawn = writes.filter(({ runId }) => runId === undefined).length;
      const drawn =
        undrawn === 0
          ? []
          : await database.persist(() =>
              database.query<{ id: number }>(
                "run-ids",
                `select nextval('${s}.run_id') as id from generate_series(1, $1)`,
                [undrawn],
              ),
            );
      let next = 0;
      const ids = writes.map(({ runId }) => runId ?? (drawn[next++] as { id: number }).id);
      return database.persist(async (again) => {
        // The reply to an earlier try may have been lost after its commit; whatever of it is there stands.
        const present = again || undrawn < writes.length ? await existing(ids, nowMs) : new Set<number>();
        const answers: (Enqueued | null)[] = ids.map((runId) => (present.has(runId) ? { runId, created: true } : null));
        // A row comes back empty when its key was taken by a run that the statement's snapshot did not show yet.
        for (let open = places(answers); open.length > 0; open = places(answers)) {
          const rows = await insert(
            open.map((place) => ids[place] as number),
            open.map((place) => writes[place] as EnqueueWrite),
            nowMs,
          );
          open.forEach((place, i) => {
            const row = rows[i] as Made;
            if (row.id !== null) answers[place] = { runId: row.id, created: row.created };
          });
        }
        return answers as Enqueued[];
      });
    },

    async enqueueIn(client, write, nowMs) {
      for (;;) {
        const id = write.runId === undefined ? `nextval('${s}.run_id')` : String(Number(write.runId));
        const { rows } = await client.query(insertSql(id), insertValues([write], nowMs));
        const made = rows[0] as unknown as Made;
        if (made.held) await settleGates(client, s, [write.taskId], nowMs, false);
        if (made.id !== null) return { runId: Number(made.id), created: made.created };
        const { rows: tasks } = await client.query(`select from ${s}.task where id = $1 and deleted_ms is null`, [
          write.taskId,
        ]);
        if (tasks.length === 0) throw removed();
      }
    },

    async cancel(runId, why, nowMs, by) {
      const now = Math.round(nowMs);
      const putDown = async (client: SqlClient, outcome: string) => {
        if (by === undefined) return;
        const entry = { atMs: now, who: by, act: "cancel", about: "run" as const, named: String(runId) };
        await audited(client, s, { ...entry, before: null, after: { outcome }, why });
      };
      return database.transaction(async (client) => {
        const { rows: tasks } = await client.query(`select task_id from ${s}.run where id = $1`, [runId]);
        await lockPlans(
          client,
          s,
          tasks.map((row) => row.task_id as number),
        );
        // Locked first: between two statements that ask for its state, a claim could slip past both.
        const live = await client.query(`select state from ${s}.run where id = $1 for update`, [runId]);
        if (live.rows[0]?.state === liveStates.indexOf("claimed")) {
          await client.query(`update ${s}.run set recall = 1, recall_why = $2 where id = $1`, [runId, why]);
          await client.query(`select ${notifySql(s, "'recall'")}`);
          await putDown(client, "asked");
          return "asked";
        }
        const { rows } = await client.query(
          `with gone as (delete from ${s}.run where id = $1 returning *),
                told as (
                  insert into ${s}.run_history (id, due_ms, slot_ms, created_ms, ended_ms, task_id, version, attempt, outcome, priority,
                                                source, key, payload, parent_id, inputs, error)
                  select id, due_ms, slot_ms, created_ms, $2, task_id, version, attempt, 2, priority, source, key, payload,
                         parent_id, inputs, jsonb_build_object('code', 'CANCELLED', 'message', $3::text) from gone),
                onward as (
                  update ${s}.plan p set next_slot_ms = $2 + p.after_end_ms from gone
                  where p.task_id = gone.task_id and gone.after_end and p.next_slot_ms is null and not p.paused
                  returning p.task_id),
                woken as (select ${notifySql(s, "'plans'")} from onward),
                counted as (insert into ${s}.tally_delta (task_id, cancelled) select task_id, 1 from gone)
           select task_id, gate, (select count(*) from woken) from gone`,
          [runId, now, why],
        );
        const gone = rows[0];
        if (!gone) throw await notLive(runId);
        await putDown(client, "cancelled");
        if ((gone.gate as number) > 0) await settleGates(client, s, [gone.task_id as number], nowMs, true);
        return "cancelled";
      });
    },

    async recallsOpen(runIds) {
      const rows = await database.query<{ id: number }>(
        "run-recalls",
        `select id from ${s}.run where id = any($1) and state = 3 and recall > 0 and started_ms is null`,
        [runIds],
      );
      return rows.map(({ id }) => id);
    },

    async find(runId) {
      for (const table of ["run", "run_history"] as const) {
        const [row] = await database.query<RunRow>(`run-find-${table}`, `${recordSql(table)} where r.id = $1`, [runId]);
        if (row) return asRunRecord(row);
      }
      throw new CarillonError("RUN_UNKNOWN", `there is no run ${runId}`, {
        hint: "It may have been dropped by retention, or have succeeded in a task that keeps a history of failures only. See `carillon runs list`.",
      });
    },

    async list(filter) {
      const states = filter.states ?? [...liveStates, ...outcomes];
      const numbers = states.map((state) => stateNames.indexOf(state));
      const values = [filter.task ?? null, filter.sinceMs ?? null, filter.limit];
      const live = numbers.filter((number) => number < liveStates.length);
      const ended = numbers.filter((number) => number >= liveStates.length).map((number) => number - liveStates.length);
      const rows: RunRow[] = [];
      if (live.length > 0) {
        rows.push(
          ...(await database.query<RunRow>(
            "run-list-live",
            `${recordSql("run")} where r.state = any($4) and ($1::text is null or t.name = $1) and ($2::bigint is null or r.due_ms >= $2)
             order by r.state desc, r.due_ms limit $3`,
            [...values, live],
          )),
        );
      }
      if (ended.length > 0) {
        rows.push(
          ...(await database.query<RunRow>(
            "run-list-ended",
            `${recordSql("run_history")} where r.outcome = any($4) and ($1::text is null or t.name = $1) and ($2::bigint is null or r.ended_ms >= $2)
             order by r.ended_ms desc limit $3`,
            [...values, ended],
          )),
        );
      }
      return rows.slice(0, filter.limit).map(asRunRecord);
    },

    async attempts(runId): Promise<AttemptRecord[]> {
      return database.query<AttemptRecord>(
        "run-attempts",
        `select a.attempt, a.fence, o.node, a.claimed_ms as "claimedMs", a.started_ms as "startedMs", a.ended_ms as "endedMs", a.outcome, a.error
         from ${s}.attempt a left join ${s}.session o on o.id = a.session_id where a.run_id = $1 order by a.attempt`,
        [runId],
      );
    },

    async logs(runId, limit): Promise<LogLine[]> {
      const rows = await database.query<Omit<LogLine, "level"> & { level: number }>(
        "run-logs",
        `select run_id as "runId", attempt, at_ms as "atMs", level, message, fields from ${s}.run_log where run_id = $1 order by at_ms limit $2`,
        [runId, limit],
      );
      return rows.map((row) => ({ ...row, level: levels[row.level] ?? "info" }));
    },

    async writeLogs(lines) {
      await database.query(
        "run-write-logs",
        `insert into ${s}.run_log (run_id, attempt, at_ms, level, message, fields)
         select * from unnest($1::bigint[], $2::int[], $3::bigint[], $4::smallint[], $5::text[], $6::jsonb[])`,
        [
          lines.map(({ runId }) => runId),
          lines.map(({ attempt }) => attempt),
          lines.map(({ atMs }) => Math.round(atMs)),
          lines.map(({ level }) => levels.indexOf(level)),
          lines.map(({ message }) => message.replaceAll("\0", "�")),
          lines.map(({ fields }) => (fields === null ? null : JSON.stringify(fields))),
        ],
      );
    },
  };
  return store;

  async function insert(ids: number[], writes: EnqueueWrite[], nowMs: number): Promise<Made[]> {
    const values = [...insertValues(writes, nowMs), ids];
    // A large batch is planned for itself: the plan kept for small ones compares every row with every other.
    const name = ids.length <= preparedRowsMax ? "run-insert" : "";
    const rows = await database.query<Made>(name, insertSql("($9::bigint[])[place]"), values);
    const held = new Set(rows.flatMap((row, i) => (row.held ? [(writes[i] as EnqueueWrite).taskId] : [])));
    // A crash between the two leaves a held run with a free place, which the dispatcher's sweep finds.
    if (held.size > 0) await database.transaction((client) => settleGates(client, s, [...held], nowMs, false));
    if (rows.some(({ id }) => id === null)) {
      const taskIds = [...new Set(writes.map(({ taskId }) => taskId))];
      const known = await database.query(
        "run-tasks",
        `select id from ${s}.task where id = any($1) and deleted_ms is null`,
        [taskIds],
      );
      if (known.length < taskIds.length) throw removed();
    }
    return rows;
  }

  /** Made by a try of this moment or later; they may have run, and ended, since. */
  async function existing(ids: number[], nowMs: number): Promise<Set<number>> {
    const rows = await database.query<{ id: number }>(
      "run-existing",
      `select id from ${s}.run where id = any($1) union all select id from ${s}.run_history where id = any($1)
       union all select id from ${s}.run_trace t, unnest(t.run_ids) as id where t.ended_ms >= $2 and t.run_ids && $1 and id = any($1)`,
      [ids, Math.round(nowMs) - clocksApartMs],
    );
    return new Set(rows.map(({ id }) => id));
  }

  async function notLive(runId: number): Promise<CarillonError> {
    const { state } = await store.find(runId);
    return new CarillonError("RUN_STATE", `run ${runId} has ended (${state}) and cannot be cancelled`);
  }
}

interface Made {
  id: number | null;
  created: boolean;
  held: boolean | null;
}

const places = (answers: (Enqueued | null)[]) => answers.flatMap((answer, place) => (answer === null ? [place] : []));

const removed = () => new CarillonError("TASK_UNKNOWN", "the task was removed before its run was enqueued");
