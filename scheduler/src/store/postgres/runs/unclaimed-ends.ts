import { notifySql } from "../cluster/signals.ts";
import { againSql, followAgainSql } from "../enqueue/again.ts";
import { inheritedColumns } from "../enqueue/run-rows.ts";
import { sourceNumber } from "../enqueue/sources.ts";
import { recordSlotsSql, recordSql, unrunKindSql } from "../events/recording.ts";
import { runOutcome, runState, slotOutcome } from "../states.ts";
import { heardSql, hearSql } from "./awaited.ts";

const child = sourceNumber("child");

/**
 * The parts of the statement that `endUnclaimedSql` returns. Unless noted otherwise, each is an SQL expression over the live run
 * `r` that ends.
 */
interface UnclaimedEnd {
  /** CTEs that come first in the statement, each followed by a comma. */
  before?: string;
  /** The SQL after `delete from run r`, which selects the runs that end. */
  which: string;
  /** The value for `run_history.outcome`. */
  outcome: string | number;
  /** The new outcome of the run's slot in the slot table, as SQL. The default, SQL null, leaves it unchanged. */
  slot?: string | number;
  why: string;
  now: string;
  /** The result columns of the statement, from the ended runs `gone`. */
  answer: string;
}

/**
 * SQL: ends runs that no worker has claimed: deletes them, writes history, counters and the slot table, and plans the next slot
 * of a task that plans from a run's end. If a child ends, a signal is sent at the commit, because the child may be the last one
 * for which a join waits; this transaction cannot check that, because it does not see the uncommitted ends of other children.
 */
export const endUnclaimedSql = (
  s: string,
  { before = "", which, outcome, slot = "null", why, now, answer }: UnclaimedEnd,
) => `
  with ${before} gone as (
    delete from ${s}.run r ${which}
    returning r.*, ${now}::bigint as ended_ms, (${outcome})::smallint as outcome, (${slot})::smallint as slot_outcome, (${why})::text as why
  ), kept as (
    insert into ${s}.run_history (id, due_ms, slot_ms, created_ms, ended_ms, task_id, version, attempt, outcome, priority,
                                  source, key, payload, ${inheritedColumns}, error)
    select id, due_ms, slot_ms, created_ms, ${now}::bigint, task_id, version, attempt - (state = ${runState.claimed})::int, outcome, priority,
           source, key, payload, ${inheritedColumns},
           jsonb_build_object('code', case outcome when ${runOutcome.skipped} then 'SKIPPED' else 'CANCELLED' end, 'message', why) from gone
  ), marked as (
    update ${s}.slot l set outcome = gone.slot_outcome, reason = gone.why from gone
    where gone.slot_outcome is not null and l.task_id = gone.task_id and l.slot_ms = gone.slot_ms and l.run_id = gone.id
    returning l.task_id, l.slot_ms, l.run_id, l.outcome, l.reason, gone.ended_ms
  ), onward as (
    update ${s}.plan p set next_slot_ms = greatest(${now}::bigint + p.after_end_ms, gone.slot_ms + 1) from gone
    where p.task_id = gone.task_id and gone.after_end and p.next_slot_ms is null and not p.paused returning 1
  ), counted as (
    insert into ${s}.tally_delta (task_id, cancelled, skipped, missed)
    select task_id, count(*) filter (where outcome = ${runOutcome.cancelled}),
           count(*) filter (where outcome = ${runOutcome.skipped} and slot_outcome is distinct from ${slotOutcome.missed}),
           count(*) filter (where slot_outcome = ${slotOutcome.missed})
    from gone group by task_id
  ), told as (
    select count(${notifySql(s, "said")}) from (select 'plans' as said from onward union select 'child ' || parent_id from gone where source = ${child}) x
  ), ${followAgainSql(s)}, ${hearSql(s)},
  ${recordSql(s, "gone e", "e.outcome", `e.attempt - (e.state = ${runState.claimed})::int`)},
  ${recordSlotsSql(s, "recorded_slots", "marked e", {
    kind: unrunKindSql("e.outcome"),
    task: "e.task_id",
    slot: "e.slot_ms",
    run: "e.run_id",
    why: "e.reason",
    now: "e.ended_ms",
  })}
  select ${answer}, (select * from told) as told, ${againSql}, ${heardSql} from gone`;
