import { binMs, type ComingAnswer, type ComingRequest } from "../../../run/coming-runs.ts";
import type { Database } from "../database.ts";
import { runState } from "../states.ts";
import { limitedOfSql, unlimitedRunSql, unlimitedSql } from "./group-limits.ts";
import { earliestReadySql, prioritiesSql } from "./ready.ts";

/**
 * When the next run that any claim may take is due, and which of the groups have a limit. A statement of its own: within
 * the claim's, the planner makes either one plan for all, which goes through every run of the future, or one for each
 * claim, which takes longer than both statements do. The groups stand behind a select, where it cannot see how many they are: as it
 * could, it took one plan for all to be dearer, and planned each time anew, 0.3 ms for what is read in 0.1.
 */
export function nextDueOf(database: Database) {
  const s = database.schema;
  const sql = `select (${earliestReadySql(
    s,
    `${unlimitedSql(s, "(select $1::int[])")} g`,
    "g.group_id",
    `task_id <> all ($2::int[]) and ${unlimitedRunSql(s, "g.group_id", "task_id")}`,
  )}) as next, ${limitedOfSql(s, "$1::int[]")} as limited`;
  return async (groupIds: number[], exceptTaskIds: number[]): Promise<{ next: number | null; limited: number[] }> => {
    const [row] = await database.query<{ next: number | null; limited: number[] }>("claim-next", sql, [
      groupIds,
      exceptTaskIds,
    ]);
    return row ?? { next: null, limited: [] };
  };
}

/**
 * How many of the groups' ready runs are due in each bin from now on, of each group and priority so many at most; and when the next
 * one after the bins is. By the index alone: a limit, or a task that this worker does not know, is no matter for a count that only says
 * how soon to begin.
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
