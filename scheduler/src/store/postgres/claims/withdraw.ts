import type { SqlClient } from "../../../base/change.ts";
import { sourceNumber } from "../enqueue/sources.ts";
import { endUnclaimedSql } from "../runs/unclaimed-ends.ts";
import { runOutcome, runState, slotOutcome } from "../states.ts";

const slot = sourceNumber("slot");
const untriedSlot = `r.source = ${slot} and r.attempt = 0`;
/** The states of a run that no worker has claimed. */
const waiting = [runState.held, runState.paused, runState.ready, runState.undecided].join(", ");

export type Withdrawal = "edited" | "paused" | "removed";

export interface Withdrawn {
  held: number;
  skipped: number;
  cancelled: number;
}

/**
 * Withdraws planned runs that no worker has claimed, in the caller's transaction. A slot whose time has not come is deleted, so that it can
 * be planned again. A slot that is due and unclaimed ends as skipped if its task is paused or removed, and stays if the task is only
 * edited. All other unclaimed runs (enqueued, created by a backfill, or tried before) wait until a pause is over, and end if their task is
 * removed.
 * @returns the number of runs that wait for the end of a pause, and of runs that ended as skipped or cancelled
 */
export async function withdraw(
  client: SqlClient,
  s: string,
  taskId: number,
  now: number,
  how: Withdrawal,
): Promise<Withdrawn> {
  await client.query(
    `with gone as (
       delete from ${s}.run where task_id = $1 and source = ${slot} and state in (${runState.held}, ${runState.ready}) and attempt = 0 and slot_ms > $2
       returning slot_ms),
     unmoved as (delete from ${s}.moved_slot m using gone where m.task_id = $1 and m.slot_ms = gone.slot_ms)
     delete from ${s}.slot l using gone where l.task_id = $1 and l.slot_ms = gone.slot_ms`,
    [taskId, now],
  );
  // Slots that a calendar or a blackout skipped have no run. They are deleted, because other slots may now replace them.
  await client.query(
    `with gone as (
       delete from ${s}.slot where task_id = $1 and slot_ms > $2 and outcome = ${slotOutcome.skipped} and run_id is null returning slot_ms),
     unmoved as (delete from ${s}.moved_slot m using gone where m.task_id = $1 and m.slot_ms = gone.slot_ms)
     insert into ${s}.tally_delta (task_id, skipped) select $1, -count(*) from gone having count(*) > 0`,
    [taskId, now],
  );
  if (how === "edited") return { held: 0, skipped: 0, cancelled: 0 };
  if (how === "removed")
    await client.query(`update ${s}.run set again = null where task_id = $1 and again is not null`, [taskId]);
  const planned = `(${untriedSlot} and not ${ofBackfill(s)})`;
  // The database counts the rows, because a task may have millions of such runs.
  const { rows: kept } =
    how === "paused"
      ? await client.query(
          `with kept as (
             update ${s}.run r set state = ${runState.paused}
             where r.task_id = $1 and r.state in (${runState.held}, ${runState.ready}) and not ${planned} returning 1)
           select count(*) as held from kept`,
          [taskId],
        )
      : { rows: [] };
  const { rows: gone } = await client.query(
    endUnclaimedSql(s, {
      which: `where r.task_id = $1 and r.state in (${waiting}) and ($3 = 'removed' or ${planned})`,
      outcome: `case when ${untriedSlot} then ${runOutcome.skipped} else ${runOutcome.cancelled} end`,
      slot: `case when r.attempt = 0 then ${slotOutcome.skipped} end`,
      why: "'task ' || $3",
      now: "$2",
      answer: `count(*) filter (where outcome = ${runOutcome.skipped}) as skipped, count(*) filter (where outcome = ${runOutcome.cancelled}) as cancelled`,
    }),
    [taskId, now, how],
  );
  const { skipped = 0, cancelled = 0 } = gone[0] ?? {};
  return { held: Number(kept[0]?.held ?? 0), skipped: Number(skipped), cancelled: Number(cancelled) };
}

/** The reason of a slot that a backfill ran, in the slot table, is this text followed by the backfill's number. */
export const backfillReason = "backfill ";

/** SQL condition: a backfill created the run `r` of a slot. */
const ofBackfill = (s: string) => `exists (
  select from ${s}.slot l where l.task_id = r.task_id and l.slot_ms = r.slot_ms and l.run_id = r.id and starts_with(l.reason, '${backfillReason}'))`;
