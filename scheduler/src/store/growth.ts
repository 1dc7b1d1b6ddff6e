/**
 * Tells the planner of PostgreSQL when rows have become many, each time their number here has doubled. Plans are kept by
 * connections: one made while a table was nearly empty is far off with many rows, until autovacuum comes by up to a minute later.
 */
import { messageOf } from "../errors.ts";
import type { Database } from "./database.ts";

const manyTasks = 1_000;
const manyRuns = 20_000;

/** @returns whether these make them twice as many as when it last said so */
function doublings(many: number): (made: number) => boolean {
  let [known, fresh] = [0, 0];
  return (made) => {
    fresh += made;
    if (fresh < Math.max(many, known)) return false;
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
  const isDoubled = doublings(manyTasks);
  return async (made) => {
    if (isDoubled(made)) await database.query("", `analyze ${s}.task (id), ${s}.plan (task_id)`);
  };
}

/**
 * Plans of claims and ends that were made while the table was empty read it whole, which with four million runs waiting made
 * others start seconds late. How many there are is enough for that, and is as good from 300 rows as from the usual 30,000, which
 * took 80 ms each time; where autovacuum is at work already, it is left to it.
 * @returns to be called with how many were enqueued; nobody waits for what it does
 */
export function growthOfRuns(database: Database): (made: number) => void {
  const isDoubled = doublings(manyRuns);
  return (made) => {
    if (!isDoubled(made)) return;
    const sampled = "set local default_statistics_target = 1";
    database.query("", `${sampled}; analyze (skip_locked) ${database.schema}.run (id)`).catch((error) => {
      // Autovacuum does the same, later.
      database.log.debug({ error: messageOf(error) }, "the store's planner could not be told that runs are many");
    });
  };
}
