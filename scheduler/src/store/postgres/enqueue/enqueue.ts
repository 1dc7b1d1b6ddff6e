import type { SqlClient } from "../../../base/change.ts";
import { CarillonError } from "../../../base/errors.ts";
import type { Json } from "../../../base/json.ts";
import type { ClaimedRun, LocalClaims } from "../../../run/claim-store.ts";
import type { Enqueued, EnqueueWrite } from "../../../run/run-record.ts";
import type { RunStore } from "../../../run/run-store.ts";
import { settleGates } from "../claims/gates.ts";
import { takeUpLeft } from "../claims/set-aside.ts";
import type { Announcer, MadeReady } from "../cluster/announcer.ts";
import type { Database } from "../database.ts";
import { growthOfRuns } from "../growth.ts";
import { type Query, queryIn, queryOf } from "../query.ts";
import { runState } from "../states.ts";
import { park } from "./again.ts";
import { anyValues, type Made, type MadeTogether } from "./any-enqueue.ts";
import { type Durability, durabilityOf, isFirstRelaxed, permitRelaxed } from "./durability.ts";
import { type Inserts, insertsOf } from "./inserts.ts";
import { holdKey, standFor } from "./known-keys.ts";
import { oneValues } from "./one-enqueue.ts";
import { type PlainMade, plainValues } from "./plain-enqueue.ts";
import { endWaiting, hasBegun, standSince } from "./replacing.ts";
import { RunIds } from "./run-ids.ts";

const preparedRowsMax = 50;
/**
 * The greatest difference, in ms, that is assumed between two processes' estimates of the store's clock. The process that ended a run used
 * its own estimate.
 */
const clocksApartMs = 60_000;

const originSql = (s: string) =>
  `insert into ${s}.run_origin (run_id, context, created_ms) select id, context, $3 from unnest($1::bigint[], $2::text[]) i (id, context)
   on conflict do nothing`;

/** Tasks with new runs that cannot be claimed yet: `held` because of a concurrency limit, `paused` because the task is paused. */
interface Waiting {
  held: number[];
  paused: number[];
}

/** The state that all enqueues of one store share. */
interface Enqueuing {
  database: Database;
  announcer: Announcer;
  s: string;
  inserts: Record<Durability, Inserts>;
  runIds: RunIds;
  enqueuedMore: ReturnType<typeof growthOfRuns>;
}

/** The enqueues that one statement makes, with the numbers of their runs. `local` is a worker of this process that may claim due runs. */
interface Batch {
  ids: number[];
  writes: EnqueueWrite[];
  nowMs: number;
  local: LocalClaims | undefined;
}

export function enqueueStore(
  database: Database,
  announcer: Announcer,
): Pick<RunStore, "enqueue" | "enqueueIn" | "enqueueReplacing"> {
  const s = database.schema;
  const enqueuing: Enqueuing = {
    database,
    announcer,
    s,
    inserts: insertsOf(s),
    runIds: new RunIds(database),
    enqueuedMore: growthOfRuns(database),
  };
  return {
    enqueue: (writes, nowMs, local, ids = [], signal) => enqueue(enqueuing, { writes, nowMs, local, ids }, signal),
    enqueueReplacing: (write, nowMs, signal) => enqueueReplacing(enqueuing, write, nowMs, signal),
    enqueueIn: (client, write, nowMs, places) =>
      enqueueIn(enqueuing, client, write, nowMs, places).catch((error) => database.refused(error)),
  };
}

