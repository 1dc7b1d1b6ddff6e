/** Reads the audit's rows page by page, through a store or through a server. */
import { parsePlace } from "../../access/audit-chain.ts";
import type { Client } from "../../api/client.ts";
import type { Store } from "../../store/store.ts";
import type { ClusterAudit } from "../nodes/cluster.ts";

const rowsAtOnce = 1_000;

/** Yields all rows. `read` returns the page after the given row; a page of fewer than `rowsAtOnce` rows ends the list. */
async function* walked<Row>(read: (last: Row | undefined) => Promise<Row[]>): AsyncIterable<Row> {
  for (let last: Row | undefined; ; ) {
    const rows = await read(last);
    yield* rows;
    if (rows.length < rowsAtOnce) return;
    last = rows.at(-1);
  }
}

export const storeAudit = ({ audit }: Store): ClusterAudit => ({
  chain: () => audit.chain(),
  chained: () => walked((last) => audit.chained(last?.seq ?? 0, rowsAtOnce)),
  async *older() {
    const rows = walked<{ entryId: number; content: string }>((last) => audit.older(last?.entryId ?? 0, rowsAtOnce));
    for await (const { content } of rows) yield content;
  },
});

export function serverAudit(api: Client): ClusterAudit {
  async function* rows(part: "chain" | "older") {
    for (let cursor: string | undefined; ; ) {
      const { items, next } = await api.listAuditRows({
        part,
        limit: rowsAtOnce,
        ...(cursor === undefined ? {} : { cursor }),
      });
      yield* items;
      if (next === null) return;
      cursor = next;
    }
  }
  return {
    async chain() {
      const { head, anchor, ...rest } = await api.getAuditChain();
      return { head: parsePlace(head, "head"), anchor: parsePlace(anchor, "anchor"), ...rest };
    },
    async *chained() {
      for await (const { seq, hash, content } of rows("chain")) yield { seq: seq ?? 0, hash: hash ?? "", content };
    },
    async *older() {
      for await (const { content } of rows("older")) yield content;
    },
  };
}
