import { outcomes } from "../../../run/run.ts";

/** The value of `event.kind` for an attempt that did not end its run. The end of a run has its outcome's number. */
export const retriedKind = outcomes.length;

/**
 * SQL: the CTE `recorded`, which records events about the runs in `from` if a consumer wants events of this kind. While the table
 * `event_kind` is empty, `from` is not read for it.
 * @param from a FROM item with the alias `e`, and its condition if it has one; all other parameters are SQL expressions
 */
export const recordSql = (s: string, from: string, kind: string | number, attempt = "e.attempt") => `recorded as (
    insert into ${s}.event (ended_ms, run_id, task_id, attempt, kind)
    select e.ended_ms, e.id, e.task_id, ${attempt}, ${kind} from ${from}
    ${from.includes(" where ") ? "and" : "where"} exists (select from ${s}.event_kind) and exists (select from ${s}.event_kind k where k.kind = ${kind})
  )`;

/**
 * SQL: lowers the transaction numbers of events that were loaded from another server, because they may be above this server's, and no
 * snapshot would show such rows. Consumers see from their snapshots that the numbers went back, and read again.
 */
export const takeOverSql = (s: string) => `
  with taken as (update ${s}.event set xid = pg_current_xact_id() where xid > pg_current_xact_id())
  update ${s}.event_kind set since = '3' where since > pg_current_xact_id()`;

/**
 * SQL: ends the recording of events that no process wants any more, and deletes consumers whose time is over. $1 is now, $2 the time since
 * which the history is stored.
 */
export const dropUnwantedSql = (s: string) => `
  with dropped as (delete from ${s}.event_kind where until_ms < $1),
  kept as (update ${s}.event_kind set kept_ms = $2 where until_ms >= $1 and kept_ms < $2)
  delete from ${s}.event_consumer where until_ms < $1`;
