import { CarillonError } from "../errors.ts";
import type { Json } from "../json.ts";
import type { ClaimedRun, Enqueued, EnqueueWrite, LocalClaims, RunStore } from "../store.ts";
import { numbers, texts } from "./columns.ts";
import type { Database } from "./database.ts";
import { settleGates } from "./gates.ts";
import { unlimitedGroupSql } from "./group-limits.ts";
import { growthOfRuns } from "./growth.ts";
import { oneInsertSql, oneValues } from "./one-enqueue.ts";
import { type PlainMade, plainInsertSql, plainValues } from "./plain-enqueue.ts";
import { type Query, queryIn, queryOf } from "./query.ts";
import { RunIds } from "./run-ids.ts";
import { takeUpLeft } from "./set-aside.ts";
import { notifyReadySql } from "./signals.ts";
import { sourceNumber } from "./sources.ts";

const preparedRowsMax = 50;
/** Whoever ends a run has its own estimate of the store's clock. */
const clocksApartMs = 60_000;

/** What the statement is about: less is asked of it where less is needed. */
interface Shape {
  /** Some have keys. An ON CONFLICT costs every row one more record in the log of changes. */
  keyed: boolean;
  /** A worker of this process takes what is due at once. */
  here: boolean;
}

/**
 * A key that a live run has already makes no new one; the caller is given that run instead. All or nothing: with one
 * task gone no run is made, so the caller can send the others again.
 *
 * `here`: what is plain and due is made as this session's claim, so that it is written once and told to nobody. Whoever
 * pauses or edits a task holds its plan's row: a share of that lock sees to it that they find the claim, and ask it
 * back, or else that it is not made; where somebody has the row just now, the run is left for a claim of its own.
 */
const insertSql = (s: string, { keyed, here }: Shape) => `
  with bounded as materialized (
    select exists (select from ${s}.operation where ended_ms is null and last_run_id >= $11) as yes
  ), i as (
    select coalesce(i.task_id, ($10::int[])[1]) as task_id, i.payload, i.due_ms, i.key, i.priority, coalesce(i.source, ${enqueued}) as source,
           i.limit_key, i.place, coalesce(i.drawn, nextval('${s}.run_id')) as id
    from unnest($1::int[], $2::jsonb[], $3::bigint[], $4::text[], $5::smallint[], $6::smallint[], $8::text[], $9::bigint[])
      with ordinality as i (task_id, payload, due_ms, key, priority, source, limit_key, drawn, place)
  ), ${
    here
      ? `still as materialized (
    select task_id, paused, version, followed from ${s}.plan
    where task_id = any ($10::int[]) and exists (select from ${s}.session where id = $12 and ended_ms is null)
    order by task_id for share skip locked
  ), `
      : ""
  }t as materialized (
    select t.id, case when t.routed then 0 else t.group_id end as group_id, t.version, t.gate, t.lanes,
           case when t.paused_ms is not null then 1 when t.gate > 0 then 0 else 2 end as state, (t.definition->>'priority')::smallint as priority
           ${
             here
               ? `, coalesce(t.paused_ms is null and t.gate = 0 and not t.routed and not t.lanes and not still.paused
           and still.version = t.version and t.group_id = any ($13::int[]) and ${unlimitedGroupSql(s, "t.group_id")}, false) as free, still.followed`
               : ""
           }
    from ${s}.task t ${here ? "left join still on still.task_id = t.id" : ""}
    where t.id = any ($10::int[]) and t.deleted_ms is null
  ), made as (
    insert into ${s}.run (id, task_id, group_id, version, state, due_ms, created_ms, priority, gate, after_end, source, key, payload, limit_key
                          ${here ? ", session_id, fence, claimed_ms, attempt" : ""})
    select i.id, t.id, t.group_id, t.version, ${here ? "case when mine then 3 else t.state end" : "t.state"}, i.due_ms, $7,
           coalesce(i.priority, t.priority), t.gate, false, i.source, i.key, i.payload,
           coalesce(i.limit_key, case when t.lanes then coalesce(i.key, '') end)
           ${here ? `, case when mine then $12::bigint end, case when mine then nextval('${s}.fence') end, case when mine then $7::bigint end, mine::int` : ""}
    from i join t on t.id = i.task_id ${here ? "cross join lateral (select t.free and i.due_ms <= $14 and i.place <= $15 as mine) m" : ""}
    where (select count(*) from t) = cardinality($10::int[]) and not (select yes from bounded)
    order by i.place
    ${keyed ? "on conflict (task_id, key) where key is not null do nothing" : ""}
    returning id, task_id, due_ms, state, group_id, fence, version, priority
  ), told as (
    ${notifyReadySql(s, "made where state = 2")}
  )
  ${
    keyed || here
      ? `select coalesce(made.id${keyed ? ", r.id" : ""}) as id, made.id is not null as created, made.state, made.fence, made.version, made.priority,
         ${here ? "t.followed" : "false"} as linked, (select yes from bounded) as bounded, (select count(*) from told)
  from i left join made on made.id = i.id ${keyed ? `left join ${s}.run r on r.task_id = i.task_id and r.key = i.key` : ""}
       ${here ? "left join t on t.id = i.task_id" : ""}
  order by i.place`
      : "select count(*) as made, array_agg(distinct task_id) filter (where state = 0) as held, array_agg(distinct task_id) filter (where state = 1) as paused, (select yes from bounded) as bounded, (select count(*) from told) from made"
  }`;

