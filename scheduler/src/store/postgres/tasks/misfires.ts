import { tooLateReason } from "../../../slots/plan.ts";
import { sourceNumber } from "../enqueue/sources.ts";
import { endUnclaimedSql } from "../runs/unclaimed-ends.ts";
import { runOutcome, slotOutcome } from "../states.ts";

/** SQL: a task's misfire policy as the row `m`, to be joined to the task's row `t`. */
export const misfireSql = `(
  select t.definition->'misfire'->>'policy' as policy, (t.definition->'misfire'->>'afterMs')::bigint as after_ms,
         (t.definition->'misfire'->>'withinMs')::bigint as within_ms,
         coalesce((t.definition->'misfire'->>'waiting')::boolean, t.definition->'misfire'->>'policy' = 'skip') as waiting) m`;

/**
 * SQL: ends runs `r` of slots that are too late by their task's misfire policy: the run is skipped, the slot missed, and the
 * reason names the rule. A run is too late after the misfire time with `skip`; with `fire_once`, if in addition a newer slot of
 * the task has come due, so that only one of them runs; with any policy, if it is also later than `withinMs`. The run of a task
 * that plans from a run's end, and a run that was created later than the misfire time after its slot (a catch-up, a backfill),
 * never ends as too late.
 * @param runs a FROM list that contains `r`
 * @param where a condition on `r` and on the policy `m`
 * @param now an SQL parameter with the time
 * @param skipLocked true to leave out runs that other transactions have locked
 * @param answer the result columns of the statement, from the ended runs `gone`
 */
export const endGivenUpSql = (s: string, { runs, where, now, skipLocked = false, answer }: GivenUp): string =>
  endUnclaimedSql(s, {
    before: `late as materialized (
      select r.id, case when r.due_ms < ${now} - m.within_ms then '${tooLateReason}' else 'misfire: ' || m.policy end as why
      from ${runs} join ${s}.task t on t.id = r.task_id join ${s}.plan p on p.task_id = r.task_id cross join lateral ${misfireSql}
      where ${where}
        and r.source = ${sourceNumber("slot")} and not r.after_end and r.created_ms <= r.slot_ms + m.after_ms and r.due_ms < ${now} - m.after_ms
        and (m.policy = 'skip' or r.due_ms < ${now} - m.within_ms or m.policy = 'fire_once' and (
          p.next_slot_ms <= ${now} or exists (
            select from ${s}.slot l where l.task_id = r.task_id and l.slot_ms > r.slot_ms and l.slot_ms <= ${now} and l.outcome = ${slotOutcome.run})))
      for update of r ${skipLocked ? "skip locked" : ""}),`,
    which: "using late where r.id = late.id",
    outcome: runOutcome.skipped,
    slot: slotOutcome.missed,
    why: "late.why",
    now,
    answer,
  });

interface GivenUp {
  runs: string;
  where: string;
  now: string;
  skipLocked?: boolean;
  answer: string;
}
