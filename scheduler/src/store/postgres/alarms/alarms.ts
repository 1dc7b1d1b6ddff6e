import type { AlarmStore, OutboxMessage, Thresholds, Try } from "../../../alarms/alarm-store.ts";
import {
  type AlarmMessage,
  type AlarmRule,
  type AlarmSubject,
  alarmRules,
  conditions,
  type Finding,
  giveUpAfterMs,
  type Incident,
  type MessageKind,
  ruleWords,
  stepIncident,
} from "../../../alarms/alarms.ts";
import type { Database } from "../database.ts";
import { findAll, markFull, recoveryShownMs, succeededAtFailure, succeededOf, whyBehind } from "./alarm-findings.ts";
import { saidStore, silencedSql } from "./alarms-said.ts";
import { followRules } from "./follow-rules.ts";
import { QueueCounter } from "./rule-queue.ts";
import { ruleStore } from "./rule-store.ts";
import { type Found, type Looking, lookLock, type Watched } from "./watched.ts";

const subjectsTold = 10;
/** Alarms of these rules end once the task has a later successful run, or is paused or removed. */
const afterSuccess: ReadonlySet<AlarmRule> = new Set(["failed", "exhausted"]);
const sentKeptMs = 7 * 86_400_000;
/** How long processes continue to report late starts after the last evaluation of the alarms, in ms. */
const lateKnownMs = 300_000;
/** A time in ms that is longer than the longest pause between two attempts to send a message. */
const untriedMs = 2 * 3_600_000;

export function alarmStore(database: Database): AlarmStore {
  const counter = new QueueCounter(database);
  return {
    look: (rules, thresholds, channels, nowMs, found = []) =>
      look(database, { rules, thresholds, channels, nowMs, found }),
    lateFrom: (nowMs) => lateFrom(database, nowMs),
    follow: (summaryMs, nowMs) => followRules(database, counter, summaryMs, nowMs, follow),
    behind: (thresholds, nowMs) => whyBehind(database, thresholds, Math.round(nowMs)),
    report: (findings, nowMs) => report(database, findings, nowMs),
    take: (channels, nowMs, untilMs, limit) => take(database, channels, nowMs, untilMs, limit),
    sent: (id, nowMs, by) => sent(database, id, nowMs, by),
    unsent: (id, error, nextMs, by) => unsent(database, id, error, nextMs, by),
    ...saidStore(database),
    ...ruleStore(database),
  };
}

interface Look {
  rules: readonly AlarmRule[];
  thresholds: Thresholds;
  channels: Partial<Record<AlarmRule, string[]>>;
  nowMs: number;
  /** Findings of the evaluating process itself, which need no query. */
  found: readonly Finding[];
}

async function look(database: Database, { rules, thresholds, channels, nowMs, found: own }: Look): Promise<number> {
  const s = database.schema;
  await wantLate(database, channels.late?.length ? thresholds.lateMs : null, Math.round(nowMs));
  if (rules.includes("overdue")) await markFull(database, nowMs);
  return database.transaction(async (client) => {
    // Without this lock, two processes that evaluate the alarms at the same time would each write the same messages.
    const { rows } = await client.query("select pg_try_advisory_xact_lock(hashtext($1)) as mine", [lookLock(s)]);
    if (!rows[0]?.mine) return 0;
    const now = Math.round(nowMs);
    const looking: Looking = { client, s, now, summaryMs: thresholds.summaryMs };
    const all = [...(await findAll(client, s, rules, thresholds, now)), ...own];
    let written = 0;
    for (const rule of rules) {
      const watched = watchedOf(rule, channels[rule] ?? [], looking.summaryMs);
      written += await follow(
        looking,
        watched,
        all.filter((finding) => finding.rule === rule),
      );
    }
    await endUntold(looking, channels);
    await forget(looking);
    await client.query(`delete from ${s}.alarm_silence where until_ms < $1`, [now - sentKeptMs]);
    return written;
  });
}

/**
 * Stores the delay from which on a start counts as late. All processes that start runs read it.
 * @param lateMs null if late starts are not to be reported
 */
