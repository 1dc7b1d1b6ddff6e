import { binMs, type ComingAnswer, type ComingRequest } from "../../../run/coming-runs.ts";
import type { Database } from "../database.ts";
import { runState } from "../states.ts";
import { limitedOfSql, unlimitedRunSql, unlimitedSql } from "./group-limits.ts";
import { earliestReadySql, prioritiesSql } from "./ready.ts";

/**
 * Returns a function that reads when the next run is due that a claim without a lock may take, and which of the groups have a limit. This
 * is a separate statement: for a claim that contained it, the planner would either make one plan for all claims, which scans every future
 * run, or one plan for each claim, which takes longer than both statements. The groups are in a subselect, so that the planner does not
 * know their number; otherwise it estimated the generic plan as more expensive and planned each time, 0.3 ms for a read of 0.1 ms.
 */
export function nextDueOf(database: Database) {
  const s = database.schema;
  const sql = `select (${earliestReadySql(
    s,
    `${unlimitedSql(s, "(select $1::int[])")} g`,
    "g.group_id",
    `task_id <> all ($2::int[]) and ${unlimitedRunSql(s, "g.group_id", "task_id")}`,
  )}) as next, ${limitedOfSql(s, "(select $1::int[])::int[]")} as limited`;
  return async (groupIds: number[], exceptTaskIds: number[]): Promise<{ next: number | null; limited: number[] }> => {
    const [row] = await database.query<{ next: number | null; limited: number[] }>("claim-next", sql, [
      groupIds,
      exceptTaskIds,
    ]);
    return row ?? { next: null, limited: [] };
  };
}

/**
 * Returns a function that counts the groups' ready runs by due time, in bins of `binMs` from now on, up to a maximum per group and
 * priority, and reads when the first run after the last bin is due. It reads only the index: limits, and tasks that this worker cannot
 * run, are ignored, because the counts only decide how early workers start claiming.
 */
export function comingOf(database: Database) {
  const s = database.schema;
  const untilSql = "$2::bigint + $3::bigint";
  const sql = `
    with binned as materialized (
      select (greatest(r.due_ms - $2::bigint, 0) / ${binMs})::int as bin, count(*)::int as n
      from unnest($1::int[]) as g (group_id) cross join unnest(${prioritiesSql}) as p (priority) cross join lateral (
        select due_ms from ${s}.run where state = ${runState.ready} and group_id = g.group_id and priority = p.priority
          and due_ms < ${untilSql}
        order by due_ms limit $4) r
      group by 1
    )
    select (select array_agg(bin) from binned) as bins, (select array_agg(n) from binned) as counts, next
    from (${earliestReadySql(s, "unnest($1::int[]) as g (group_id)", "g.group_id", `due_ms >= ${untilSql}`)}) as later`;
  return async ({ groupIds, nowMs, aheadMs, most }: ComingRequest): Promise<ComingAnswer> => {
    const [row] = await database.query<{ bins: number[] | null; counts: number[] | null; next: number | null }>(
      "claim-coming",
      sql,
      [groupIds, nowMs, aheadMs, most],
    );
    const counts = Array.from({ length: aheadMs / binMs }, () => 0);
    row?.bins?.forEach((bin, i) => {
      counts[bin] = row.counts?.[i] ?? 0;
    });
    return { counts, nextMs: row?.next ?? null };
  };
}