const originSql = (s: string) =>
  `insert into ${s}.run_origin (run_id, context, created_ms) select id, context, $3 from unnest($1::bigint[], $2::text[]) i (id, context)
   on conflict do nothing`;

interface Made {
  id: number | null;
  created: boolean;
  state: number | null;
  fence: number | null;
  version: number;
  priority: number;
  linked: boolean;
  bounded: boolean;
}

interface MadeTogether {
  made: number;
  held: number[] | null;
  paused: number[] | null;
  bounded: boolean;
}

/** Tasks of which runs were made that wait: for a place, or set aside while the task is paused. */
interface Waiting {
  held: number[];
  paused: number[];
}

const enqueued = sourceNumber("enqueue");
/** Of runs. */
const [held, paused, ready, claimed] = [0, 1, 2, 3];

export function enqueueStore(database: Database): Pick<RunStore, "enqueue" | "enqueueIn"> {
  const s = database.schema;
  // One text for each shape, made once: with a name it is compared at each call with what the connection has prepared.
  const inserts = {
    "run-insert": insertSql(s, { keyed: false, here: false }),
    "run-insert-keyed": insertSql(s, { keyed: true, here: false }),
    "run-insert-here": insertSql(s, { keyed: false, here: true }),
    "run-insert-keyed-here": insertSql(s, { keyed: true, here: true }),
  };
  const plainInsert = plainInsertSql(s);
  const oneInsert = oneInsertSql(s);
  const runIds = new RunIds(database);
  const enqueuedMore = growthOfRuns(database);
  return {
    async enqueue(writes, nowMs, local, ids = []) {
      const repeated = ids.length > 0;
      const undrawn = writes.filter(({ runId }) => runId === undefined).length;
      const drawn = undrawn === 0 || repeated ? [] : await runIds.take(undrawn);
      let next = 0;
      if (!repeated) for (const { runId } of writes) ids.push(runId ?? (drawn[next++] as number));
      // Before the runs, so that whoever has one finds it; of a number that is not used in the end it is a row too many.
      if (writes.some(({ context }) => context !== undefined))
        await database.persist(() => database.query("run-origin", originSql(s), originsOf(writes, ids, nowMs)));
      return database.persist(async (repeats) => {
        // The reply to an earlier try may have been lost after its commit; whatever of it is there stands.
        const known = repeats || repeated || undrawn < writes.length;
        const present = known ? await existing(queryOf(database), s, ids, nowMs) : new Set<number>();
        if (repeats) local?.lost();
        const answers: (Enqueued | null)[] = ids.map((runId) => (present.has(runId) ? { runId, created: true } : null));
        // A row comes back empty when its key was taken by a run that the statement's snapshot did not show yet.
        for (let open = places(answers); open.length > 0; open = places(answers)) {
          const numbers = open.map((place) => ids[place] as number);
          const asked = open.map((place) => writes[place] as EnqueueWrite);
          const inserting = known ? insertAgain(numbers, asked, nowMs) : insert(numbers, asked, nowMs, local);
          const rows = await inserting.catch((error) => unlessTaken(error, known));
          if (rows === "bounded") {
            const own = open.filter((place) => writes[place]?.runId === undefined);
            const fresh = await runIds.fresh(own.length);
            own.forEach((place, i) => {
              ids[place] = fresh[i] as number;
            });
            continue;
          }
          open.forEach((place, i) => {
            answers[place] = rows[i] ?? null;
          });
        }
        enqueuedMore(writes.length);
        return answers as Enqueued[];
      });
    },

    async enqueueIn(client, write, nowMs, places) {
      for (;;) {
        const { rows } = await client.query(
          inserts["run-insert-keyed"],
          insertValues([write], nowMs, write.runId === undefined ? null : [write.runId]),
        );
        const made = rows[0] as unknown as Made;
        if (made.state === 0 && places !== "later") await settleGates(client, s, [write.taskId], nowMs, false);
        if (made.id !== null && made.created && write.context !== undefined)
          await client.query(originSql(s), originsOf([write], [made.id], nowMs));
        if (made.id !== null) return { runId: Number(made.id), created: made.created };
        const { rows: tasks } = await client.query(`select from ${s}.task where id = $1 and deleted_ms is null`, [
          write.taskId,
        ]);
        if (tasks.length === 0) throw removed();
      }
    },
  };

  function originsOf(writes: EnqueueWrite[], ids: number[], nowMs: number): unknown[] {
    const traced = writes.flatMap(({ context }, at) => (context === undefined ? [] : [{ context, id: ids[at] }]));
    return [traced.map(({ id }) => id), traced.map(({ context }) => context), Math.round(nowMs)];
  }

  function insertValues(writes: EnqueueWrite[], nowMs: number, ids: number[] | null): unknown[] {
    const taskIds = [...new Set(writes.map(({ taskId }) => taskId))];
    // Of those that came with numbers: one operation may have them and they be wanted all the same.
    const own = ids?.filter((_, place) => writes[place]?.runId === undefined) ?? [];
    return [
      taskIds.length === 1 ? null : numbers(writes.map(({ taskId }) => taskId)),
      texts(writes.map(({ payload }) => payload)),
      numbers(writes.map(({ dueMs }) => Math.round(dueMs))),
      texts(writes.map(({ key }) => key)),
      numbers(writes.map(({ priority }) => priority)),
      numbers(writes.map(({ source }) => (source === "enqueue" ? null : sourceNumber(source)))),
      Math.round(nowMs),
      texts(writes.map(({ limitKey }) => limitKey ?? null)),
      ids && numbers(ids),
      numbers(taskIds),
      // They rise.
      own[0] ?? null,
    ];
  }

  /** @returns for each its run; null where its key was just taken by another; `bounded`: an operation has these numbers, none is made */
  async function insert(
    ids: number[],
    writes: EnqueueWrite[],
    nowMs: number,
    local: LocalClaims | undefined,
  ): Promise<(Enqueued | null)[] | "bounded"> {
    const here = local !== undefined && local.room > 0;
    const plain = here ? null : plainValues(writes, ids, nowMs);
    if (plain) {
      const [row] = await database.query<PlainMade>("run-insert-plain", plainInsert, plain);
      const of = (state: number) => (row?.state === state ? [writes[0]?.taskId as number] : []);
      return madeAll(row, { held: of(held), paused: of(paused) }, ids, writes, nowMs, local);
    }
    const one = here ? oneValues(writes, ids, nowMs, local) : null;
    let rows = one ? await database.query<Made>("run-insert-one-here", oneInsert, one) : [];
    if (rows.length === 0) {
      const keyed = writes.some(({ key }) => key !== null);
      const values = insertValues(writes, nowMs, ids);
      if (here) values.push(local.sessionId, local.groupIds, Math.round(local.untilMs), local.room);
      // A large batch is planned for itself: the plan kept for small ones compares every row with every other.
      const insert = `run-insert${keyed ? "-keyed" : ""}${here ? "-here" : ""}` as const;
      const [name, text] = [ids.length <= preparedRowsMax ? insert : "", inserts[insert]];
      if (!keyed && !here) {
        const [row] = await database.query<MadeTogether>(name, text, values);
        return madeAll(row, { held: row?.held ?? [], paused: row?.paused ?? [] }, ids, writes, nowMs, local);
      }
      rows = await database.query<Made>(name, text, values);
    }
    return madeEach(rows, ids, writes, nowMs, local);
  }

  /**
   * The same where some of it may be there already. An earlier try that was committed after it was looked for may have run,
   * and ended, by the time at which this is carried out: so it is looked for once more, with the numbers in hand.
   */
  async function insertAgain(
    ids: number[],
    writes: EnqueueWrite[],
    nowMs: number,
  ): Promise<(Enqueued | null)[] | "bounded"> {
    const rows = await database.transaction(async (client) => {
      const query = queryIn(client);
      const made = await query<Made>("", inserts["run-insert-keyed"], insertValues(writes, nowMs, ids));
      const ended = await existing(query, s, ids, nowMs, false);
      if (ended.size > 0) throw endedMeanwhile();
      return made;
    });
    return madeEach(rows, ids, writes, nowMs, undefined);
  }

  /** The answer of a statement that has a row for each. */
  async function madeEach(
    rows: Made[],
    ids: number[],
    writes: EnqueueWrite[],
    nowMs: number,
    local: LocalClaims | undefined,
  ): Promise<(Enqueued | null)[] | "bounded"> {
    if (rows[0]?.bounded) return "bounded";
    const tasksOf = (wanted: number) => [
      ...new Set(rows.flatMap(({ state }, i) => (state === wanted ? [(writes[i] as EnqueueWrite).taskId] : []))),
    ];
    await admit({ held: tasksOf(held), paused: tasksOf(paused) }, nowMs);
    if (rows.some(({ id }) => id === null)) await checkTasks(writes);
    local?.made(
      rows.flatMap((row, i) => (row.state === claimed ? [asClaimed(row, writes[i] as EnqueueWrite)] : [])),
      Math.min(...rows.map(({ state }, i) => (state === ready ? (writes[i] as EnqueueWrite).dueMs : Infinity))),
    );
    // One with its own number was made by a try of this enqueue that ended meanwhile.
    return rows.map(({ id, created }, i) => (id === null ? null : { runId: id, created: created || id === ids[i] }));
  }

  /** The answer of a statement that makes all or none. */
  async function madeAll(
    row: { made: number; bounded: boolean } | undefined,
    waiting: Waiting,
    ids: number[],
    writes: EnqueueWrite[],
    nowMs: number,
    local: LocalClaims | undefined,
  ): Promise<Enqueued[] | "bounded"> {
    if (row?.bounded) return "bounded";
    await admit(waiting, nowMs);
    if (row?.made !== ids.length) throw removed();
    local?.made([], Math.min(...writes.map(({ dueMs }) => dueMs)));
    return ids.map((runId) => ({ runId, created: true }));
  }

  /** A crash between the two leaves a held run with a free place, which the dispatcher's sweep finds. */
  async function admit({ held, paused }: Waiting, nowMs: number): Promise<void> {
    if (held.length > 0) await database.transaction((client) => settleGates(client, s, held, nowMs, false));
    if (paused.length > 0) await takeUpLeft(database, { setAside: paused }, nowMs);
  }

  async function checkTasks(writes: EnqueueWrite[]): Promise<void> {
    const taskIds = [...new Set(writes.map(({ taskId }) => taskId))];
    const known = await database.query(
      "run-tasks",
      `select id from ${s}.task where id = any($1) and deleted_ms is null`,
      [taskIds],
    );
    if (known.length < taskIds.length) throw removed();
  }
}