async function wantLate(database: Database, lateMs: number | null, now: number): Promise<void> {
  await database.query(
    "alarm-want-late",
    `update ${database.schema}.cluster set late_ms = $1, late_until_ms = $2::bigint + ${lateKnownMs}
     where late_ms is distinct from $1 or ($1 is not null and late_until_ms < $2::bigint + ${lateKnownMs / 2})`,
    [lateMs, now],
  );
}

async function lateFrom(database: Database, nowMs: number): Promise<number | null> {
  const [row] = await database.query<{ lateMs: number | null }>(
    "alarm-late-from",
    `select late_ms as "lateMs" from ${database.schema}.cluster where late_until_ms > $1`,
    [Math.round(nowMs)],
  );
  return row?.lateMs ?? null;
}

const watchedOf = (rule: AlarmRule, channels: readonly string[], summaryMs: number): Watched => ({
  rule,
  words: ruleWords[rule],
  channels,
  isCondition: conditions.has(rule),
  endsBySuccess: afterSuccess.has(rule),
  lastsMs: rule === "recovery" ? recoveryShownMs : summaryMs,
});

/** Updates a rule's alarms and its incident from the findings of one evaluation. @returns the number of messages written */
async function follow(looking: Looking, watched: Watched, findings: readonly Found[]): Promise<number> {
  const found = await raise(looking, watched, findings);
  await close(looking, watched, findings);
  // In quiet hours the findings are stored but not sent, as under a silence, and the incident does not change.
  if (watched.isQuiet) return 0;
  return tell(looking, watched, found + (await free(looking, watched)));
}

async function report(database: Database, findings: readonly Finding[], nowMs: number): Promise<void> {
  const s = database.schema;
  await database.query(
    "alarm-report",
    `insert into ${s}.alarm_report (rule, subject, count, text, run_id, at_ms)
     select rule, subject, count, text, run_id, $6
     from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[]) as f (rule, subject, count, text, run_id)`,
    [
      findings.map(({ rule }) => rule),
      findings.map(({ subject }) => subject),
      findings.map(({ count }) => count),
      findings.map(({ text }) => text),
      findings.map(({ runId }) => runId),
      Math.round(nowMs),
    ],
  );
}

function take(
  database: Database,
  channels: readonly string[],
  nowMs: number,
  untilMs: number,
  limit: number,
): Promise<OutboxMessage[]> {
  const s = database.schema;
  return database.query(
    "alarm-take",
    `update ${s}.alarm_outbox o set attempts = attempts + 1, next_ms = $3
     where id = any(array(select id from ${s}.alarm_outbox n where sent_ms is null and next_ms <= $2 and channel = any($1)
                          and not exists (select from ${s}.alarm_outbox e where e.sent_ms is null and e.next_ms is not null
                                          and e.channel = n.channel and e.rule = n.rule and e.id < n.id)
                          order by id limit $4 for update skip locked))
     returning id, channel, attempts, created_ms::float8 as "createdMs", body as message`,
    [channels, Math.round(nowMs), Math.round(untilMs), limit],
  );
}

async function sent(database: Database, id: number, nowMs: number, by?: Try): Promise<void> {
  const s = database.schema;
  await database.query("alarm-sent", `update ${s}.alarm_outbox set sent_ms = $2, error = null where id = $1`, [
    id,
    Math.round(nowMs),
  ]);
  if (by) await tried(database, id, null, by);
}

async function unsent(database: Database, id: number, error: string, nextMs: number | null, by?: Try): Promise<void> {
  const s = database.schema;
  await database.query(
    "alarm-unsent",
    `update ${s}.alarm_outbox set next_ms = $2, error = $3 where id = $1 and sent_ms is null`,
    [id, nextMs === null ? null : Math.round(nextMs), error],
  );
  if (by) await tried(database, id, error, by);
}

/**
 * Gives up messages whose channel is not configured on any node, so that no node tries to send them, and deletes messages that were sent
 * more than a week ago, and given-up messages that were written more than a week ago. Messages without a configured channel are given up
 * `untriedMs` later than messages that always fail.
 */
