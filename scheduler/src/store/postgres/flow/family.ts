import type { RunFamily } from "../../../run/flow.ts";
import type { Database } from "../database.ts";
import { asRunRecord } from "../enqueue/run-rows.ts";
import { runRows } from "../runs/whole-runs.ts";

/** How many levels above a run are read, and below each run. A chain of runs has a level for each link. */
const levelsMost = 10;

interface Link {
  id: number;
  parentId: number | null;
  inputs: number[] | null;
}

/**
 * Reads the runs that led to a run, then those that it made, then the others that its ancestors made, one statement for each level, until
 * there are `limit`. A run that follows several runs has no parent, so it is found from below and not from above: no index has the inputs.
 * @returns the runs by number; empty if the run does not exist
 */
export async function family(database: Database, runId: number, limit: number): Promise<RunFamily> {
  const s = database.schema;
  const links = new Map<number, Link>();
  let more = false;
  const linksSql = (where: string) =>
    ["run", "run_history"]
      .map((table) => `select id, parent_id as "parentId", inputs from ${s}.${table} where ${where}`)
      .join(" union all ");

  /** Adds the rows for which there is room. */
  const add = (rows: Link[]) => {
    const fresh = rows.filter(({ id }) => !links.has(id));
    const room = fresh.slice(0, limit - links.size);
    more ||= room.length < fresh.length;
    for (const link of room) links.set(link.id, link);
    return room;
  };

  let above = [runId];
  for (let level = 0; above.length > 0 && level <= levelsMost; level++) {
    const found = await database.query<Link>("family-above", linksSql("id = any($1)"), [above]);
    const origins = add(found).flatMap(({ parentId, inputs }) => [
      ...(parentId === null ? [] : [parentId]),
      ...(inputs ?? []),
    ]);
    above = [...new Set(origins)].filter((id) => !links.has(id));
  }
  more ||= above.length > 0;

  const addBelow = async (of: number[]) => {
    for (let level = 0, parents = of; parents.length > 0; level++) {
      const room = level < levelsMost ? limit - links.size : 0;
      const rows = await database.query<Link>(
        "family-below",
        `select * from (${linksSql("parent_id = any($1)")}) x where not id = any($2) order by id limit $3`,
        [parents, [...links.keys()], room + 1],
      );
      more ||= rows.length > room;
      if (room === 0) return;
      parents = add(rows.slice(0, room)).map(({ id }) => id);
    }
  };
  const ancestors = [...links.keys()].filter((id) => id !== runId);
  await addBelow(links.has(runId) ? [runId] : []);
  await addBelow(ancestors);

  const rows = await runRows(database, [...links.keys()], true);
  const runs = [...rows.values()].map((row) => {
    const { parentId = null, inputs = null } = links.get(row.id) ?? {};
    return { run: asRunRecord(row), parentId, inputs: inputs ?? [] };
  });
  return { runs: runs.sort((a, b) => a.run.runId - b.run.runId), more };
}
