import { systemClock } from "../../base/clock.ts";
import { silentLog } from "../../base/log.ts";
import { systemRandom } from "../../base/random.ts";
import { Database } from "./database.ts";

const tables = {
  tasks: "task where deleted_ms is null and version > 0 and",
  calendars: "calendar where removed_ms is null and",
  groups: "worker_group where",
  keys: "worker_key where revoked_ms is null and",
} as const;

export type NamedThing = keyof typeof tables;

/**
 * Names that begin so, by one statement, without migrating or counting as anybody: for whoever types one.
 * @param answerMs gives up after this
 */
export async function namesIn(
  { url, schema, answerMs }: { url: string; schema: string; answerMs: number },
  thing: NamedThing,
  beginning: string,
  limit: number,
): Promise<string[]> {
  const parts = { clock: systemClock, random: systemRandom, log: silentLog, connectionsMax: 1 };
  const database = new Database({ url, schema, answerMs, ...parts });
  try {
    const rows = await database.query<{ name: string }>(
      "",
      `select name from ${database.schema}.${tables[thing]} name like $1 order by name limit $2`,
      [`${beginning.replace(/[\\%_]/g, "\\$&")}%`, limit],
    );
    return rows.map(({ name }) => name);
  } finally {
    await database.close();
  }
}
