import { longestQueue, thresholdsOf } from "../../../alarms/stored-rules.ts";
import { formatDuration } from "../../../base/duration.ts";
import { runState } from "../states.ts";
import { most } from "./alarm-findings.ts";
import type { Find, Finder, Found } from "./watched.ts";

/** How often the queues are counted during the time `within` over which growth is measured. */
const counts = 10;
/**
 * A time in ms that is longer than the time between two evaluations. Counts are kept this much longer, so that a former count exists even
 * if `within` is short.
 */
const betweenLooksMs = 10_000;

/** SQL: the number of due runs of the task `t` that wait, counted up to a limit, by the index of a task's runs. */
const waitingSql = (s: string, now: string, limit: string): string => `(select count(*)::int as waiting from (
  select from ${s}.run r where r.task_id = t.id and r.due_ms <= ${now} and r.state in (${runState.held}, ${runState.ready}) limit ${limit}) w)`;

/** Finds tasks with more waiting due runs than the threshold, and tasks that have many more of them than some time ago. */
export const queue: Find = async (finder) => {
  const { more, grows } = thresholdsOf(finder.rule.content);
  const found = [
    ...(more === null ? [] : await long(finder, more)),
    ...(grows === null ? [] : await growing(finder, grows)),
  ];
  return [...new Map(found.map((one) => [one.subject, one])).values()];
};

async function long({ client, s, now, scope, values }: Finder, more: number): Promise<Found[]> {
  const { rows } = await client.query(
    `select t.name as subject from ${s}.task t cross join lateral ${waitingSql(s, "$5", "$6::int + 1")} q
     where ${scope} and q.waiting > $6 order by t.name limit ${most}`,
    [...values, now, more],
  );
  return rows.map(({ subject }) => ({
    subject: String(subject),
    count: 1,
    text: `more than ${more} due runs wait`,
    runId: null,
  }));
}

/**
 * Finds queues that have grown: compares the last count of each queue with the count `withinMs` before it. The row with the task 0 stands
 * for the count as a whole, because a queue without waiting runs has no row.
 */
async function growing(finder: Finder, grows: number): Promise<Found[]> {
  const { client, s, rule } = finder;
  const { withinMs } = thresholdsOf(rule.content);
  await count(finder, withinMs);
  const { rows } = await client.query(
    `with last as (select max(at_ms) as at_ms from ${s}.alarm_queue where rule = $1 and task_id = 0),
          former as (select max(q.at_ms) as at_ms from ${s}.alarm_queue q, last
                     where q.rule = $1 and q.task_id = 0 and q.at_ms <= last.at_ms - $2::bigint)
     select t.name as subject, q.waiting, q.waiting - coalesce(f.waiting, 0) as more, last.at_ms - former.at_ms as "spanMs"
     from last join former on former.at_ms is not null join ${s}.alarm_queue q on q.rule = $1 and q.at_ms = last.at_ms
     join ${s}.task t on t.id = q.task_id
     left join ${s}.alarm_queue f on f.rule = $1 and f.task_id = q.task_id and f.at_ms = former.at_ms
     where q.waiting - coalesce(f.waiting, 0) > $3 order by t.name limit ${most}`,
    [rule.name, withinMs, grows],
  );
  return rows.map(({ subject, waiting, more, spanMs }) => ({
    subject: String(subject),
    count: 1,
    text: `${waiting} due runs wait, ${more} more than ${formatDuration(Math.round(Number(spanMs) / 1_000) * 1_000)} ago`,
    runId: null,
  }));
}

/** Counts the queues in the rule's scope, if the last count is old enough, and deletes counts that are not needed any more. */
async function count({ client, s, now, rule, scope, values }: Finder, withinMs: number): Promise<void> {
  const everyMs = Math.ceil(withinMs / counts);
  await client.query(
    // Rows of the future are from before the cluster's time went back.
    `delete from ${s}.alarm_queue where rule = $1 and (at_ms < $2::bigint or at_ms > $3::bigint)`,
    [rule.name, now - withinMs - 2 * everyMs - betweenLooksMs, now],
  );
  const { rows: recent } = await client.query(
    `select from ${s}.alarm_queue where rule = $1 and task_id = 0 and at_ms > $2`,
    [rule.name, now - everyMs],
  );
  if (recent.length > 0) return;
  await client.query(
    `insert into ${s}.alarm_queue (rule, task_id, at_ms, waiting)
     select $6, 0, $5::bigint, 0
     union all
     select $6, t.id, $5::bigint, q.waiting from ${s}.task t cross join lateral ${waitingSql(s, "$5::bigint", `${longestQueue}`)} q
     where ${scope} and q.waiting > 0`,
    [...values, now, rule.name],
  );
}
