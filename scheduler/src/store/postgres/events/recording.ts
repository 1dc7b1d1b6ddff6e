import { outcomes } from "../../../run/run.ts";
import { type EventType, eventTypes } from "../../event-store.ts";
import { slotOutcome } from "../states.ts";

/** The value of `event.kind` for an attempt that did not end its run. The end of a run has its outcome's number. */
export const retriedKind = outcomes.length;

/**
 * SQL: the CTE `recorded`, which records events about the runs in `from` if a consumer wants events of this kind. While the table
 * `event_kind` is empty, `from` is not read for it. The labels are recorded too, because the run may leave no row that has them.
 * @param from a FROM item with the alias `e`, and its condition if it has one; all other parameters are SQL expressions
 */
export const recordSql = (s: string, from: string, kind: string | number, attempt = "e.attempt") => `recorded as (
    insert into ${s}.event (ended_ms, run_id, task_id, attempt, kind, told)
    select e.ended_ms, e.id, e.task_id, ${attempt}, ${kind}, case when e.labels is not null then jsonb_build_object('labels', e.labels) end from ${from}
    ${from.includes(" where ") ? "and" : "where"} exists (select from ${s}.event_kind) and exists (select from ${s}.event_kind k where k.kind = ${kind})
  )`;

const kindOf = (type: EventType): number => eventTypes.indexOf(type);
/** The values of `event.kind` for events about slots. */
export const slotKind = {
  planned: kindOf("slot.planned"),
  caughtUp: kindOf("slot.caught-up"),
  skipped: kindOf("slot.skipped"),
  missed: kindOf("slot.missed"),
};
/** SQL: the value of `event.kind` for a slot that is skipped or missed, else null. @param outcome an SQL expression for `slot.outcome` */
export const unrunKindSql = (outcome: string): string =>
  `case ${outcome} when ${slotOutcome.skipped} then ${slotKind.skipped} when ${slotOutcome.missed} then ${slotKind.missed} end`;

/** The columns of an event about slots, as SQL expressions over the rows in `from`. */
interface SlotColumns {
  kind: string;
  task: string;
  slot: string;
  /** The run's id; default: the slot has no run. */
  run?: string;
  why: string;
  /** The last slot of a gap, and the number of its slots; default: the event is about one slot. */
  until?: string;
  slots?: string;
  /** The time at which the outcome is recorded. */
  now: string;
}

/**
 * SQL: a CTE that records the outcomes of slots if a consumer wants events of their types. While the table `event_kind` is empty, `from` is
 * not read for it.
 */
export const recordSlotsSql = (
  s: string,
  name: string,
  from: string,
  { kind, task, slot, run = "0", why, until, slots, now }: SlotColumns,
) => `${name} as (
    insert into ${s}.event (ended_ms, run_id, task_id, attempt, kind, told)
    select ${now}, ${run}, ${task}, 0, k.kind, jsonb_strip_nulls(jsonb_build_object('slot', ${slot}, 'why', ${why}${
      until === undefined ? "" : `, 'until', ${until}, 'slots', ${slots}`
    }))
    from ${from} join ${s}.event_kind k on k.kind = ${kind} where exists (select from ${s}.event_kind)
  )`;

/** The columns of an event about a row `e` of `slot_range`. */
export const rangeColumns = (now: string): SlotColumns => ({
  kind: unrunKindSql("e.outcome"),
  task: "e.task_id",
  slot: "e.from_ms",
  until: "e.to_ms",
  slots: "e.slots",
  why: "e.reason",
  now,
});

/** The columns of an event about a change, as SQL expressions over the rows in `from`. */
interface ChangeColumns {
  kind: string;
  /** The task's id; default: the change is not of a task. */
  task?: string;
  /** The version, or the limit's value, before and after the change. */
  before: string;
  after: string;
}

/**
 * SQL: a statement that records events about changes, if a consumer wants events of their types.
 * @param from a FROM item; its alias `e` is the new row of the audit log
 */
export const recordChangesSql = (
  s: string,
  from: string,
  { kind, task = "0", before, after }: ChangeColumns,
) => `insert into ${s}.event (ended_ms, run_id, task_id, attempt, kind, told)
    select e.at_ms, 0, ${task}, 0, k.kind, jsonb_build_object('entry', e.id, 'act', e.act, 'named', e.named, 'by', e.who, 'why', e.why,
      'before', ${before}, 'after', ${after})
    from ${from} join ${s}.event_kind k on k.kind = ${kind} where exists (select from ${s}.event_kind)`;

/** SQL: the number of the type of events about a task. @param of an SQL expression: the task whose schedule it is, or null */
export const taskKindSql = (of: string): string =>
  `case when ${of} is null then ${kindOf("task.changed")} else ${kindOf("schedule.changed")} end`;

export const limitKind = kindOf("limit.changed");

/**
 * SQL: the statement that records the event of one change, whose row of the audit log is in the CTE `entry`. The changed object must
 * already have its new version in this transaction.
 * @returns undefined if there are no events about such changes
 */
export function recordChangeSql(
  s: string,
  { about, act, named }: { about: string; act: string; named: string },
): string | undefined {
  const versions = (before: string, of: string) => ({
    before: act === "create" ? "null::int" : act === "edit" ? before : of,
    after: act === "remove" ? "null::int" : of,
  });
  if (about === "task")
    return recordChangesSql(s, `entry e join ${s}.task t on t.name = e.named`, {
      kind: taskKindSql("t.of_name"),
      task: "t.id",
      ...versions(
        `(select max(v.version) from ${s}.task_version v where v.task_id = t.id and v.version < t.version)`,
        "t.version",
      ),
    });
  if (about === "calendar")
    return recordChangesSql(s, `entry e join ${s}.calendar c on c.name = e.named`, {
      kind: `${kindOf("calendar.changed")}`,
      ...versions(
        `(select max(v.version) from ${s}.calendar_version v where v.calendar_id = c.id and v.version < c.version)`,
        "c.version",
      ),
    });
  // Other acts about alarms, such as a silence, change no rule.
  if (about === "alarm" && ["create", "edit", "remove"].includes(act))
    return recordChangesSql(s, `entry e join ${s}.alarm_rule r on r.name = e.named`, {
      kind: `${kindOf("alarm-rule.changed")}`,
      ...versions("r.version - 1", "r.version"),
    });
  if (act === "limit" && (about === "group" || (about === "cluster" && named.startsWith("quota of "))))
    return recordChangesSql(s, "entry e", { kind: `${limitKind}`, before: "e.before", after: "e.after" });
  return undefined;
}

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
