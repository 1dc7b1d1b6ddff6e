import type { AuditStore } from "../../../access/audit.ts";
import { type AuditChain, type ChainPlace, placeText } from "../../../access/audit-chain.ts";
import type { Change } from "../../../base/change.ts";
import type { Database } from "../database.ts";
import { audited } from "./audit.ts";

/** The maximum number of chained rows that one transaction deletes, because other changes wait for the transaction. */
const prunedAtOnce = 5_000;

/**
 * SQL condition: a commit has left the row of the audit log without a place in the chain. The limit on `id` skips the rows from before the
 * chain, because there may be millions of them.
 */
export const skippedSql = (s: string): string =>
  `seq is null and hash is not null and id > (select older_until from ${s}.audit_chain)`;

const hex = (column: string) => `encode(${column}, 'hex')`;

export function auditChainStore(
  database: Database,
): Pick<AuditStore, "chain" | "chained" | "chainSkipped" | "older" | "prune"> {
  const s = database.schema;
  const chainSkipped = async () => {
    const [found] = await database.query<{ any: boolean }>(
      "audit-skipped",
      `select exists (select from ${s}.audit where ${skippedSql(s)}) as any`,
    );
    if (!found?.any) return;
    await database.query(
      "audit-chain-skipped",
      `select ${s}.chain_rows(held.chain, true) from (select c as chain from ${s}.audit_chain c for update) held`,
    );
  };
  return {
    chainSkipped,

    async chain() {
      await chainSkipped();
      const [row] = await database.query<
        { head: ChainPlace; anchor: ChainPlace } & Omit<AuditChain, "head" | "anchor">
      >(
        "audit-chain",
        `select json_build_object('seq', seq, 'hash', ${hex("hash")}) as head,
                json_build_object('seq', anchor_seq, 'hash', ${hex("anchor_hash")}) as anchor, older_rows as "olderRows",
                (select count(*) from ${s}.audit where seq is null and hash is null and id > older_until) as unchained
         from ${s}.audit_chain`,
      );
      return row as AuditChain;
    },

    chained: (afterSeq, limit) =>
      database.query(
        "audit-chained",
        `select seq, ${hex("hash")} as hash, ${s}.audit_content(a) as content from ${s}.audit a where seq > $1 order by seq limit $2`,
        [afterSeq, limit],
      ),

    older: (afterEntry, limit) =>
      database.query(
        "audit-older",
        `select id as "entryId", ${s}.audit_content(a) as content from ${s}.audit a
         where seq is null and id > $1 and id <= (select older_until from ${s}.audit_chain) order by id limit $2`,
        [afterEntry, limit],
      ),

    prune: (beforeMs, change) => prune(database, Math.round(beforeMs), change),
  };
}

function prune(database: Database, beforeMs: number, { author, reason, nowMs }: Change): Promise<number> {
  const s = database.schema;
  return database.transaction(async (client) => {
    const { rows: chains } = await client.query(
      `select anchor_seq as seq, ${hex("anchor_hash")} as hash, older_rows, older_until from ${s}.audit_chain for update`,
    );
    const {
      seq,
      hash,
      older_rows: olderRows,
      older_until: olderUntil,
    } = chains[0] as {
      seq: number;
      hash: string;
      older_rows: number | null;
      older_until: number;
    };
    let removed = 0;
    // The rows from before the chain have one common hash, so they are deleted together and before all other rows.
    if (olderRows !== null) {
      const { rows: young } = await client.query(
        `select from ${s}.audit where seq is null and id <= $1 and at_ms >= $2 limit 1`,
        [olderUntil, beforeMs],
      );
      if (young.length > 0) return 0;
      const { rows } = await client.query(`delete from ${s}.audit where seq is null and id <= $1 returning id`, [
        olderUntil,
      ]);
      removed = rows.length;
    }
    const { rows } = await client.query(
      `delete from ${s}.audit where seq > $1 and seq < coalesce(
         (select min(seq) from ${s}.audit where seq > $1 and at_ms >= $2), (select seq from ${s}.audit_chain)) and seq <= $1 + $3::bigint
       returning seq, ${hex("hash")} as hash`,
      [seq, beforeMs, prunedAtOnce],
    );
    removed += rows.length;
    if (removed === 0) return 0;
    const places = [{ seq, hash }, ...(rows as unknown as ChainPlace[])];
    const anchor = places.reduce((a, b) => (Number(b.seq) > Number(a.seq) ? b : a));
    await client.query(
      `update ${s}.audit_chain set anchor_seq = $1, anchor_hash = decode($2, 'hex'), older_rows = null`,
      [anchor.seq, anchor.hash],
    );
    const entry = { atMs: nowMs, who: author, act: "prune", about: "audit" as const, named: "audit" };
    const after = { anchor: placeText(anchor), rows: removed, before: new Date(beforeMs).toISOString() };
    await audited(client, s, { ...entry, before: null, after, why: reason });
    return removed;
  });
}
