import {
  everyOther,
  limitNames,
  type Quota,
  type QuotaLimits,
  type QuotaStore,
  quotaKinds,
  type Taken,
} from "../../../access/quota-store.ts";
import type { Json } from "../../../base/json.ts";
import { limits } from "../../../base/limits.ts";
import { defaultNamespace } from "../../../base/namespace.ts";
import type { Database } from "../database.ts";
import { runState } from "../states.ts";
import { audited } from "./audit.ts";
import { measureHistory } from "./history-size.ts";

interface Row extends QuotaLimits {
  kind: number;
  name: string;
  atMs: number;
  by: string;
  why: string;
}

export function quotaStore(database: Database): QuotaStore {
  const s = database.schema;
  return {
    async list() {
      const rows = await database.query<Row>(
        "quotas",
        `select kind, name, ${limitNames.join(", ")}, changed_ms as "atMs", author as by, reason as why
         from ${s}.quota order by kind, name`,
      );
      return rows.map(
        ({ kind, atMs, by, why, ...row }) => ({ ...row, kind: quotaKinds[kind], changed: { atMs, by, why } }) as Quota,
      );
    },

    set(kind, name, given, change) {
      const row = [quotaKinds.indexOf(kind), name];
      return database.persist(() =>
        database.transaction(async (client) => {
          // The table is locked, so that two callers that set the same quota run one after the other even if there is no row to lock yet.
          await client.query(`lock table ${s}.quota in share row exclusive mode`);
          const { rows } = await client.query(
            `select ${limitNames.join(", ")} from ${s}.quota where kind = $1 and name = $2`,
            row,
          );
          const asJson = (limits: QuotaLimits): Json =>
            Object.fromEntries(
              limitNames.flatMap((column) => (limits[column] === null ? [] : [[column, limits[column]]])),
            );
          const before = rows[0] ? asJson(rows[0] as unknown as QuotaLimits) : null;
          const isNone = limitNames.every((column) => given[column] === null);
          const after = isNone ? null : asJson(given);
          if (JSON.stringify(before) === JSON.stringify(after)) return { changed: false };
          if (isNone) await client.query(`delete from ${s}.quota where kind = $1 and name = $2`, row);
          else
            await client.query(
              `insert into ${s}.quota (kind, name, changed_ms, author, reason, ${limitNames.join(", ")})
               values ($1, $2, $3, $4, $5, ${limitNames.map((_, at) => `$${at + 6}`).join(", ")})
               on conflict (kind, name) do update set changed_ms = excluded.changed_ms, author = excluded.author, reason = excluded.reason,
                 ${limitNames.map((column) => `${column} = excluded.${column}`).join(", ")}`,
              [
                ...row,
                Math.round(change.nowMs),
                change.author,
                change.reason,
                ...limitNames.map((column) => given[column]),
              ],
            );
          await audited(client, s, {
            atMs: change.nowMs,
            who: change.author,
            act: "limit",
            about: "cluster",
            named: `quota of ${kind} ${name}`,
            why: change.reason,
            before,
            after,
          });
          return { changed: true };
        }),
      );
    },

    async taken(namespace, runsMost) {
      const isOf = namespace === defaultNamespace ? "position('/' in t.name) = 0" : "starts_with(t.name, $1 || '/')";
      const [found] = await database.query<Taken>(
        "",
        `select count(*)::int as runs, coalesce(sum(pg_column_size(payload)), 0)::float8 as bytes,
           coalesce((select bytes from ${s}.history_size where namespace = $1), 0)::float8 as history
         from (select r.payload from ${s}.task t join ${s}.run r on r.task_id = t.id
               where ${isOf} and r.state <> ${runState.claimed} limit $2) of_namespace`,
        [namespace, runsMost],
      );
      return found as Taken;
    },

    measureHistory: (nowMs, everyMs) => measureHistory(database, nowMs, everyMs),

    async sessions(key) {
      const [found] = await database.query<{ live: number }>(
        "quota-sessions",
        `select count(*)::int as live from ${s}.session o join ${s}.worker_key k on k.id = o.key_id
         where o.ended_ms is null and k.name = $1 and k.revoked_ms is null`,
        [key],
      );
      return found?.live ?? 0;
    },
  };
}

/** Returns SQL for the maximum number of live sessions of a worker key. @param key an SQL expression for the key's id */
export const sessionsMostSql = (s: string, key: string): string => `coalesce(
  (select coalesce(q.sessions, ${limits.sessionsPerKey}) from ${s}.quota q join ${s}.worker_key k on k.id = ${key} and q.name in (k.name, '${everyOther}')
   where q.kind = ${quotaKinds.indexOf("key")} order by q.name = '${everyOther}' limit 1), ${limits.sessionsPerKey})`;
