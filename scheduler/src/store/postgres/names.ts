import { withDatabase } from "./with-database.ts";

const tables = {
  tasks: (s: string) => `${s}.task where deleted_ms is null and version > 0 and`,
  calendars: (s: string) => `${s}.calendar where removed_ms is null and`,
  groups: (s: string) => `${s}.worker_group where`,
  keys: (s: string) => `${s}.worker_key where revoked_ms is null and`,
  nodes: (s: string) => `(select node as name from ${s}.session where ended_ms is null) live where`,
};

export type NamedThing = keyof typeof tables;

/**
 * Reads at most `limit` names that begin with `beginning` in one statement, for the completion of typed names. It does not migrate the
 * schema or join the cluster.
 * @param answerMs the time limit, in ms
 */
export const namesIn = (
  place: { url: string; schema: string; answerMs: number },
  thing: NamedThing,
  beginning: string,
  limit: number,
): Promise<string[]> =>
  withDatabase(place, async (database) => {
    const rows = await database.query<{ name: string }>(
      "",
      `select name from ${tables[thing](database.schema)} name like $1 order by name limit $2`,
      [`${beginning.replace(/[\\%_]/g, "\\$&")}%`, limit],
    );
    return rows.map(({ name }) => name);
  });
