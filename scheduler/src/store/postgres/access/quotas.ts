import {
  type Quota,
  type QuotaLimits,
  type QuotaStore,
  quotaKinds,
  type Waiting,
} from "../../../access/quota-store.ts";
import type { Json } from "../../../base/json.ts";
import { defaultNamespace } from "../../../base/namespace.ts";
import type { Database } from "../database.ts";
import { runState } from "../states.ts";
import { audited } from "./audit.ts";

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
        `select kind, name, enqueues, waiting, bytes, changed_ms as "atMs", author as by, reason as why
         from ${s}.quota order by kind, name`,
      );
      return rows.map(
        ({ kind, atMs, by, why, ...row }) => ({ ...row, kind: quotaKinds[kind], changed: { atMs, by, why } }) as Quota,
      );
    },

    set(kind, name, { enqueues, waiting, bytes }, change) {
      const row = [quotaKinds.indexOf(kind), name];
      const asJson = (given: QuotaLimits): Json => ({ ...given });
      return database.persist(() =>
        database.transaction(async (client) => {
          // Two callers that set one quota are serialised, even if there is no row yet.
          await client.query(`lock table ${s}.quota in share row exclusive mode`);
          const { rows } = await client.query(
            `select enqueues, waiting, bytes from ${s}.quota where kind = $1 and name = $2`,
            row,
          );
          const before = (rows[0] as QuotaLimits | undefined) ?? null;
          const isNone = enqueues === null && waiting === null && bytes === null;
          const after = isNone ? null : { enqueues, waiting, bytes };
          if (JSON.stringify(before) === JSON.stringify(after)) return { changed: false };
          if (after === null) await client.query(`delete from ${s}.quota where kind = $1 and name = $2`, row);
          else
            await client.query(
              `insert into ${s}.quota (kind, name, enqueues, waiting, bytes, changed_ms, author, reason)
               values ($1, $2, $3, $4, $5, $6, $7, $8)
               on conflict (kind, name) do update set enqueues = excluded.enqueues, waiting = excluded.waiting, bytes = excluded.bytes,
                 changed_ms = excluded.changed_ms, author = excluded.author, reason = excluded.reason`,
              [...row, enqueues, waiting, bytes, Math.round(change.nowMs), change.author, change.reason],
            );
          await audited(client, s, {
            atMs: change.nowMs,
            who: change.author,
            act: "limit",
            about: "cluster",
            named: `quota of ${kind} ${name}`,
            why: change.reason,
            before: before && asJson(before),
            after: after && asJson(after),
          });
          return { changed: true };
        }),
      );
    },

    async waiting(namespace, runsMost) {
      const isOf = namespace === defaultNamespace ? "position('/' in t.name) = 0" : "starts_with(t.name, $1 || '/')";
      const [found] = await database.query<Waiting>(
        "",
        `select count(*)::int as runs, coalesce(sum(pg_column_size(payload)), 0)::float8 as bytes
         from (select r.payload from ${s}.task t join ${s}.run r on r.task_id = t.id
               where $1 <> '' and ${isOf} and r.state <> ${runState.claimed} limit $2) of_namespace`,
        [namespace, runsMost],
      );
      return found as Waiting;
    },
  };
}
