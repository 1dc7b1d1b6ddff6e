import { placeText } from "../../access/audit-chain.ts";
import { isoTime } from "../../api/run-json.ts";
import type { Store } from "../../store/store.ts";
import type { Some } from "../call.ts";
import { afterCursor, numberCursor, pageOf } from "./pages.ts";

export function auditCalls(store: Store): Some<"listAudit" | "getAuditChain" | "listAuditRows"> {
  return {
    async listAudit({ cursor, limit, about, named, who, act, since, until, entry }) {
      const filter = {
        ...(about === undefined ? {} : { about }),
        ...(named === undefined ? {} : { named }),
        ...(who === undefined ? {} : { who }),
        ...(act === undefined ? {} : { act }),
        ...(since === undefined ? {} : { sinceMs: Date.parse(since) }),
        ...(until === undefined ? {} : { untilMs: Date.parse(until) }),
        ...(entry === undefined ? {} : { entryId: entry }),
      };
      const rows = await store.audit.list(filter, numberCursor(cursor), limit + 1);
      const item = ({ entryId, atMs, ...entry }: (typeof rows)[number]) => ({
        entry: entryId,
        at: isoTime(atMs),
        ...entry,
      });
      return pageOf(rows, limit, item, ({ entryId }) => [entryId]);
    },

    async getAuditChain() {
      const { head, anchor, ...rest } = await store.audit.chain();
      return { head: placeText(head), anchor: placeText(anchor), ...rest };
    },

    async listAuditRows({ part, cursor, limit }) {
      const after = afterCursor(cursor);
      if (part === "chain")
        return pageOf(
          await store.audit.chained(after, limit + 1),
          limit,
          (row) => row,
          ({ seq }) => [seq],
        );
      const rows = await store.audit.older(after, limit + 1);
      const item = ({ content }: (typeof rows)[number]) => ({ seq: null, hash: null, content });
      return pageOf(rows, limit, item, ({ entryId }) => [entryId]);
    },
  };
}
