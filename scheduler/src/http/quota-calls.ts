import { type Principal, Reach } from "../access/access.ts";
import { checkQuota, everyOther, noLimits, type Quota, type QuotaStore } from "../access/quota-store.ts";
import { isoTime } from "../api/run-json.ts";
import { CarillonError } from "../base/errors.ts";
import type { Some } from "./call.ts";
import { changeOf } from "./calls/changes.ts";
import { namedAfter, pageOf } from "./calls/pages.ts";
import { limitsStore, type Quotas } from "./quotas.ts";

/** @param streamsOf returns how many event streams this server sends to a user */
export function quotaCalls(
  store: QuotaStore,
  quotas: Quotas,
  streamsOf: (user: string) => number,
): Some<"listQuotas" | "getQuota" | "setQuota"> {
  const usedOf = async (quota: Quota) => {
    const { kind, name } = quota;
    if (name === everyOther) return null;
    const used = { ...noLimits, enqueues: quotas.used(quota) };
    if (kind === "user") return { ...used, streams: streamsOf(name) };
    if (kind === "key") return { ...used, sessions: await store.sessions(name) };
    if (!limitsStore(quota)) return used;
    const { found, added } = await quotas.taken(name, quota);
    return { ...used, waiting: found.runs + added.runs, bytes: found.bytes + added.bytes, history: found.history };
  };
  const shown = async (quota: Quota) => {
    const { changed, ...rest } = quota;
    const used = await usedOf(quota);
    return { ...rest, used, changed: { at: isoTime(changed.atMs), by: changed.by, why: changed.why } };
  };
  return {
    async listQuotas({ cursor, limit }, { who, reach }) {
      const isSeen = seenBy(who, reach);
      const rows = namedAfter(
        (await store.list()).map((row) => ({ ...row, quota: row, name: `${row.kind} ${row.name}` })),
        cursor,
      ).filter(({ quota }) => isSeen(quota));
      const page = pageOf(
        rows,
        limit,
        ({ quota }) => quota,
        ({ name }) => [name],
      );
      return { ...page, items: await Promise.all(page.items.map(shown)) };
    },

    async getQuota({ kind, name }) {
      const quota = (await store.list()).find((one) => one.kind === kind && one.name === name);
      if (quota) return shown(quota);
      throw new CarillonError("QUOTA_UNKNOWN", `the ${kind} ${JSON.stringify(name)} has no quota of its own`, {
        hint: `See those there are: carillon quotas list. That of "${everyOther}" holds for each that has none.`,
      });
    },

    async setQuota({ kind, name, reason, ...given }, call) {
      checkQuota(kind, name, given);
      const { changed } = await store.set(kind, name, given, changeOf(call, reason));
      quotas.forget();
      return { kind, name, ...given, changed };
    },
  };
}

/**
 * Returns a function that tells whether the caller may view a quota. A caller with access to all namespaces sees all quotas of users and
 * namespaces. Other callers see the default quotas, their own, and those of namespaces that they may view. A key's quota is visible to
 * users who may list the key.
 */
function seenBy(who: Principal | null, reach: Reach): (quota: Quota) => boolean {
  const ofKeys = who === null ? undefined : new Reach(who, "admin");
  return ({ kind, name }) => {
    if (name === everyOther) return true;
    if (kind === "key") return ofKeys?.has(name) ?? false;
    return reach.namespaces === null || (kind === "user" ? name === who?.user : reach.has(`${name}/`));
  };
}
