import type { AlarmStore } from "../../../alarms/alarm-store.ts";
import { alarmRules } from "../../../alarms/alarms.ts";
import type { RuleContent, RuleKind, StoredRule } from "../../../alarms/stored-rules.ts";
import type { Change, SqlClient } from "../../../base/change.ts";
import { CarillonError } from "../../../base/errors.ts";
import type { Json } from "../../../base/json.ts";
import { limits } from "../../../base/limits.ts";
import { meant } from "../../../base/nearest.ts";
import { markItem } from "../access/applied-items.ts";
import { audited } from "../access/audit.ts";
import type { Database } from "../database.ts";
import { lookLock } from "./watched.ts";

type Rules = Pick<AlarmStore, "rules" | "rule" | "createRule" | "replaceRule" | "removeRule">;

const fields = `name, version, content, author, reason, changed_ms::float8 as "changedMs", bundle`;
/** SQL condition: the rule exists and is enabled. */
export const enabledSql = "deleted_ms is null and content->>'enabled' is distinct from 'false'";
/** Kinds of rules that take findings from the tasks' counters. */
export const countedKinds: readonly RuleKind[] = ["failed", "unfired"];

export function ruleStore(database: Database): Rules {
  const s = database.schema;
  const rules = () =>
    database.query<StoredRule>(
      "alarm-rules",
      `select ${fields} from ${s}.alarm_rule where deleted_ms is null order by name collate "C"`,
    );

  /** Runs a change in a transaction while no process evaluates the rules, so that a rule that is turned off keeps no open alarm. */
  const changing = <Result>(work: (client: SqlClient) => Promise<Result>): Promise<Result> =>
    database.transaction(async (client) => {
      await client.query("select pg_advisory_xact_lock(hashtext($1))", [lookLock(s)]);
      return work(client);
    });

  const present = async (client: SqlClient, name: string, expected: number | null): Promise<StoredRule> => {
    const { rows } = await client.query(
      `select ${fields} from ${s}.alarm_rule where deleted_ms is null order by name collate "C"`,
    );
    const all = rows as unknown as StoredRule[];
    const found = all.find((rule) => rule.name === name);
    if (!found) throw ruleUnknown(name, namesOf(all));
    if (expected !== null && expected !== found.version)
      throw new CarillonError(
        "ALARM_RULE_STALE",
        `the alarm rule ${name} is at version ${found.version}; this change was made from version ${expected}`,
        { hint: "Read it again, look at what changed, and repeat the change." },
      );
    return found;
  };

  const put = (
    client: SqlClient,
    { author, reason, nowMs }: Change,
    entry: { act: string; named: string; before: RuleContent | null; after: RuleContent | null },
  ) => {
    const [before, after] = [entry.before, entry.after] as unknown as [Json, Json];
    return audited(client, s, { ...entry, before, after, atMs: nowMs, who: author, about: "alarm", why: reason });
  };

  return {
    rules,

    async rule(name) {
      const all = await rules();
      const found = all.find((rule) => rule.name === name);
      if (!found) throw ruleUnknown(name, namesOf(all));
      return found;
    },

    createRule: (name, content, change) =>
      changing(async (client) => {
        const { rows: many } = await client.query(`select from ${s}.alarm_rule where deleted_ms is null limit $1`, [
          limits.alarmRules,
        ]);
        if (many.length >= limits.alarmRules)
          throw new CarillonError("OPTION_INVALID", `there are ${limits.alarmRules} alarm rules already`, {
            hint: "Each check evaluates all of them. A rule can cover many tasks: see its scope.",
          });
        const { rows } = await client.query(
          `insert into ${s}.alarm_rule as r (name, version, content, author, reason, changed_ms) values ($1, 1, $2, $3, $4, $5)
           on conflict (name) do update set version = r.version + 1, content = excluded.content, author = excluded.author,
             reason = excluded.reason, changed_ms = excluded.changed_ms, deleted_ms = null, bundle = null, applied = null
             where r.deleted_ms is not null
           returning ${fields}`,
          [name, JSON.stringify(content), change.author, change.reason, Math.round(change.nowMs)],
        );
        if (rows.length === 0)
          throw new CarillonError("ALARM_RULE_EXISTS", `there is an alarm rule ${name} already`, {
            hint: "Give this one another name, or replace that one.",
          });
        await put(client, change, { act: "create", named: name, before: null, after: content });
        return markItem(client, s, { kind: "alarm", stored: rows[0] as unknown as StoredRule, isNew: true }, change);
      }),

    replaceRule: (name, content, change, expected) =>
      changing(async (client) => {
        const before = await present(client, name, expected);
        const { rows } = await client.query(
          `update ${s}.alarm_rule set version = version + 1, content = $2, author = $3, reason = $4, changed_ms = $5
           where name = $1 and content <> $2::jsonb returning ${fields}`,
          [name, JSON.stringify(content), change.author, change.reason, Math.round(change.nowMs)],
        );
        // The stored rule already has this content.
        if (rows.length === 0) return markItem(client, s, { kind: "alarm", stored: before, isNew: false }, change);
        // The former counts of queues, and the versions that were found, may be of other tasks.
        await forget(client, s, name, ["alarm_queue", "alarm_version"]);
        if (content.enabled === false) await end(client, s, name, change.nowMs);
        await put(client, change, { act: "edit", named: name, before: before.content, after: content });
        return markItem(client, s, { kind: "alarm", stored: rows[0] as unknown as StoredRule, isNew: false }, change);
      }),

    removeRule: (name, change, expected) =>
      changing(async (client) => {
        const before = await present(client, name, expected);
        await client.query(
          `update ${s}.alarm_rule set deleted_ms = $2, bundle = null, applied = null where name = $1`,
          [name, Math.round(change.nowMs)],
        );
        await end(client, s, name, change.nowMs);
        await put(client, change, { act: "remove", named: name, before: before.content, after: null });
      }),
  };
}