async function forget({ client, s, now }: Looking): Promise<void> {
  await client.query(
    `update ${s}.alarm_outbox set next_ms = null, error = coalesce(error, 'no node has such a channel')
     where sent_ms is null and next_ms < $2 and created_ms < $1`,
    [now - giveUpAfterMs - untriedMs, now],
  );
  await client.query(
    `delete from ${s}.alarm_outbox where sent_ms < $1 or (sent_ms is null and next_ms is null and created_ms < $1)`,
    [now - sentKeptMs],
  );
}

async function tried(
  database: Database,
  id: number,
  error: string | null,
  { attempt, atMs, node }: Try,
): Promise<void> {
  const s = database.schema;
  await database.query(
    "alarm-try",
    `insert into ${s}.alarm_try (message_id, attempt, at_ms, node, error) select id, $2, $3, $4, $5 from ${s}.alarm_outbox
     where id = $1 on conflict do nothing`,
    [id, attempt, Math.round(atMs), node, error],
  );
}

/**
 * Writes a rule's findings to its alarms. A finding is not new if its condition already held or its alarm is acknowledged. New findings of
 * a silenced alarm, or during the rule's quiet hours, are counted in `held` instead of being sent. A subject without an open alarm counts
 * as at least one new finding, even if the finding's count is 0. A condition that was found with count 0 and now has a higher count has
 * become worse, so it is new. If a finding counts parts of the cluster, only more parts than before are new.
 * @returns the number of new findings that are to be sent
 */
async function raise(
  { client, s, now }: Looking,
  { rule, isCondition, countsParts = false, endsBySuccess, isQuiet }: Watched,
  findings: readonly Found[],
): Promise<number> {
  if (findings.length === 0) return 0;
  // One row per subject, because one rule may report a subject twice, for different causes.
  const bySubject = new Map<string, Found>();
  for (const finding of findings) {
    const before = bySubject.get(finding.subject);
    bySubject.set(finding.subject, before ? { ...before, count: before.count + finding.count } : finding);
  }
  const some = [...bySubject.values()].sort((a, b) => (a.subject < b.subject ? -1 : 1));
  const succeeded = endsBySuccess ? succeededAtFailure(s, "f.subject", "$6 - 3600000") : "0";
  const { rows } = await client.query(
    `with before as (
       select subject, seen_ms, count from ${s}.alarm where rule = $1 and cleared_ms is null),
     found as materialized (
       select f.*, case when b.seen_ms is not null then 0 when $8 and b.subject is not null then greatest(f.count - b.count, 0) when ($7 and b.subject is not null and (b.count > 0 or f.count = 0)) then 0 else greatest(f.count, (b.subject is null)::int) end as news,
              ${isQuiet ? "true" : silencedSql(s, "$1", "f.subject", "$6")} as silenced
       from unnest($2::text[], $3::bigint[], $4::text[], $5::bigint[]) as f (subject, count, text, run_id) left join before b using (subject)),
     kept as (
       insert into ${s}.alarm as a (rule, subject, opened_ms, last_ms, count, text, run_id, succeeded, held)
       select $1, f.subject, $6, $6, f.count, f.text, f.run_id, ${succeeded}, case when f.silenced then f.news else 0 end
       from found f order by f.subject
       on conflict (rule, subject) do update set
         opened_ms = case when a.cleared_ms is null then a.opened_ms else excluded.opened_ms end,
         count = case when $8 then excluded.count when a.cleared_ms is null then a.count + case when $7 and a.count > 0 then 0 else excluded.count end else excluded.count end,
         last_ms = excluded.last_ms, text = excluded.text, run_id = excluded.run_id, succeeded = excluded.succeeded,
         held = case when a.cleared_ms is null then a.held else 0 end + excluded.held,
         seen_ms = case when a.cleared_ms is null then a.seen_ms end, cleared_ms = null)
     select coalesce(sum(news) filter (where not silenced), 0)::float8 as news from found`,
    [
      rule,
      some.map(({ subject }) => subject),
      some.map(({ count }) => count),
      some.map(({ text }) => text),
      some.map(({ runId }) => runId),
      now,
      isCondition,
      countsParts,
    ],
  );
  return Number(rows[0]?.news ?? 0);
}

