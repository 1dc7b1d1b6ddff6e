import type { SqlClient } from "../../../base/change.ts";

export interface Skips {
  /** The amount for the sequences of runs, fences and other eight-byte numbers. */
  numbers: number;
  /** The amount for the sequences of tasks, groups and other four-byte numbers, and for versions. */
  smallNumbers: number;
  terms: number;
  /** The amount for the sequence of bases; a base is the upper half of a lock's fence. */
  bases: number;
}

/**
 * Skips numbers that may have been issued and lost. Other systems use run numbers as idempotency keys, and protected resources store fences
 * and terms: they would mistake a number issued twice for an old one, or for another run. Other processes cache a task's version, and edits
 * are based on it. The leadership becomes vacant; the next leader's term is above any term ever used.
 * @returns the last term that may have been used
 */
export async function skipAhead(client: SqlClient, s: string, schema: string, skips: Skips): Promise<number> {
  const { rows } = await client.query(
    `select sequencename as name, data_type = 'bigint'::regtype as large from pg_sequences
     where schemaname = $1 and sequencename not in ('lock_base', 'lock_fence', 'signals_until') order by 1`,
    [schema],
  );
  for (const { name, large } of rows) {
    const skipped = large ? skips.numbers : skips.smallNumbers;
    if (skipped > 0) await forward(client, `${s}."${name}"`, skipped);
  }
  await forward(client, `${s}.lock_base`, skips.bases);
  await client.query(
    `update ${s}.cluster set lock_era = nextval('${s}.lock_base'),
       version_floor = $1 + greatest(version_floor, (select max(version) from ${s}.plan),
         (select max(version) from ${s}.calendar), (select max(version) from ${s}.secret)),
       grace_floor = $2 + greatest(grace_floor, (select max(fence) from ${s}.grace_lock))`,
    [skips.smallNumbers, skips.numbers],
  );
  await client.query(`update ${s}.user_account set version = version + $1`, [skips.smallNumbers]);
  const { rows: terms } = await client.query(
    `update ${s}.leadership set term = term + $1, session_id = null returning term`,
    [skips.terms],
  );
  return Number(terms[0]?.term);
}

/** Moves one sequence forward by `skipped`. @param sequence the quoted name */
async function forward(client: SqlClient, sequence: string, skipped: number): Promise<void> {
  await client.query(`select setval($1::regclass, last_value + $2::bigint) from ${sequence}`, [sequence, skipped]);
}
