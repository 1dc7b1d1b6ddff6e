/**
 * Refreshes PostgreSQL's statistics each time the number of rows that this process has inserted has grown by a certain factor. Connections
 * cache plans, and a plan made while a table was nearly empty is slow with many rows. Autovacuum may refresh the statistics only a minute
 * later.
 */
import { messageOf } from "../../base/errors.ts";
import type { Database } from "./database.ts";

const manyTasks = 1_000;
const manyRuns = 4_000;

/**
 * Returns a function that is called with a number of new rows. It returns true once there are `many` rows, and then each time their number
 * has become `times` as large as when it last returned true.
 */
function growths(many: number, times: number): (made: number) => boolean {
  let [known, fresh] = [0, 0];
  return (made) => {
    fresh += made;
    if (fresh < Math.max(many, known * (times - 1))) return false;
    known += fresh;
    fresh = 0;
    return true;
  };
}

/**
 * Refreshes the statistics of tasks. A plan for claims that was cached while there were few tasks compared each claim with each of 100,000
 * tasks: 360 ms for 2,000 claims, in the first minute of a new cluster.
 * @returns a function to be called with the number of tasks that were created
 */
export function growthOfTasks(database: Database): (made: number) => Promise<void> {
  const s = database.schema;
  const hasGrown = growths(manyTasks, 2);
  return async (made) => {
    if (hasGrown(made)) await database.query("", `analyze ${s}.task (id), ${s}.plan (task_id)`);
  };
}

/**
 * Refreshes the statistics of runs. Plans for claims and ends that were cached while the table was empty read the whole table. With four
 * million waiting runs, starts were seconds late; with 15,000 runs, half a millisecond became two. Below `manyRuns`, reading the whole
 * table is fast enough, and the planner chooses it anyway. The planner only needs the number of rows, which 300 sampled rows show as well
 * as the usual 30,000, which took 80 ms each time. While autovacuum processes the table, ANALYZE skips it.
 * @returns a function to be called with the number of runs that were enqueued; it does not wait for the statement
 */
export function growthOfRuns(database: Database): (made: number) => void {
  const hasGrown = growths(manyRuns, 4);
  return (made) => {
    if (!hasGrown(made)) return;
    const sampled = "set local default_statistics_target = 1";
    database.query("", `${sampled}; analyze (skip_locked) ${database.schema}.run (id)`).catch((error) => {
      // The error is only logged, because autovacuum will refresh the statistics later.
      database.log.debug({ error: messageOf(error) }, "the store's planner could not be told that runs are many");
    });
  };
}
