import type { SqlClient } from "../../../base/change.ts";
import { notifyReadySql, notifySql } from "../cluster/signals.ts";
import { endUnclaimedSql } from "../runs/unclaimed-ends.ts";
import { runOutcome, runRecall, runState, slotOutcome } from "../states.ts";
import { endGivenUpSql, misfireSql } from "../tasks/misfires.ts";
import { admitPaced, heldDueSql } from "./admission.ts";

/**
 * Values of `task.gate` and `run.gate`: the overlap policy for a run that finds no free slot. `paced`: the task has a limit per key or per
 * worker, or a rate. `bounded`: a queue in which at most n runs wait; nodes of older versions treat it as a queue without a limit.
 */
export const gates = { allow: 0, queue: 1, skip: 2, replace: 3, paced: 4, bounded: 5 } as const;

const replaced = "overlap: replaced by a newer run";

/**
 * Gives out the slots of tasks with a concurrency limit. A slot is given out only while the task has fewer `ready` and `claimed` runs than
 * its limit; its other waiting runs are `held`. Claims need no lock for this, because a claim only moves a run between those two states.
 *
 * A first statement locks the tasks' gate rows in the order of their numbers, so that the snapshots of the statements after it include all
 * writes of earlier holders of the locks. Run rows are only locked with SKIP LOCKED, so a transaction that holds a gate does not wait for
 * other transactions' runs. Subqueries that select some of the rows are materialized: joined to an UPDATE, a LIMIT may be evaluated again
 * for each row, and would then skip rows that were updated already.
 *
 * A caller's transaction with an isolation level stricter than read committed keeps its first snapshot, in which slots look free that other
 * transactions have taken since. Such a transaction gives out no slots; at its commit it signals the dispatcher, which gives them out.
 * @param client in a transaction
 * @param freed true if a slot has just become free: runs that came due while the slot was taken are skipped before slots are given out
 */
export async function settleGates(
  client: SqlClient,
  schema: string,
  taskIds: number[],
  nowMs: number,
  freed: boolean,
): Promise<void> {
  const s = schema;
  const now = Math.round(nowMs);
  const ids = [...new Set(taskIds)].sort((a, b) => a - b);
  await lockPlans(client, s, ids);
  const { rows } = await client.query(
    `select g.task_id, t.gate, m.waiting, current_setting('transaction_isolation') = 'read committed' as fresh
     from ${s}.gate g join ${s}.task t on t.id = g.task_id cross join lateral ${misfireSql}
     where g.task_id = any($1) order by g.task_id for update of g`,
    [ids],
  );
  if (rows.some(({ fresh }) => !fresh)) {
    await client.query(`select ${notifySql(s, `'held ${now}'`)}`);
    return;
  }
  const policy = (gate: number) => rows.filter((row) => row.gate === gate).map((row) => row.task_id as number);
  const skipping = policy(gates.skip);
  const replacing = policy(gates.replace);
  const bounded = policy(gates.bounded);
  const paced = policy(gates.paced);
  const givingUp = rows.filter(({ waiting }) => waiting).map((row) => row.task_id as number);
  if (givingUp.length > 0) await skipLate(client, s, givingUp, now);
  if (paced.length > 0) await admitPaced(client, s, paced, now);
  const all = rows.filter((row) => row.gate !== gates.paced).map((row) => row.task_id as number);
  if (all.length === 0) return;
  if (freed && skipping.length > 0) await skipOverdue(client, s, skipping, now, "overlap: skip");
  if (freed && bounded.length > 0) await skipBeyond(client, s, bounded, now);
  if (replacing.length > 0) {
    await keepNewest(client, s, replacing, now);
    await stopWaiting(client, s, replacing, now);
  }
  if (await demote(client, s, all, now)) await promote(client, s, all, now);
  if (!freed && skipping.length > 0) await skipOverdue(client, s, skipping, now, "overlap: skip");
  if (!freed && bounded.length > 0) await skipBeyond(client, s, bounded, now);
  if (replacing.length > 0) await stopRunning(client, s, replacing, now);
}

/**
 * Locks the plans of tasks that plan their next slot from a run's end. A transaction that ends runs calls this before it locks runs and
 * gates, because an edit holds a task's plan while it waits for the task's runs. Plans of other tasks are not touched by the end of a run.
 * @param all also lock the plans of the other tasks, so that no task is paused or resumed until the transaction ends
 */