/** Made by a try of this moment or later; they may have run, and ended, since. @param live of those that have not, too */
export async function existing(
  query: Query,
  s: string,
  ids: number[],
  nowMs: number,
  live = true,
): Promise<Set<number>> {
  const rows = await query<{ id: number }>(
    live ? "run-existing" : "run-ended",
    `${live ? `select id from ${s}.run where id = any($1) union all` : ""} select id from ${s}.run_history where id = any($1)
     union all select id from ${s}.run_trace t, unnest(t.run_ids) as id where t.ended_ms >= $2 and t.run_ids && $1 and id = any($1)`,
    [ids, Math.round(nowMs) - clocksApartMs],
  );
  return new Set(rows.map(({ id }) => id));
}

/**
 * The numbers are taken. By an earlier try that was given up on, and was carried out while this one waited for it: what it made
 * is found by the next. Where these were just drawn somebody else has them, as after a server was restored to an earlier moment:
 * others are.
 * @param known some were used before, by a try of this enqueue or by another server for the same call
 */
export function unlessTaken(error: unknown, known: boolean): "bounded" {
  const { code, constraint } = error as { code?: unknown; constraint?: unknown };
  if (code !== "23505" || constraint !== "run_pkey") throw error;
  if (!known) return "bounded";
  throw endedMeanwhile(error);
}

export const endedMeanwhile = (cause?: unknown) =>
  new CarillonError("STORE_CONFLICT", "an earlier try of this enqueue came to its end meanwhile", { cause });

function asClaimed(row: Made, write: EnqueueWrite): ClaimedRun {
  return {
    runId: row.id as number,
    taskId: write.taskId,
    version: row.version,
    fence: row.fence as number,
    attempt: 1,
    dueMs: Math.round(write.dueMs),
    slotMs: null,
    priority: row.priority,
    key: write.key,
    payload: write.payload === null ? null : (JSON.parse(write.payload) as Json),
    shard: null,
    state: null,
    linked: row.linked,
  };
}

/** Of those without an answer. */
function places(answers: (Enqueued | null)[]): number[] {
  const open: number[] = [];
  for (let place = 0; place < answers.length; place++) if (answers[place] === null) open.push(place);
  return open;
}

const removed = () => new CarillonError("TASK_UNKNOWN", "the task was removed before its run was enqueued");