/**
 * Ends alarms. A condition ends when it is no longer found. A failure ends when the task has succeeded since, or was paused or removed. The
 * alarm of a recovery ends after a day. Other alarms end when they have not recurred for `lastsMs`, but not before what the rule's quiet
 * hours held back was sent.
 */
async function close(
  { client, s, now }: Looking,
  { rule, isCondition, endsBySuccess, lastsMs, isQuiet }: Watched,
  findings: readonly Found[],
): Promise<void> {
  const over = isCondition
    ? "not (a.subject = any($3))"
    : endsBySuccess
      ? `not (a.subject = any($3)) and (${succeededOf(s, "a.subject")} > a.succeeded
           or not exists (select from ${s}.task t where t.name = a.subject and t.deleted_ms is null and t.paused_ms is null))`
      : `not (a.subject = any($3)) and greatest(a.last_ms, a.freed_ms) < $2::bigint - ${Math.round(lastsMs)}
           and (a.held = 0 or a.seen_ms is not null or ${isQuiet ? "false" : silencedSql(s, "a.rule", "a.subject", "$2")})`;
  await client.query(
    `update ${s}.alarm a set cleared_ms = $2::bigint where a.rule = $1 and a.cleared_ms is null and ${over}`,
    [rule, now, findings.map(({ subject }) => subject)],
  );
}

/** Ends the alarms of built-in rules without a channel: such rules are off, so no evaluation would ever end their open alarms. */
async function endUntold({ client, s, now }: Looking, channels: Partial<Record<AlarmRule, string[]>>): Promise<void> {
  await client.query(
    `with over as (delete from ${s}.alarm_incident where rule = any($1))
     update ${s}.alarm set cleared_ms = $2 where rule = any($1) and cleared_ms is null`,
    [alarmRules.filter((rule) => !channels[rule]?.length), now],
  );
}

/**
 * Frees alarms for sending once no silence covers them: alarms with findings that a silence held back and, if the rule has no open
 * incident, also alarms that were sent before the silence and recurred or continued during it.
 * @returns the number of findings that are now to be sent, at least one for each freed alarm
 */
async function free({ client, s, now }: Looking, { rule, isCondition }: Watched): Promise<number> {
  const { rows } = await client.query(
    `with was as materialized (
       select a.subject, a.held from ${s}.alarm a where a.rule = $1 and a.cleared_ms is null and a.seen_ms is null
       and (a.held > 0 or case when $3 then a.opened_ms else a.last_ms end < $2::bigint
            and not exists (select from ${s}.alarm_incident where rule = $1))
       and not ${silencedSql(s, "$1", "a.subject", "$2")}),
     freed as (
       update ${s}.alarm a set held = 0, freed_ms = $2::bigint from was where a.rule = $1 and a.subject = was.subject)
     select coalesce(sum(greatest(held, 1)), 0)::float8 as news from was`,
    [rule, now, isCondition],
  );
  return Number(rows[0]?.news ?? 0);
}