export async function lockPlans(client: SqlClient, s: string, taskIds: number[], all = false): Promise<void> {
  if (taskIds.length === 0) return;
  const which = all ? "" : "and after_end_ms is not null";
  await client.query(`select from ${s}.plan where task_id = any($1) ${which} order by task_id for update`, [taskIds]);
}

interface Ending {
  /** The outcome that the runs get. */
  how: "skipped" | "cancelled";
  /** An SQL condition on runs `r`; `values` are its parameters. */
  where: string;
  values: unknown[];
  now: number;
  reason: string;
}

async function end(client: SqlClient, s: string, { how, where, values, now, reason }: Ending): Promise<void> {
  const text = endUnclaimedSql(s, {
    which: `where r.id in (select r.id from ${s}.run r where ${where} for update skip locked)`,
    outcome: runOutcome[how],
    ...(how === "skipped" && { slot: slotOutcome.skipped }),
    now: `$${values.length + 1}`,
    why: `$${values.length + 2}`,
    answer: "count(*)",
  });
  await client.query(text, [...values, now, reason]);
}

/**
 * Ends due held runs as skipped. A run that has had an attempt, and is held again after a pause or an operator's decision, is not skipped
 * but waits for a slot.
 */
async function skipOverdue(
  client: SqlClient,
  s: string,
  taskIds: number[],
  now: number,
  reason: string,
): Promise<void> {
  const where = `r.state = ${runState.held} and r.task_id = any($1) and r.due_ms <= $2 and r.gate > 0 and r.attempt = 0`;
  await end(client, s, { how: "skipped", where, values: [taskIds, now], now, reason });
}

/** For the overlap policy `{ queue: n }`: the first n waiting runs that are due stay, and the others end as skipped. */
async function skipBeyond(client: SqlClient, s: string, taskIds: number[], now: number): Promise<void> {
  const where = `r.attempt = 0 and r.state = ${runState.held} and r.id in (
       select w.id from (
         select id, task_id, row_number() over (partition by task_id order by due_ms, id) as place
         from ${s}.run where state = ${runState.held} and task_id = any($1) and due_ms <= $2 and gate > 0) w
       join ${s}.task t on t.id = w.task_id where w.place > (t.definition->'overlap'->>'waiting')::int)`;
  await end(client, s, { how: "skipped", where, values: [taskIds, now], now, reason: "overlap: as many wait as may" });
}

/** Ends held runs that have waited for a slot longer than their task's misfire policy allows. */
async function skipLate(client: SqlClient, s: string, taskIds: number[], now: number): Promise<void> {
  const text = endGivenUpSql(s, {
    runs: `${s}.run r`,
    where: `r.state = ${runState.held} and r.task_id = any($1) and r.gate > 0 and r.attempt = 0 and r.due_ms <= $2::bigint and m.waiting`,
    now: "$2::bigint",
    skipLocked: true,
    answer: "count(*)",
  });
  await client.query(text, [taskIds, now]);
}

/**
 * For the overlap policy `replace`: of the held runs that are due, only the newest stays. An older one ends as skipped, or as cancelled if
 * it has had an attempt.
 */
async function keepNewest(client: SqlClient, s: string, taskIds: number[], now: number): Promise<void> {
  const where = `r.state = ${runState.held} and r.task_id = any($1) and r.due_ms <= $2 and r.gate > 0 and exists (
       select from ${s}.run n where n.task_id = r.task_id and n.state = ${runState.held} and n.gate > 0 and n.due_ms <= $2
       and (n.due_ms, n.id) > (r.due_ms, r.id))`;
  const ending = { values: [taskIds, now], now, reason: replaced };
  await end(client, s, { ...ending, how: "skipped", where: `${where} and r.attempt = 0` });
  await end(client, s, { ...ending, how: "cancelled", where: `${where} and r.attempt > 0` });
}

/**
 * For the overlap policy `replace`: a run that waits for its next attempt holds a slot, but no worker could be asked to stop it. If a held
 * run of its task is due, this function cancels the run that holds the slot, which frees the slot.
 */
