import { type RuleKind, thresholdsOf } from "../../../alarms/stored-rules.ts";
import { formatDuration } from "../../../base/duration.ts";
import type { HeldSnapshot } from "../../figures.ts";
import { heldSnapshotsSql } from "../cluster/snapshots.ts";
import type { Find, Found } from "./watched.ts";

/** The most nodes, snapshots or credentials that an alarm names. */
const named = 10;
/**
 * What has expired stays in the alarm for this time, in ms, unless it is replaced, or a token is revoked. The janitor revokes expired worker
 * keys itself, so their revocation after the expiry does not count; an operator can acknowledge the alarm.
 */
const expiredShownMs = 7 * 86_400_000;

const spanText = (ms: number): string =>
  formatDuration(ms < 10_000 ? Math.round(ms / 100) * 100 : Math.round(ms / 1_000) * 1_000);

/** Returns one finding of the cluster, which names its parts; none if there are none. */
const findingOf = (words: string, parts: readonly string[]): Found[] => {
  if (parts.length === 0) return [];
  const more = parts.length > named ? `, and ${parts.length - named} more` : "";
  return [
    { subject: "", count: parts.length, text: `${words}: ${parts.slice(0, named).join(", ")}${more}`, runId: null },
  ];
};

/** Finds processes whose heartbeats wait long for the store. */
const store: Find = async ({ client, s, rule }) => {
  const { rows } = await client.query(
    `select node, store_wait_ms as "waitMs" from ${s}.session where ended_ms is null and store_wait_ms > $1 order by store_wait_ms desc, node`,
    [thresholdsOf(rule.content).longerMs],
  );
  return findingOf(
    "half of the last statements took longer",
    rows.map(({ node, waitMs }) => `${node} ${spanText(Number(waitMs))}`),
  );
};

/** Finds the oldest holder of each kind that prevents dead rows from being removed. */
const snapshot: Find = async ({ client, rule }) => {
  const { afterMs, more } = thresholdsOf(rule.content);
  const { rows } = await client.query(heldSnapshotsSql);
  const held = rows as unknown as HeldSnapshot[];
  const isOld = ({ ms, transactions }: HeldSnapshot) => (ms === null ? transactions > (more ?? 0) : ms > afterMs);
  return findingOf(
    "dead rows are kept by",
    held
      .filter(isOld)
      .map(
        ({ kind, holder, ms, transactions }) =>
          `${kind} (${holder}) for ${ms === null ? `${transactions} transactions` : spanText(ms)}`,
      ),
  );
};

/** Finds processes whose coordination service does not show their session, so that they rely on the store. */
const coordination: Find = async ({ client, s, now, rule }) => {
  const { rows } = await client.query(
    `select node, ($1::bigint - uncoordinated_ms)::float8 as "forMs" from ${s}.session
     where ended_ms is null and settings->>'coordination' is not null and uncoordinated_ms < $1::bigint - $2::bigint
     order by uncoordinated_ms, node`,
    [now, thresholdsOf(rule.content).afterMs],
  );
  return findingOf(
    "without coordination service",
    rows.map(({ node, forMs }) => `${node} for ${spanText(Number(forMs))}`),
  );
};

/**
 * Finds tokens, worker keys and certificates that expire soon or expired not long ago. Those that were made for no longer than the rule's
 * time are meant to expire, so they do not count.
 */
const expiring: Find = async ({ client, s, now, rule }) => {
  const { beforeMs } = thresholdsOf(rule.content);
  const { rows } = await client.query(
    `select what, ends_ms::float8 as "endsMs" from (
       select format('token %s of %s', t.name, u.name) as what, t.expires_ms as ends_ms, t.created_ms as begun_ms
       from ${s}.token t join ${s}.user_account u on u.id = t.user_id
       where t.revoked_ms is null and u.removed_ms is null and u.disabled_ms is null
       union all
       select 'worker key ' || k.name, k.expires_ms, k.created_ms from ${s}.worker_key k
       where k.expires_ms is not null and (k.revoked_ms is null or k.revoked_ms >= k.expires_ms)
         and not exists (select from ${s}.worker_key n where n.name = k.name and n.id > k.id)
       union all
       select format('certificate %s of %s', c->>'file', o.node), (c->>'endsMs')::bigint, (c->>'beginsMs')::bigint
       from ${s}.session o cross join jsonb_array_elements(o.settings->'certificates') c where o.ended_ms is null) x
     where ends_ms < $1::bigint + $2::bigint and ends_ms > $1::bigint - ${expiredShownMs}
       and coalesce(ends_ms - begun_ms > $2::bigint, true)
     order by ends_ms, what`,
    [now, beforeMs],
  );
  return findingOf(
    "expires soon or has expired",
    rows.map(({ what, endsMs }) => `${what} at ${new Date(Number(endsMs)).toISOString()}`),
  );
};

/** The functions of the kinds that examine the cluster and not its tasks. */
export const clusterFinders: Record<Extract<RuleKind, "store" | "snapshot" | "coordination" | "expiring">, Find> = {
  store,
  snapshot,
  coordination,
  expiring,
};
