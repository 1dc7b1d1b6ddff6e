import { checkQuota, everyOther, type Quota, type QuotaStore } from "../access/quota-store.ts";
import { isoTime } from "../api/run-json.ts";
import type { Some } from "./call.ts";
import { changeOf } from "./calls/changes.ts";
import { namedAfter, pageOf } from "./calls/pages.ts";
import type { Quotas } from "./quotas.ts";

export function quotaCalls(store: QuotaStore, quotas: Quotas): Some<"listQuotas" | "setQuota"> {
  const usedOf = async (quota: Quota) => {
    if (quota.name === everyOther) return null;
    const enqueues = quotas.used(quota);
    if (quota.waiting === null && quota.bytes === null) return { enqueues, waiting: null, bytes: null };
    const { found, added } = await quotas.waits(quota.name, quota);
    return { enqueues, waiting: found.runs + added.runs, bytes: found.bytes + added.bytes };
  };
  return {
    async listQuotas({ cursor, limit }, { who, reach }) {
      const isSeen = ({ kind, name }: Quota) =>
        name === everyOther ||
        (kind === "user" ? reach.namespaces === null || name === who?.user : reach.has(`${name}/`));
      const rows = namedAfter(
        (await store.list()).map((row) => ({ ...row, quota: row, name: `${row.kind} ${row.name}` })),
        cursor,
      ).filter(({ quota }) => isSeen(quota));
      const used = new Map<Quota, Awaited<ReturnType<typeof usedOf>>>();
      for (const { quota } of rows.slice(0, limit)) used.set(quota, await usedOf(quota));
      const item = ({ quota }: (typeof rows)[number]) => {
        const { changed, ...rest } = quota;
        return {
          ...rest,
          used: used.get(quota) ?? null,
          changed: { at: isoTime(changed.atMs), by: changed.by, why: changed.why },
        };
      };
      return pageOf(rows, limit, item, ({ name }) => [name]);
    },

    async setQuota({ kind, name, enqueues, waiting, bytes, reason }, call) {
      const given = { enqueues, waiting, bytes };
      checkQuota(kind, name, given);
      const { changed } = await store.set(kind, name, given, changeOf(call, reason));
      quotas.forget();
      return { kind, name, ...given, changed };
    },
  };
}