/** Ends the open alarms of a rule that is off or removed, without a message. */
async function end(client: SqlClient, s: string, name: string, nowMs: number): Promise<void> {
  await forget(client, s, name, ["alarm_incident", "alarm_queue", "alarm_version"]);
  await client.query(`update ${s}.alarm set cleared_ms = $2 where rule = $1 and cleared_ms is null`, [
    name,
    Math.round(nowMs),
  ]);
  // Without a rule of a counted kind, these saved counter values would become outdated, and a later rule would report old failures as new.
  await client.query(
    `delete from ${s}.alarm_rule_seen where not exists (select from ${s}.alarm_rule where ${enabledSql} and content->>'kind' = any($1))`,
    [countedKinds],
  );
}

async function forget(client: SqlClient, s: string, name: string, tables: readonly string[]): Promise<void> {
  for (const table of tables) await client.query(`delete from ${s}.${table} where rule = $1`, [name]);
}

/** @throws ALARM_UNKNOWN if neither a built-in nor a stored rule has this name */
export async function checkRuleThere(client: SqlClient, s: string, name: string): Promise<void> {
  if ((alarmRules as readonly string[]).includes(name)) return;
  const { rows } = await client.query(`select name from ${s}.alarm_rule where deleted_ms is null`);
  const names = rows.map((row) => String(row.name));
  if (!names.includes(name)) throw ruleUnknown(name, [...alarmRules, ...names]);
}

const namesOf = (rules: readonly StoredRule[]): string[] => rules.map(({ name }) => name);

const ruleUnknown = (name: string, names: readonly string[]): CarillonError =>
  new CarillonError("ALARM_UNKNOWN", `there is no alarm rule ${name}${meant(name, names)}`, {
    hint: "`carillon alarms rules list` shows the rules; those of the nodes' settings are changed there.",
  });
