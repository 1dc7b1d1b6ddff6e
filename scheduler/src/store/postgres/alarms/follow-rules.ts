import type { Finding } from "../../../alarms/alarms.ts";
import {
  checkRule,
  clusterKinds,
  isHeldBack,
  type RuleContent,
  type RuleKind,
  ruleText,
  type StoredRule,
  thresholdsOf,
} from "../../../alarms/stored-rules.ts";
import type { SqlClient } from "../../../base/change.ts";
import { parseDuration } from "../../../base/duration.ts";
import { isCarillonError } from "../../../base/errors.ts";
import { defaultNamespace, namespaceOf } from "../../../base/namespace.ts";
import type { Database } from "../database.ts";
import { askedOf, counted, findingOf, markFull } from "./alarm-findings.ts";
import { finders } from "./rule-findings.ts";
import { type QueueCount, type QueueCounter, queueFindings } from "./rule-queue.ts";
import { countedKinds, enabledSql } from "./rule-store.ts";
import { type Following, type Found, type Looking, lookLock, type Watched } from "./watched.ts";

type Follow = (looking: Looking, watched: Watched, findings: readonly Found[]) => Promise<number>;
type Rule = Pick<StoredRule, "name" | "version" | "content">;

/** @see AlarmStore.follow */
export async function followRules(
  database: Database,
  counter: QueueCounter,
  summaryMs: number,
  nowMs: number,
  follow: Follow,
): Promise<number> {
  const s = database.schema;
  const now = Math.round(nowMs);
  const enabled = `select name, version::int as version, content from ${s}.alarm_rule where ${enabledSql} order by name collate "C"`;
  const seen = await database.query<Rule>("alarm-rules-enabled", enabled);
  if (seen.length === 0) return 0;
  if (seen.some(({ content }) => content.kind === "overdue")) await markFull(database, nowMs);
  const isQueue = (rule: Rule) => rule.content.kind === "queue" && problemOf(rule.content) === null;
  const scopeOf = (rule: Rule) => ({ scope: scopeSql(s), values: scopeValues(rule) });
  const queues = await counter.count(seen.filter(isQueue), scopeOf, now);
  return database.transaction(async (client) => {
    const { rows: locked } = await client.query("select pg_try_advisory_xact_lock(hashtext($1)) as mine", [
      lookLock(s),
    ]);
    if (!locked[0]?.mine) return 0;
    // Reads the rules again under the lock, because a rule that was turned off in the meantime must not raise an alarm.
    const { rows } = await client.query(enabled);
    const rules = rows as unknown as Rule[];
    const looking: Following = { client, s, now, summaryMs, lastLookMs: await marked(client, s, now) };
    const isCounted = rules.some(({ content }) => countedKinds.includes(content.kind));
    const news = isCounted ? await counted(client, s, looking.now, "alarm_rule_seen") : [];
    let written = 0;
    for (const rule of rules) {
      const count = queues.get(rule.name);
      // A rule that was changed after the count of its queues is evaluated the next time.
      if (isQueue(rule) && count?.version !== rule.version) continue;
      const problem = problemOf(rule.content);
      written +=
        problem === null
          ? await follow(looking, watchedOf(rule, looking), await findingsOf(looking, rule, { news, count }))
          : await follow(looking, unreadable(rule, looking), [{ subject: "", count: 1, text: problem, runId: null }]);
    }
    return written;
  });
}

/** Stores the time of this evaluation. @returns the time of the one before it; null if there was none, or cluster time went back since */
async function marked(client: SqlClient, s: string, now: number): Promise<number | null> {
  const { rows } = await client.query(
    `with kept as (
       insert into ${s}.alarm_rule_look (at_ms) values ($1) on conflict (one) do update set at_ms = excluded.at_ms)
     select at_ms::float8 as "atMs" from ${s}.alarm_rule_look where at_ms <= $1`,
    [now],
  );
  return rows[0] ? Number(rows[0].atMs) : null;
}

/**
 * Returns why this node cannot evaluate the rule, or null if it can. A node may be unable to evaluate a rule that a node of a newer
 * version, or one with newer time zone data, has stored.
 */
function problemOf(content: RuleContent): string | null {
  try {
    checkRule(content);
    return null;
  } catch (error) {
    if (!isCarillonError(error)) throw error;
    return error.message;
  }
}

