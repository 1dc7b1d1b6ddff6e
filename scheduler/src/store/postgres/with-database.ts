import { systemClock } from "../../base/clock.ts";
import { silentLog } from "../../base/log.ts";
import { systemRandom } from "../../base/random.ts";
import { Database, type DatabaseOptions } from "./database.ts";

/**
 * Runs `work` with a `Database` that has one connection and logs nothing, and closes it afterwards; for commands outside a node.
 */
export async function withDatabase<T>(
  options: Pick<DatabaseOptions, "url" | "schema"> & Partial<Pick<DatabaseOptions, "clock" | "answerMs">>,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  const database = new Database({
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    connectionsMax: 1,
    ...options,
  });
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}
