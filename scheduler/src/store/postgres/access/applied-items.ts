import type { Change, SqlClient } from "../../../base/change.ts";
import { CarillonError } from "../../../base/errors.ts";
import type { Json } from "../../../base/json.ts";
import type { AppliedItem, ItemKind } from "../../../task/applied-store.ts";
import type { Database } from "../database.ts";
import { audited } from "./audit.ts";

const tables: Readonly<Record<ItemKind, string>> = { alarm: "alarm_rule", hook: "hook" };

export const appliedItems = (
  database: Database,
  kind: ItemKind,
  names: string[],
  bundle: string,
): Promise<AppliedItem[]> =>
  database.query<AppliedItem>(
    `applied-${kind}`,
    `select name, version, content, bundle, applied, author, reason, changed_ms::float8 as "changedMs"
     from ${database.schema}.${tables[kind]} where deleted_ms is null and (name = any($1) or bundle = $2) order by name collate "C"`,
    [names, bundle],
  );

/**
 * Records the bundle of an alarm rule or a hook, and what the bundle's files say, in the transaction that stores its content. Does nothing
 * if the change is not by a bundle: what a bundle's files define stays theirs when a user edits it.
 * @throws PLAN_REFUSED if it belongs to another bundle, which an apply can have stored since the plan was made
 */
export async function markItem<Stored extends { name: string; bundle: string | null }>(
  client: SqlClient,
  s: string,
  { kind, stored, isNew }: { kind: ItemKind; stored: Stored; isNew: boolean },
  { author, reason, nowMs, bundle, applied }: Change,
): Promise<Stored> {
  if (bundle === undefined) return stored;
  const { name, bundle: before } = stored;
  if (before !== null && before !== bundle)
    throw new CarillonError("PLAN_REFUSED", `${name} belongs to the bundle ${before} by now`, {
      hint: "Plan again: carillon diff shows who defines it.",
    });
  await client.query(`update ${s}.${tables[kind]} set bundle = $2, applied = $3 where name = $1`, [
    name,
    bundle,
    JSON.stringify(applied),
  ]);
  if (before === null && !isNew) {
    const entry = { atMs: nowMs, who: author, about: kind, named: name, why: reason, act: "adopt" };
    await audited(client, s, { ...entry, before: { bundle: null }, after: { bundle } as Json });
  }
  return { ...stored, bundle };
}