/** Stands in for a rule that this node cannot evaluate: an alarm reports the problem, and the other rules are still evaluated. */
const unreadable = ({ name, content }: Rule, { summaryMs }: Looking): Watched => ({
  rule: name,
  words: `${name}: the leading node cannot evaluate this rule`,
  channels: content.channels ?? [],
  isCondition: true,
  lastsMs: summaryMs,
});

/** The kinds that find events, each of which counts; the others find conditions. */
const events: readonly RuleKind[] = ["unfired", "changed"];

const watchedOf = ({ name, content }: Rule, { now, summaryMs }: Looking): Watched => {
  const { channels = [], escalate } = content;
  return {
    rule: name,
    words: `${name}: ${ruleText(content)}`,
    channels,
    isCondition: !events.includes(content.kind),
    countsParts: clusterKinds.has(content.kind),
    lastsMs: summaryMs,
    isQuiet: isHeldBack(content, now),
    ...(escalate && { escalate: { afterMs: parseDuration(escalate.after), channels: escalate.channels } }),
  };
};

/**
 * SQL condition: a task `t` is in a rule's scope. The four parameters from `first` on are the parts of the scope, from `scopeValues`. The
 * text is the same for all rules of a kind.
 */
function scopeSql(s: string, first = 1): string {
  const [namespace, names, groups, labelled] = [0, 1, 2, 3].map((at) => `$${first + at}`);
  return `t.deleted_ms is null
  and (${namespace}::text is null or case when ${namespace} = '${defaultNamespace}' then position('/' in t.name) = 0 else starts_with(t.name, ${namespace} || '/') end)
  and (${names}::text[] is null or t.name like any (${names}))
  and (${groups}::text[] is null or t.group_id in (select id from ${s}.worker_group where name = any (${groups})))
  and (${labelled}::jsonb is null or (${labelled}->'labels' is null or t.run_labels @> (${labelled}->'labels'))
    and (${labelled}->'owners' is null or (${labelled}->'owners') ? (t.definition->>'owner')))`;
}

function scopeValues({ name, content: { scope = {} } }: Rule): unknown[] {
  const { tasks, groups, labels, owners, everywhere = false } = scope;
  return [
    everywhere ? null : namespaceOf(name),
    tasks?.map((one) => one.replaceAll(/[\\%_]/g, "\\$&").replaceAll("*", "%")) ?? null,
    groups ?? null,
    labels === undefined && owners === undefined ? null : JSON.stringify({ labels, owners }),
  ];
}

/** Kinds that use the statement of the built-in rule of the same name, with the stored rule's own duration as the threshold. */
const given = ["overdue", "stuck", "unfired", "paused"] as const;
const isGiven = (kind: RuleKind): kind is (typeof given)[number] => given.some((one) => one === kind);

/** What was read for all rules, or before the transaction. */
interface Known {
  news: readonly Finding[];
  count: QueueCount | undefined;
}

async function findingsOf(looking: Following, rule: Rule, known: Known): Promise<Found[]> {
  const { client, s, now } = looking;
  const { news, count } = known;
  const { kind } = rule.content;
  const values = scopeValues(rule);
  const finder = { ...looking, rule, scope: scopeSql(s), values, news };
  if (kind === "queue") return count ? queueFindings(finder, count) : [];
  if (!isGiven(kind)) return finders[kind](finder);
  const question = askedOf(s, (first) => scopeSql(s, first))[kind];
  const { rows } = question
    ? await client.query(question.sql, [...question.valueOf(spansOf(rule.content), now), ...values])
    : { rows: [] };
  const found: Found[] = rows.map((row) => findingOf(kind, row));
  const missed = kind === "unfired" ? news.filter((finding) => finding.rule === "unfired") : [];
  if (missed.length === 0) return found;
  const { rows: inside } = await client.query(
    `select t.name from ${s}.task t where ${scopeSql(s)} and t.name = any ($5)`,
    [...values, missed.map(({ subject }) => subject)],
  );
  const names = new Set(inside.map(({ name }) => name));
  return [...found, ...missed.filter(({ subject }) => names.has(subject))];
}

function spansOf(content: RuleContent) {
  const { afterMs } = thresholdsOf(content);
  return {
    lateMs: afterMs,
    overdueMs: afterMs,
    unfiredMs: afterMs,
    stuckMs: afterMs,
    leaderlessMs: afterMs,
    summaryMs: afterMs,
  };
}
