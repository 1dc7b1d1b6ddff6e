import type { Database } from "./database.ts";
import { limitedOfSql, unlimitedRunSql, unlimitedSql } from "./group-limits.ts";
import { earliestReadySql } from "./ready.ts";

/**
 * When the next run that any claim may take is due, and which of the groups have a limit. A statement of its own: within
 * the claim's, the planner makes either one plan for all, which goes through every run of the future, or one for each
 * claim, which takes longer than both statements do.
 */
export function nextDueOf(database: Database) {
  const s = database.schema;
  const sql = `select (${earliestReadySql(
    s,
    `${unlimitedSql(s, "$1::int[]")} g`,
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