async function tell(
  { client, s, now, summaryMs }: Looking,
  { rule, words, channels, escalate }: Watched,
  news: number,
): Promise<number> {
  const silenced = silencedSql(s, "$1", "a.subject", "$2");
  const { rows } = await client.query(
    `select (select count(*) from ${s}.alarm a where rule = $1 and cleared_ms is null and (i.rule is not null or seen_ms is null)
               and not ${silenced})::int as open,
            (select count(*) from ${s}.alarm a where rule = $1 and cleared_ms is null and seen_ms is null and not ${silenced})::int as unseen,
            (select count(*) from ${s}.alarm a where rule = $1 and cleared_ms is null
               and ${silenced})::int as silenced, i.opened_ms::float8 as "openedMs",
            i.told_ms::float8 as "toldMs", i.window_ms::float8 as "windowMs", i.total::float8 as total, i.told::float8 as told,
            i.quiet_ms::float8 as "quietMs", i.escalated_ms::float8 as "escalatedMs"
     from (select 1) one left join ${s}.alarm_incident i on i.rule = $1`,
    [rule, now],
  );
  const state = rows[0] as unknown as Incident & Told;
  const before = (state.openedMs as number | null) === null ? null : state;
  const { incident, message } = stepIncident(before, news, state.open, now, summaryMs);
  const escalated = before !== null && before.escalatedMs !== null;
  const escalates =
    escalate !== undefined &&
    !escalated &&
    incident !== null &&
    state.unseen > 0 &&
    now - incident.openedMs >= escalate.afterMs;
  if (incident === null) {
    if (before) await client.query(`delete from ${s}.alarm_incident where rule = $1`, [rule]);
  } else {
    const { openedMs, toldMs, windowMs, total, told, quietMs } = incident;
    await client.query(
      `insert into ${s}.alarm_incident (rule, opened_ms, told_ms, window_ms, total, told, quiet_ms, escalated_ms)
       values ($1, $2, $3, $4, $5, $6, $7, $8)
       on conflict (rule) do update set told_ms = $3, window_ms = $4, total = $5, told = $6, quiet_ms = $7, escalated_ms = $8`,
      [rule, openedMs, toldMs, windowMs, total, told, quietMs, escalates ? now : (before?.escalatedMs ?? null)],
    );
  }
  // Each channel receives "raised" as its first message of an incident, and the incident's end as its last.
  const above = escalate?.channels.filter((channel) => !channels.includes(channel)) ?? [];
  const sends: [MessageKind, readonly string[]][] = [];
  if (message !== null) sends.push([message, escalated ? [...channels, ...above] : channels]);
  if (escalates) sends.push(["raised", above]);
  const wanted = sends.filter(([, to]) => to.length > 0);
  if (wanted.length === 0) return 0;
  const body = await bodyOf({ client, s, now }, { rule, words, news, before, silenced: state.silenced });
  for (const [kind, to] of wanted)
    await client.query(
      `insert into ${s}.alarm_outbox (channel, rule, kind, body, created_ms, next_ms) select c, $2, $3, $4, $5, $5 from unnest($1::text[]) c`,
      [to, rule, kind, JSON.stringify({ kind, ...body }), now],
    );
  return wanted.reduce((count, [, to]) => count + to.length, 0);
}

/** Counts that a message needs in addition to its incident. */
interface Told {
  open: number;
  /** The number of open alarms that are neither acknowledged nor silenced. */
  unseen: number;
  silenced: number;
  escalatedMs: number | null;
}

interface Telling {
  rule: string;
  words: string;
  news: number;
  before: Incident | null;
  silenced: number;
}

async function bodyOf(
  { client, s, now }: Pick<Looking, "client" | "s" | "now">,
  { rule, words, news, before, silenced }: Telling,
): Promise<Omit<AlarmMessage, "kind">> {
  const since = before?.openedMs ?? now;
  const { rows: subjects } = await client.query(
    `select x.*, t.definition->>'owner' as owner from (
       select subject as task, count::float8 as count, text, run_id::float8 as run, count(*) over ()::int as "all"
       from ${s}.alarm a where rule = $1 and greatest(last_ms, freed_ms) >= $2 and not ${silencedSql(s, "$1", "a.subject", "$3")}
       order by count desc, subject limit ${subjectsTold}) x
     left join ${s}.task t on t.name = x.task order by x.count desc, x.task`,
    [rule, since, now],
  );
  const total = before ? before.total + news : Math.max(1, news);
  return {
    rule,
    words,
    atMs: now,
    sinceMs: since,
    total,
    news: total - (before?.told ?? 0),
    subjects: subjects.map(({ all: _, owner, ...one }) =>
      owner === null ? one : { ...one, owner },
    ) as unknown as AlarmSubject[],
    moreSubjects: Math.max(0, Number(subjects[0]?.all ?? 0) - subjects.length),
    ...(silenced > 0 ? { silenced } : {}),
  };
}
