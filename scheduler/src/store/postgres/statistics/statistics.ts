import type { SqlClient } from "../../../base/change.ts";
import { outcomes } from "../../../run/run.ts";
import {
  bucketsPerDoubling,
  dayHours,
  dayStartOf,
  hourMs,
  hourOf,
  timeKinds,
} from "../../../task/statistics/statistics.ts";
import type { StatisticsStore, TaskFigures, TimesRow } from "../../../task/statistics/statistics-store.ts";
import { counterNames } from "../../../task/task-record.ts";
import type { Database } from "../database.ts";

const handled = ["succeeded", "failed"].map((outcome) => outcomes.indexOf(outcome as (typeof outcomes)[number]));
const bucketSql = (ms: string) => `floor(ln(${ms} + 1) / ln(2) * ${bucketsPerDoubling})::int`;

export function statisticsStore(database: Database): StatisticsStore {
  const s = database.schema;
  return {
    async addTimes(untilMs, mostMs) {
      // The first run is looked up for each outcome, because the history has an index by outcome and end.
      const firsts = handled.map(
        (outcome) => `(select min(ended_ms) from ${s}.run_history
                       where outcome = ${outcome} and ended_ms >= x.until_ms and ended_ms < $1)`,
      );
      const [row] = await database.query<{ untilMs: number; firstMs: number | null }>(
        "statistics-until",
        `select until_ms::float8 as "untilMs", least(${firsts.join(", ")})::float8 as "firstMs" from ${s}.statistics x`,
        [Math.round(untilMs)],
      );
      if (!row) {
        await database.query(
          "statistics-begin",
          `insert into ${s}.statistics (until_ms) values ($1) on conflict (one) do nothing`,
          [Math.round(untilMs)],
        );
        return untilMs;
      }
      const toMs = Math.round(row.firstMs === null ? untilMs : Math.min(untilMs, row.firstMs + mostMs));
      if (toMs <= row.untilMs) return row.untilMs;
      // The update comes first in the same statement: if another process has moved the time meanwhile, nothing is added.
      await database.query("statistics-add", addSql(s), [Math.round(row.untilMs), toMs]);
      return toMs;
    },

    async merge(beforeHour, deleteBeforeHour) {
      const [row] = await database.query<{ fromHour: number | null }>(
        "statistics-merged",
        `select coalesce(merged_hour, least((select min(hour) from ${s}.task_times), (select min(hour) from ${s}.task_counts where hour > 0)))
           as "fromHour" from ${s}.statistics`,
      );
      const fromHour = row?.fromHour ?? beforeHour;
      for (let day = dayStartOf(fromHour); day < beforeHour; day += dayHours) await mergeDay(database, day);
      await database.query("statistics-forget-times", `delete from ${s}.task_times where hour < $1`, [
        deleteBeforeHour,
      ]);
      // Later counts are compared with the last ones before the limit, so these stay.
      await database.query(
        "statistics-forget-counts",
        `delete from ${s}.task_counts c where c.hour < $1 and exists (
           select from ${s}.task_counts later where later.task_id = c.task_id and later.hour > c.hour and later.hour < $1)`,
        [deleteBeforeHour],
      );
    },

    async read(taskId, fromHour, nowMs) {
      const [counts, times, [until]] = await Promise.all([
        database.query<TaskFigures["counts"][number]>(
          "statistics-counts",
          // The last row has the present totals; they include the counters that are not folded yet.
          `with base as (select max(hour) as hour from ${s}.task_counts where task_id = $1 and hour < $2),
           fresh as (
             select ${counterNames.map((n) => `sum(${n}) as ${n}`).join(", ")} from (
               select ${counterNames.join(", ")} from ${s}.tally where task_id = $1
               union all select ${counterNames.join(", ")} from ${s}.tally_delta where task_id = $1) x)
           select hour, ${counterNames.map((n) => `${n}::float8`).join(", ")} from (
             select 0 as place, hour, ${counterNames.join(", ")} from ${s}.task_counts
             where task_id = $1 and hour >= coalesce((select hour from base), $2)
             union all select 1, hour, ${counterNames.join(", ")} from ${s}.tally where task_id = $1
             union all select 2, $3, ${counterNames.join(", ")} from fresh
             where exists (select from ${s}.tally_delta where task_id = $1)) x order by place, hour`,
          [taskId, fromHour, hourOf(nowMs)],
        ),
        database.query<TimesRow>(
          "statistics-times",
          `select hour, kind, bucket, runs::float8 as runs, sum_ms::float8 as "sumMs", most_ms::float8 as "mostMs"
           from ${s}.task_times where task_id = $1 and hour >= $2`,
          [taskId, fromHour],
        ),
        database.query<{ untilMs: number; mergedHour: number | null }>(
          "statistics-state",
          `select until_ms::float8 as "untilMs", merged_hour as "mergedHour" from ${s}.statistics`,
        ),
      ]);
      return { counts, times, timesUntilMs: until?.untilMs ?? null, mergedHour: until?.mergedHour ?? 0 };
    },
  };
}

