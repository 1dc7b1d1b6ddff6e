import { outcomes } from "../../../run/run.ts";
import { bucketsPerDoubling, hourMs, timeKinds } from "../../../statistics/statistics.ts";
import type { StatisticsStore, TaskFigures, TimesRow } from "../../../statistics/statistics-store.ts";
import type { Database } from "../database.ts";

const names = ["succeeded", "failed", "cancelled", "skipped", "missed", "retried"] as const;
const dayHours = 24;
const handled = ["succeeded", "failed"].map((outcome) => outcomes.indexOf(outcome as (typeof outcomes)[number]));
const bucketSql = (ms: string) => `floor(ln(${ms} + 1) / ln(2) * ${bucketsPerDoubling})::int`;

export function statisticsStore(database: Database): StatisticsStore {
  const s = database.schema;
  return {
    async addTimes(untilMs, mostMs) {
      const [row] = await database.query<{ untilMs: number }>(
        "statistics-until",
        `select until_ms::float8 as "untilMs" from ${s}.statistics`,
      );
      if (!row) {
        await database.query(
          "statistics-begin",
          `insert into ${s}.statistics (until_ms) values ($1) on conflict (one) do nothing`,
          [Math.round(untilMs)],
        );
        return untilMs;
      }
      const toMs = Math.round(Math.min(untilMs, row.untilMs + mostMs));
      if (toMs <= row.untilMs) return row.untilMs;
      // The update comes first in the same statement: if another process has moved the time meanwhile, nothing is added.
      await database.query("statistics-add", addSql(s), [Math.round(row.untilMs), toMs]);
      return toMs;
    },

    async merge(beforeHour, deleteBeforeHour) {
      await database.query(
        "statistics-merge-times",
        `with gone as (
           delete from ${s}.task_times where hour < $1 and hour % ${dayHours} <> 0 returning *)
         insert into ${s}.task_times as t (task_id, hour, kind, bucket, runs, sum_ms, most_ms)
         select task_id, hour - hour % ${dayHours}, kind, bucket, sum(runs), sum(sum_ms), max(most_ms) from gone group by 1, 2, 3, 4
         order by 1, 2, 3, 4
         on conflict (task_id, hour, kind, bucket) do update
           set runs = t.runs + excluded.runs, sum_ms = t.sum_ms + excluded.sum_ms, most_ms = greatest(t.most_ms, excluded.most_ms)`,
        [beforeHour],
      );
      // Counts are totals, so the last row of a day is the day's, and the last row before the limit is what later rows are compared with.
      await database.query(
        "statistics-merge-counts",
        `delete from ${s}.task_counts c where exists (
           select from ${s}.task_counts later where later.task_id = c.task_id and later.hour > c.hour
             and (later.hour < $2 or (later.hour < $1 and later.hour / ${dayHours} = c.hour / ${dayHours})))`,
        [beforeHour, deleteBeforeHour],
      );
      await database.query("statistics-forget-times", `delete from ${s}.task_times where hour < $1`, [
        deleteBeforeHour,
      ]);
    },

    async read(taskId, fromHour, nowMs) {
      const [counts, times, [until]] = await Promise.all([
        database.query<TaskFigures["counts"][number]>(
          "statistics-counts",
          // The last row has the present totals; they include the counters that are not folded yet.
          `with base as (select max(hour) as hour from ${s}.task_counts where task_id = $1 and hour < $2),
           fresh as (
             select ${names.map((n) => `sum(${n}) as ${n}`).join(", ")} from (
               select ${names.join(", ")} from ${s}.tally where task_id = $1
               union all select ${names.join(", ")} from ${s}.tally_delta where task_id = $1) x)
           select hour, ${names.map((n) => `${n}::float8`).join(", ")} from (
             select 0 as place, hour, ${names.join(", ")} from ${s}.task_counts
             where task_id = $1 and hour >= coalesce((select hour from base), $2)
             union all select 1, hour, ${names.join(", ")} from ${s}.tally where task_id = $1
             union all select 2, $3, ${names.join(", ")} from fresh
             where exists (select from ${s}.tally_delta where task_id = $1)) x order by place, hour`,
          [taskId, fromHour, Math.floor(nowMs / hourMs)],
        ),
        database.query<TimesRow>(
          "statistics-times",
          `select hour, kind, bucket, runs::float8 as runs, sum_ms::float8 as "sumMs", most_ms::float8 as "mostMs"
           from ${s}.task_times where task_id = $1 and hour >= $2`,
          [taskId, fromHour],
        ),
        database.query<{ untilMs: number }>(
          "statistics-until",
          `select until_ms::float8 as "untilMs" from ${s}.statistics`,
        ),
      ]);
      return { counts, times, timesUntilMs: until?.untilMs ?? null };
    },
  };
}

/** $1 the time up to which runs are added, $2 the new one. */
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
  insert into ${s}.task_times as t (task_id, hour, kind, bucket, runs, sum_ms, most_ms)
  select task_id, hour, kind, ${bucketSql("ms")}, count(*), sum(ms), max(ms) from timed group by 1, 2, 3, 4 order by 1, 2, 3, 4
  on conflict (task_id, hour, kind, bucket) do update
    set runs = t.runs + excluded.runs, sum_ms = t.sum_ms + excluded.sum_ms, most_ms = greatest(t.most_ms, excluded.most_ms)`;
