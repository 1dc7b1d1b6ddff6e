import { messageOf } from "../errors.ts";
import type { Database } from "./database.ts";

const manyRuns = 20_000;

/**
 * Tells the planner of PostgreSQL when runs have become many, each time their number here has doubled. Plans are kept by
 * connections: those of claims and ends that were made while the table was empty read it whole until autovacuum came by, which
 * with four million runs waiting made others start seconds late. One column is enough for that; where autovacuum is at work already,
 * it is left to it.
 * @returns to be called with how many were enqueued; nobody waits for what it does
 */
export function growthOf(database: Database): (made: number) => void {
  let [known, fresh] = [0, 0];
  return (made) => {
    fresh += made;
    if (fresh < Math.max(manyRuns, known)) return;
    known += fresh;
    fresh = 0;
    database.query("", `analyze (skip_locked) ${database.schema}.run (id)`).catch((error) => {
      // Autovacuum does the same, later.
      database.log.debug({ error: messageOf(error) }, "the store's planner could not be told that runs are many");
    });
  };
}