/**
 * After cluster time went back, attributes the counts of later hours to the present hour: deletes the totals that `task_counts` has of the
 * present hour and of later hours, and lowers the hour of `tally`. The durations since the start of the present hour are read again.
 */
export async function statisticsBack(client: SqlClient, s: string, nowMs: number): Promise<void> {
  const hour = hourOf(nowMs);
  await client.query(`update ${s}.statistics set until_ms = least(until_ms, $1)`, [hour * hourMs]);
  await client.query(`update ${s}.tally set hour = $1 where hour > $1`, [hour]);
  await client.query(`delete from ${s}.task_counts where hour >= $1`, [hour]);
  await client.query(`delete from ${s}.task_times where hour >= $1`, [hour]);
}

/** Merges the hours of one day. Counts are running totals, so for each task only the last row of the day is kept. */
async function mergeDay(database: Database, day: number): Promise<void> {
  const s = database.schema;
  const until = day + dayHours;
  await database.transaction(async (client) => {
    await client.query(
      `with gone as (delete from ${s}.task_times where hour > $1 and hour < $2 returning *)
       ${addedSql(s, "select task_id, $1, kind, bucket, sum(runs), sum(sum_ms), max(most_ms) from gone")}`,
      [day, until],
    );
    await client.query(
      `delete from ${s}.task_counts c where c.hour >= $1 and c.hour < $2 and exists (
         select from ${s}.task_counts later where later.task_id = c.task_id and later.hour > c.hour and later.hour < $2)`,
      [day, until],
    );
    await client.query(`update ${s}.statistics set merged_hour = greatest(merged_hour, $1)`, [until]);
  });
}

/**
 * SQL: adds the durations and the delays of runs that succeeded or failed and that ended from $1, the time up to which runs are already
 * added, up to $2.
 */
const addSql = (s: string) => `
  with moved as (update ${s}.statistics set until_ms = $2 where until_ms = $1 returning 1),
  ended as (
    select h.task_id, (h.ended_ms / ${hourMs})::int as hour, greatest(h.ended_ms - h.started_ms, 0) as took,
           greatest(h.started_ms - greatest(h.due_ms, coalesce(h.ready_ms, h.due_ms)), 0) as late
    from ${s}.run_history h where h.outcome in (${handled.join(", ")}) and h.ended_ms >= $1 and h.ended_ms < $2
      and h.started_ms is not null and exists (select from moved)),
  timed as (
    select task_id, hour, k.kind, k.ms from ended
    cross join lateral (values (${timeKinds.took}::smallint, took), (${timeKinds.late}::smallint, late)) k (kind, ms))
  ${addedSql(s, `select task_id, hour, kind, ${bucketSql("ms")}, count(*), sum(ms), max(ms) from timed`)}`;

/**
 * SQL: adds the runs of each task, hour, kind and size class to the stored numbers. @param rows selects all columns, to be grouped by the
 * first four
 */
const addedSql = (s: string, rows: string) => `
  insert into ${s}.task_times as t (task_id, hour, kind, bucket, runs, sum_ms, most_ms)
  ${rows} group by 1, 2, 3, 4 order by 1, 2, 3, 4
  on conflict (task_id, hour, kind, bucket) do update
    set runs = t.runs + excluded.runs, sum_ms = t.sum_ms + excluded.sum_ms, most_ms = greatest(t.most_ms, excluded.most_ms)`;
