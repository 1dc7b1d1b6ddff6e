import { tooLateReason } from "../../../slots/plan.ts";
import { sourceNumber } from "../enqueue/sources.ts";
import { slotOutcome } from "../states.ts";

/** A task's misfire policy, as `m`, beside its row `t`. */
export const misfireSql = `(
  select t.definition->'misfire'->>'policy' as policy, (t.definition->'misfire'->>'afterMs')::bigint as after_ms,
         (t.definition->'misfire'->>'withinMs')::bigint as within_ms,
         coalesce((t.definition->'misfire'->>'waiting')::boolean, t.definition->'misfire'->>'policy' = 'skip') as waiting) m`;

/** What slots and runs that are given up say: `r` and `m` as below. @param now a parameter */
export const givesUpWhySql = (now: string) => `
  case when r.due_ms < ${now} - m.within_ms then '${tooLateReason}' else 'misfire: ' || m.policy end`;

/**
 * A condition on a run `r`, its task's plan `p` and policy `m`: the policy gives the run up. `skip` gives up what is later than the misfire time;
 * `fire_once` does where a newer slot of the task has come due, so that one of them runs; with a `within`, each what is later than that. A run that stands for a task planned from a run's
 * end, or that was made after its time (a catch-up, a backfill), is only late.
 * @param now a parameter
 */
export const givesUpSql = (s: string, now: string) => `
  r.source = ${sourceNumber("slot")} and not r.after_end and r.created_ms <= r.slot_ms + m.after_ms and r.due_ms < ${now} - m.after_ms
  and (m.policy = 'skip' or r.due_ms < ${now} - m.within_ms or m.policy = 'fire_once' and (
    p.next_slot_ms <= ${now} or exists (
      select from ${s}.slot l where l.task_id = r.task_id and l.slot_ms > r.slot_ms and l.slot_ms <= ${now} and l.outcome = ${slotOutcome.run})))`;
