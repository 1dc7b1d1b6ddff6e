import { systemClock } from "../clock.ts";
import { silentLog } from "../log.ts";
import { systemRandom } from "../random.ts";
import type { Change } from "../store.ts";
import { audited } from "./audit.ts";
import { Database } from "./database.ts";

/** More than is drawn between a backup and the loss of what came after it: of numbers, hours at the highest rates. */
const skippedNumbers = 1_000_000_000;
const skippedTerms = 1_000_000;
/** A base is the upper half of a lock's fence. */
const skippedBases = 1_000;

export interface Skipped {
  runId: number;
  fence: number;
  term: number;
}

/**
 * After a restore: what the lost time may have drawn is not drawn again. Run numbers served others as idempotency keys, fences and
 * terms stand in what they protect; a number that came twice would be taken for an old one, or for another's.
 * @returns the first that may be drawn from now on
 */
export async function skipNumbers(url: string, schema: string, change: Change): Promise<Skipped> {
  const options = { url, schema, clock: systemClock, random: systemRandom, log: silentLog, connectionsMax: 1 };
  const database = new Database(options);
  const s = database.schema;
  try {
    return await database.transaction(async (client) => {
      const { rows } = await client.query(
        `select sequencename as name from pg_sequences
         where schemaname = $1 and data_type = 'bigint'::regtype and sequencename not in ('lock_base', 'lock_fence')
         order by 1`,
        [schema],
      );
      for (const { name } of rows) {
        const sequence = `${s}."${name}"`;
        await client.query(`select setval($1::regclass, last_value + $2::bigint) from ${sequence}`, [
          sequence,
          skippedNumbers,
        ]);
      }
      await client.query(`select setval('${s}.lock_base', last_value + $1::bigint) from ${s}.lock_base`, [
        skippedBases,
      ]);
      await client.query(`update ${s}.cluster set lock_era = nextval('${s}.lock_base')`);
      // Whoever led does not: the next one begins a term above all that there can have been.
      const { rows: terms } = await client.query(
        `update ${s}.leadership set term = term + $1, session_id = null returning term`,
        [skippedTerms],
      );
      const { rows: next } = await client.query(
        `select r.last_value + 1 as "runId", f.last_value + 1 as fence from ${s}.run_id r, ${s}.fence f`,
      );
      const skipped = {
        ...{ runId: Number(next[0]?.runId), fence: Number(next[0]?.fence) },
        term: Number(terms[0]?.term) + 1,
      };
      await audited(client, s, {
        ...{ atMs: change.nowMs, who: change.author, act: "restore", about: "cluster" as const, named: schema },
        ...{ before: null, after: skipped, why: change.reason },
      });
      return skipped;
    });
  } finally {
    await database.close();
  }
}