/** Enqueues runs. @param ids the numbers of an earlier try; if empty, the numbers that are drawn are added to it */
async function enqueue(
  enqueuing: Enqueuing,
  { writes, nowMs, local, ids }: Batch,
  signal: AbortSignal | undefined,
): Promise<Enqueued[]> {
  const { database, s, runIds, enqueuedMore } = enqueuing;
  if (isFirstRelaxed(database, writes)) await permitRelaxed(database, signal);
  const repeated = ids.length > 0;
  const undrawn = writes.filter(({ runId }) => runId === undefined).length;
  const drawn = undrawn === 0 || repeated ? [] : await runIds.take(undrawn, signal);
  let next = 0;
  if (!repeated) for (const { runId } of writes) ids.push(runId ?? (drawn[next++] as number));
  // Origins are written before the runs, so that a reader of a run also finds its origin. If a number is not used in the end, its origin
  // has no run, which does no harm.
  if (writes.some(({ context }) => context !== undefined))
    await database.persist(() => database.query("run-origin", originSql(s), originsOf(writes, ids, nowMs)), signal);
  return database.persist(async (repeats) => {
    // An earlier try may have been committed although its reply was lost. Its runs are then returned.
    const known = repeats || repeated || undrawn < writes.length;
    const present = known ? await existing(queryOf(database), s, ids, nowMs) : new Set<number>();
    if (repeats) local?.lost();
    const answers: (Enqueued | null)[] = ids.map((runId) => (present.has(runId) ? { runId, created: true } : null));
    // A row has no id if a run that the statement's snapshot did not show has the key. The loop tries such writes again.
    for (let open = places(answers); open.length > 0; open = places(answers)) {
      const batch = {
        ids: open.map((place) => ids[place] as number),
        writes: open.map((place) => writes[place] as EnqueueWrite),
        nowMs,
        local,
      };
      const inserting = known ? insertAgain(enqueuing, batch) : insert(enqueuing, batch);
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
    remember(database, writes, answers as Enqueued[], nowMs);
    return answers as Enqueued[];
  }, signal);
}

/** Caches the created runs. An enqueue that was answered with an existing run of the same key is not cached. */
function remember(database: Database, writes: EnqueueWrite[], answers: Enqueued[], nowMs: number): void {
  if (!database.memory.keeping) return;
  const made = answers.every(({ created }) => created)
    ? null
    : answers.flatMap(({ created }, i) => (created ? [i] : []));
  const [its, of] =
    made === null
      ? [writes, answers]
      : [made.map((i) => writes[i] as EnqueueWrite), made.map((i) => answers[i] as Enqueued)];
  database.memory.enqueued(
    its,
    of.map(({ runId }) => runId),
    nowMs,
    database.clock.monotonic(),
  );
}

async function enqueueIn(
  { s, inserts, announcer }: Enqueuing,
  client: SqlClient,
  given: EnqueueWrite,
  nowMs: number,
  places?: "later",
): Promise<Enqueued> {
  let write = given;
  if (write.uniqueForMs !== undefined) {
    const { runId, held } = await holdKey(client, s, write, nowMs);
    if (!held) return { runId, created: false };
    write = { ...write, runId };
  }
  for (;;) {
    const replaced = write.replaces ? await endWaiting(client, s, write, nowMs) : undefined;
    const sinceMs = write.maxWaitMs === undefined ? undefined : (replaced?.sinceMs ?? nowMs);
    if (sinceMs !== undefined)
      write = { ...write, dueMs: Math.min(given.dueMs, sinceMs + (write.maxWaitMs as number)) };
    const { rows } = await client.query(
      // The commit of the caller's transaction decides when the run is on disk.
      inserts.full.any["run-insert-keyed"],
      anyValues([write], nowMs, write.runId === undefined ? null : [write.runId]),
    );
    const made = rows[0] as unknown as Made;
    if (made.xid) announcer.inTransaction(made.xid, readyOf([made], [write]), nowMs);
    if (made.state === runState.held && places !== "later") await settleGates(client, s, [write.taskId], nowMs, false);
    // A run already has the key. If that run has not started, it is new, or it has just ended, so the loop tries again.
    if (write.replaces && made.id !== null && !made.created) {
      if (!(await hasBegun(client, s, made.id))) continue;
      if (write.again) {
        if (!(await park(client, s, made.id, { ...write, dueMs: given.dueMs }, nowMs))) continue;
        return { runId: Number(made.id), created: false, again: true };
      }
    }
    if (made.id !== null && made.created && sinceMs !== undefined) await standSince(client, s, made.id, sinceMs);
    if (made.id !== null && write.uniqueForMs !== undefined && !made.created) await standFor(client, s, write, made.id);
    if (made.id !== null && made.created && write.context !== undefined)
      await client.query(originSql(s), originsOf([write], [made.id], nowMs));
    if (made.id !== null)
      return { runId: Number(made.id), created: made.created, ...(replaced ? { replaced: replaced.runId } : {}) };
    const { rows: tasks } = await client.query(`select from ${s}.task where id = $1 and deleted_ms is null`, [
      write.taskId,
    ]);
    if (tasks.length === 0) throw removed();
  }
}

/** Enqueues one run in its own transaction. Repeated after a lost reply, it still makes only one run. */
async function enqueueReplacing(
  enqueuing: Enqueuing,
  write: EnqueueWrite,
  nowMs: number,
  signal: AbortSignal | undefined,
): Promise<Enqueued> {
  const { database, s, runIds, enqueuedMore } = enqueuing;
  let runId = write.runId ?? ((await runIds.take(1, signal))[0] as number);
  const make = (known: boolean) =>
    database.transaction(async (client) => {
      const made = await enqueueIn(enqueuing, client, { ...write, runId }, nowMs);
      // An earlier try may have been committed after the check above, and its run may already have ended.
      if (known && (await existing(queryIn(client), s, [runId], nowMs, false)).size > 0) throw endedMeanwhile();
      return made.runId === runId ? { ...made, created: true } : made;
    });
  return database.persist(async (repeats) => {
    const known = repeats || write.runId !== undefined;
    // An earlier try may have been committed although its reply was lost. Its run is then returned.
    if (known && (await existing(queryOf(database), s, [runId], nowMs)).has(runId)) return { runId, created: true };
    for (;;) {
      const made = await make(known).catch((error) => unlessTaken(error, known));
      if (made !== "bounded") {
        enqueuedMore(1);
        // If the enqueue was stored in `run.again` of the present run, it is cached under the number of the future run.
        remember(database, [write], [made.again ? { runId, created: true } : made], nowMs);
        return made;
      }
      runId = (await runIds.fresh(1))[0] as number;
    }
  }, signal);
}

const insertsFor = ({ database, inserts }: Enqueuing, writes: EnqueueWrite[]): Inserts =>
  inserts[durabilityOf(writes, database.memory.relaxed)];

function originsOf(writes: EnqueueWrite[], ids: number[], nowMs: number): unknown[] {
  const traced = writes.flatMap(({ context }, at) => (context === undefined ? [] : [{ context, id: ids[at] }]));
  return [traced.map(({ id }) => id), traced.map(({ context }) => context), Math.round(nowMs)];
}

/**
 * Inserts the runs of a batch.
 * @returns the run of each write, or null if another write took its key at that moment; "bounded" if an operation covers these numbers, and
 * then no run is inserted
 */
async function insert(enqueuing: Enqueuing, batch: Batch): Promise<(Enqueued | null)[] | "bounded"> {
  const { database, announcer } = enqueuing;
  const { ids, writes, nowMs, local } = batch;
  const { any, plain: plainInsert, one: oneInsert, end } = insertsFor(enqueuing, writes);
  const here = local !== undefined && local.room > 0;
  const earliestMs = earliestOf(writes);
  // With `here`, a worker of this process claims most of these runs, so the statement sends no signal.
  const tells = !here && announcer.carriesOwn(earliestMs, nowMs);
  const plain = here ? null : plainValues(writes, ids, nowMs, tells ? Math.round(earliestMs) : null);
  if (plain) {
    const [row] = await database.query<PlainMade>(`run-insert-plain${end}`, plainInsert, plain);
    const of = (state: number) => (row?.state === state ? [writes[0]?.taskId as number] : []);
    if (row?.state === runState.ready && row.made > 0 && !tells)
      announcer.committed(
        row.direct ? { ready: Infinity, direct: earliestMs } : { ready: earliestMs, direct: Infinity },
        nowMs,
      );
    return madeAll(database, row, { held: of(runState.held), paused: of(runState.paused) }, batch);
  }
  const one = here ? oneValues(writes, ids, nowMs, local) : null;
  let carried = false;
  let rows = one ? await database.query<Made>(`run-insert-one-here${end}`, oneInsert, one) : [];
  if (rows.length === 0) {
    const keyed = writes.some(({ key }) => key !== null);
    carried = tells && ids.length === 1;
    const values = anyValues(
      writes,
      nowMs,
      ids,
      here
        ? [local.sessionId, local.groupIds, Math.round(local.untilMs), local.room]
        : [carried ? Math.round(earliestMs) : null],
    );
    // Large batches use an unnamed statement, because the plan cached for small batches compares every row with every other row.
    const shape = `run-insert${keyed ? "-keyed" : ""}${here ? "-here" : ""}` as const;
    const [name, text] = [ids.length <= preparedRowsMax ? `${shape}${end}` : "", any[shape]];
    if (!keyed && !here) {
      const [row] = await database.query<MadeTogether>(name, text, values);
      if (!carried) announcer.committed({ ready: row?.ready ?? Infinity, direct: row?.direct ?? Infinity }, nowMs);
      return madeAll(database, row, { held: row?.held ?? [], paused: row?.paused ?? [] }, batch);
    }
    rows = await database.query<Made>(name, text, values);
  }
  return madeEach(enqueuing, rows, batch, carried);
}

/**
 * Inserts runs of which some may exist already. An earlier try may be committed after the check for its runs, and such a run may even have
 * ended before this statement. So the check is repeated after the insertion, when the numbers can no longer be used by the earlier try.
 */
async function insertAgain(enqueuing: Enqueuing, batch: Batch): Promise<(Enqueued | null)[] | "bounded"> {
  const { database, s } = enqueuing;
  const { ids, writes, nowMs } = batch;
  const { any } = insertsFor(enqueuing, writes);
  const rows = await database.transaction(async (client) => {
    const query = queryIn(client);
    const made = await query<Made>("", any["run-insert-keyed"], anyValues(writes, nowMs, ids));
    const ended = await existing(query, s, ids, nowMs, false);
    if (ended.size > 0) throw endedMeanwhile();
    return made;
  });
  return madeEach(enqueuing, rows, { ...batch, local: undefined });
}

/** Handles the result of a statement that returns one row per write. @param carried true if the statement has sent the signal itself */
async function madeEach(
  { database, announcer }: Enqueuing,
  rows: Made[],
  { ids, writes, nowMs, local }: Batch,
  carried = false,
): Promise<(Enqueued | null)[] | "bounded"> {
  if (rows[0]?.bounded) return "bounded";
  const ready = readyOf(rows, writes);
  if (!carried) announcer.committed(ready, nowMs);
  const tasksOf = (wanted: number) => [
    ...new Set(rows.flatMap(({ state }, i) => (state === wanted ? [(writes[i] as EnqueueWrite).taskId] : []))),
  ];
  await admit(database, { held: tasksOf(runState.held), paused: tasksOf(runState.paused) }, nowMs);
  if (rows.some(({ id }) => id === null)) await checkTasks(database, writes);
  const claimed = rows.flatMap((row, i) =>
    row.state === runState.claimed ? [asClaimed(row, writes[i] as EnqueueWrite)] : [],
  );
  if (local) database.memory.claimed(local.sessionId, claimed, nowMs, database.clock.monotonic());
  local?.made(claimed, Math.min(ready.ready, ready.direct));
  // If the run has the number of this write, an earlier try of this enqueue, committed meanwhile, inserted it.
  return rows.map(({ id, created }, i) => (id === null ? null : { runId: id, created: created || id === ids[i] }));
}

/** Handles the result of a statement that inserts all runs or none. */
async function madeAll(
  database: Database,
  row: { made: number; bounded: boolean } | undefined,
  waiting: Waiting,
  { ids, writes, nowMs, local }: Batch,
): Promise<Enqueued[] | "bounded"> {
  if (row?.bounded) return "bounded";
  await admit(database, waiting, nowMs);
  if (row?.made !== ids.length) throw removed();
  local?.made([], earliestOf(writes));
  return ids.map((runId) => ({ runId, created: true }));
}

function readyOf(rows: readonly Made[], writes: readonly EnqueueWrite[]): MadeReady {
  const earliest = (direct: boolean) =>
    earliestOf(writes.filter((_, i) => rows[i]?.state === runState.ready && rows[i].direct === direct));
  return { ready: earliest(false), direct: earliest(true) };
}

function earliestOf(writes: readonly EnqueueWrite[]): number {
  let earliest = Infinity;
  for (const { dueMs } of writes) earliest = Math.min(earliest, dueMs);
  return earliest;
}

/**
 * Gives slots to new `held` runs, and corrects `paused` ones. If the process crashes before it calls this, a run stays held although a slot
 * is free, until the dispatcher's periodic check finds the run.
 */
async function admit(database: Database, { held, paused }: Waiting, nowMs: number): Promise<void> {
  if (held.length > 0) await database.transaction((client) => settleGates(client, database.schema, held, nowMs, false));
  if (paused.length > 0) await takeUpLeft(database, { setAside: paused }, nowMs);
}

async function checkTasks(database: Database, writes: EnqueueWrite[]): Promise<void> {
  const taskIds = [...new Set(writes.map(({ taskId }) => taskId))];
  const known = await database.query(
    "run-tasks",
    `select id from ${database.schema}.task where id = any($1) and deleted_ms is null`,
    [taskIds],
  );
  if (known.length < taskIds.length) throw removed();
}

/**
 * Returns those of the runs that an earlier try inserted, even if they have ended.
 * @param live false to leave out runs that have not ended
 */
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
 * Handles an insertion that failed because its run numbers exist. With `known`, an earlier try, which this process had given up, was
 * committed while this one waited; the next try finds its runs. Without `known`, other runs have the newly drawn numbers because a server
 * was restored to an earlier moment; then other numbers are drawn.
 * @param known true if some numbers were used before, by a try of this enqueue or by another server for the same call
 * @returns "bounded", which makes the caller draw other numbers
 * @throws STORE_CONFLICT with `known`; any other error is thrown unchanged
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
    overrides: write.overrides ?? null,
    expiresMs: write.expiresMs ?? null,
    labels: row.labels ?? null,
    state: null,
    linked: row.linked,
  };
}

/** Returns the indexes of the writes that have no answer yet. */
function places(answers: (Enqueued | null)[]): number[] {
  const open: number[] = [];
  for (let place = 0; place < answers.length; place++) if (answers[place] === null) open.push(place);
  return open;
}

const removed = () =>
  new CarillonError("TASK_UNKNOWN", "the task was removed before its run was enqueued", {
    hint: "See `carillon tasks list`.",
  });
