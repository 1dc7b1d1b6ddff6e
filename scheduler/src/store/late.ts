import type { ClaimedRun } from "../store.ts";
import type { Database } from "./database.ts";
import { inheritedColumns } from "./run-rows.ts";

/** No task's misfire time is shorter, so what is less late than this needs no look. */
const leastLateMs = 1_000;

/**
 * Of runs just claimed, ends those whose task's misfire policy gives them up: planned in time, but the store, or every
 * worker, was away when they came due. `skip` gives up what is later than the misfire time; `fire_once` does where a newer
 * slot of the task has come due, so that one of them runs. One that waited for a place, was tried before, stands for a
 * task planned from a run's end, or was made after its time (a catch-up, a backfill) is only late. They are claimed first so that nobody else can start them; a crash in
 * between leaves a claim like any other.
 *
 * @returns the fences of those that ended: skipped, with the policy as the reason
 */
export async function endLate(database: Database, runs: readonly ClaimedRun[], nowMs: number): Promise<Set<number>> {
  const late = runs.filter(
    ({ slotMs, attempt, dueMs }) => slotMs !== null && attempt === 1 && dueMs < nowMs - leastLateMs,
  );
  if (late.length === 0) return new Set();
  const s = database.schema;
  // The lists are hidden from the planner: with their length known it took the live runs whole, for one that is as rare as
  // its guesses, and compared each with each of the list. 350 ms for 2,000 of 20,000; asked by their keys they take 15.
  const rows = await database.query<{ fence: number }>(
    "claim-late",
    `with late as materialized (
       select r.id, 'misfire: ' || m.policy as why
       from unnest((select $1::bigint[]), (select $2::bigint[])) as i (id, fence) join ${s}.run r on r.id = i.id and r.fence = i.fence
            join ${s}.task t on t.id = r.task_id join ${s}.plan p on p.task_id = r.task_id
            cross join lateral (
              select t.definition->'misfire'->>'policy' as policy, (t.definition->'misfire'->>'afterMs')::bigint as after_ms) m
       where r.state + 0 = 3 and r.source = 1 and r.gate = 0 and not r.after_end and r.recall <> 1
         and r.created_ms <= r.slot_ms + m.after_ms and r.due_ms < $3 - m.after_ms
         and (m.policy = 'skip' or m.policy = 'fire_once' and (
           p.next_slot_ms <= $3 or exists (
             select from ${s}.slot l where l.task_id = r.task_id and l.slot_ms > r.slot_ms and l.slot_ms <= $3 and l.outcome = 1)))
       for update of r),
     gone as (
       delete from ${s}.run r using late where r.id = late.id returning r.*, late.why),
     told as (
       insert into ${s}.run_history (id, due_ms, slot_ms, created_ms, ended_ms, task_id, version, attempt, outcome, priority, source,
                                     key, payload, ${inheritedColumns}, error)
       select id, due_ms, slot_ms, created_ms, $3, task_id, version, 0, 3, priority, source, key, payload, ${inheritedColumns},
              jsonb_build_object('code', 'SKIPPED', 'message', why) from gone),
     marked as (
       update ${s}.slot l set outcome = 2, reason = gone.why from gone
       where l.task_id = gone.task_id and l.slot_ms = gone.slot_ms and l.run_id = gone.id),
     counted as (
       insert into ${s}.tally_delta (task_id, skipped) select task_id, count(*) from gone group by task_id)
     select fence from gone`,
    [late.map(({ runId }) => runId), late.map(({ fence }) => fence), Math.round(nowMs)],
  );
  return new Set(rows.map(({ fence }) => fence));
}
