/**
 * Tells the planner of PostgreSQL when rows have become many, each time their number here has grown by so much. Plans are kept by
 * connections: one made while a table was nearly empty is far off with many rows, until autovacuum comes by up to a minute later.
 */
import { messageOf } from "../../base/errors.ts";
import type { Database } from "./database.ts";

const manyTasks = 1_000;
const manyRuns = 4_000;

/** @returns whether these make them so many times as many as when it last said so */
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
 * A claim's plan made while there were a few tasks compared each claim with each of 100,000: 360 ms for 2,000 claims, in the
 * first minute of a new cluster.
 * @returns to be called with how many were made
 */
export function growthOfTasks(database: Database): (made: number) => Promise<void> {
  const s = database.schema;
  const hasGrown = growths(manyTasks, 2);
  return async (made) => {
    if (hasGrown(made)) await database.query("", `analyze ${s}.task (id), ${s}.plan (task_id)`);
  };
}

/**
 * Plans of claims and ends that were made while the table was empty read it whole, which with four million runs waiting made
 * others start seconds late, and beside 15,000 made of half a millisecond two. (Below the first bound it is read soon enough, and
 * what the planner takes all the same.) How many there are is all it must know, and is as good from 300 rows as from the usual 30,000,
 * which took 80 ms each time; where autovacuum is at work already, it is left to it.
 * @returns to be called with how many were enqueued; nobody waits for what it does
 */
export function growthOfRuns(database: Database): (made: number) => void {
  const hasGrown = growths(manyRuns, 4);
  return (made) => {
    if (!hasGrown(made)) return;
    const sampled = "set local default_statistics_target = 1";
    database.query("", `${sampled}; analyze (skip_locked) ${database.schema}.run (id)`).catch((error) => {
      // Autovacuum does the same, later.
      database.log.debug({ error: messageOf(error) }, "the store's planner could not be told that runs are many");
    });
  };
}