async function stopWaiting(client: SqlClient, s: string, taskIds: number[], now: number): Promise<void> {
  const where = `r.state = ${runState.ready} and r.attempt > 0 and r.task_id = any($1) and r.gate > 0 and exists (
       select from ${s}.run n where n.task_id = r.task_id and n.state = ${runState.held} and n.gate > 0 and n.due_ms <= $2)`;
  await end(client, s, { how: "cancelled", where, values: [taskIds, now], now, reason: replaced });
}

/**
 * Takes slots from future runs and leaves them to runs that are due sooner; a run between two attempts keeps its slot. This is done even if
 * neither run is due yet: in a queue no signal reports that a held run has come due, and by then the slot would be taken.
 * @returns false if no run is held, so that there is no run to give a slot to
 */
async function demote(client: SqlClient, s: string, taskIds: number[], now: number): Promise<boolean> {
  const { rows } = await client.query(
    `with kept as materialized (
       select id, task_id, due_ms, row_number() over (partition by task_id order by due_ms desc, id desc) as place
       from ${s}.run where task_id = any($1) and gate > 0 and state = ${runState.ready} and due_ms > $2 and attempt = 0),
     sooner as materialized (
       select t.task_id, h.due_ms, row_number() over (partition by t.task_id order by h.due_ms) as place
       from (select task_id, count(*) as places from kept group by task_id) t cross join lateral (
         select due_ms from ${s}.run where task_id = t.task_id and gate > 0 and state = ${runState.held} order by due_ms limit t.places) h),
     taken as (
       select id from ${s}.run where id in (
         select kept.id from kept join sooner using (task_id, place) where sooner.due_ms < kept.due_ms)
       and state = ${runState.ready} for update skip locked),
     moved as (update ${s}.run r set state = ${runState.held} from taken where r.id = taken.id)
     select exists (select from ${s}.run where task_id = any($1) and state = ${runState.held}) as held`,
    [taskIds, now],
  );
  return rows[0]?.held === true;
}

/** Gives free slots first to due runs, by priority, and then to the runs that will be due next. */
async function promote(client: SqlClient, s: string, taskIds: number[], now: number): Promise<void> {
  await client.query(
    `with room as (
       select t.id as task_id,
              t.gate_limit - (select count(*) from ${s}.run r where r.task_id = t.id and r.gate > 0 and r.state in (${runState.ready}, ${runState.claimed})) as places
       from ${s}.task t where t.id = any($1) and t.paused_ms is null
         and exists (select from ${s}.run h where h.task_id = t.id and h.state = ${runState.held})),
     picked as materialized (
       select pick.id from room cross join lateral (
         select id from (
           ${heldDueSql(s, "room.task_id", "greatest(room.places, 0)")}
           union all
           select later.* from (
             select id, -1 as priority, due_ms from ${s}.run
             where task_id = room.task_id and gate > 0 and state = ${runState.held} and due_ms > $2
             order by due_ms limit greatest(room.places, 0) for update skip locked) later) h
         order by priority desc, due_ms, id limit greatest(room.places, 0)) pick),
     moved as (
       update ${s}.run r set state = ${runState.ready}, ready_ms = $2 from picked where r.id = picked.id and r.state = ${runState.held} returning r.due_ms, r.group_id)
     ${notifyReadySql(s, "moved")}`,
    [taskIds, now],
  );
}

/**
 * For the overlap policy `replace`: asks the workers to stop as many running runs as there are due held ones. A slot becomes free when its
 * run has ended.
 */
async function stopRunning(client: SqlClient, s: string, taskIds: number[], now: number): Promise<void> {
  await client.query(
    `with due as (
       select task_id, count(*) as wanted from ${s}.run
       where task_id = any($1) and gate > 0 and state = ${runState.held} and due_ms <= $2 group by task_id),
     picked as materialized (
       select o.id from due cross join lateral (
         select id from ${s}.run c where c.task_id = due.task_id and c.gate > 0 and c.state = ${runState.claimed} and c.recall = ${runRecall.none}
         order by due_ms, id limit due.wanted for update skip locked) o),
     asked as (
       update ${s}.run r set recall = ${runRecall.cancel}, recall_why = '${replaced}' from picked
       where r.id = picked.id returning r.id)
     select ${notifySql(s, "'recall'")} from asked limit 1`,
    [taskIds, now],
  );
}
