import { tooLateReason } from "../../../slots/plan.ts";
import { sourceNumber } from "../enqueue/sources.ts";
import { endUnclaimedSql } from "../runs/unclaimed-ends.ts";
import { runOutcome, slotOutcome } from "../states.ts";

/** A task's misfire policy as `m`, to be joined to its row `t`. */
export const misfireSql = `(
  select t.definition->'misfire'->>'policy' as policy, (t.definition->'misfire'->>'afterMs')::bigint as after_ms,
         (t.definition->'misfire'->>'withinMs')::bigint as within_ms,
         coalesce((t.definition->'misfire'->>'waiting')::boolean, t.definition->'misfire'->>'policy' = 'skip') as waiting) m`;

/**
 * Ends runs `r` that their task's misfire policy gives up: the run as skipped, the slot as missed, with the reason. `skip` gives up runs
 * later than the misfire time; `fire_once` gives up such runs if a newer slot of the task has come due, so that one of them runs; `within`
 * gives up each run later than its limit. A run of a task planned from a run's end, or a run made after its time (a catch-up, a backfill),
 * is only late and not given up.
 * @param runs a FROM list, with `r`
 * @param where a condition on `r` and on the policy `m`
 * @param now a parameter
 * @param skipLocked leaves out runs that other transactions have locked
 * @param answer the result columns of the statement, over the ended runs `gone`
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
