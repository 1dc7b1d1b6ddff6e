import type { Thresholds } from "../../../alarms/alarm-store.ts";
import { type AlarmRule, type Finding, ruleWords } from "../../../alarms/alarms.ts";
import type { SqlClient } from "../../../base/change.ts";
import type { Json } from "../../../base/json.ts";
import { timeBackMs } from "../../../cluster/clock-votes.ts";
import { reasonOf } from "../../../run/error-fingerprint.ts";
import type { Database } from "../database.ts";
import { timeoutMsSql } from "../enqueue/run-rows.ts";
import { inDoubtSql } from "../recovery/recovery.ts";
import { endedSql } from "../schedules/ended.ts";
import { runOutcome, runState } from "../states.ts";
import { overdueSql } from "./overdue.ts";

/** The maximum number of findings that the statement of one rule returns. */
export const most = 1_000;
/** The maximum number of tasks whose newest failure is read for the alarm's message. */
const worded = 100;
const longestText = 300;
/** How long a completed recovery is displayed as an alarm, in ms. */
export const recoveryShownMs = 86_400_000;
/** A recovery that takes longer than this (ms) raises an alarm while it lasts. Most recoveries take about a second. */
const recoveryLongMs = 10_000;
/** Verdicts are restored only once work continues after a recovery, so restored results are counted until this time (ms) after its end. */
const recoveryCountedMs = 5_000;
/** The rules whose findings come from the store's counters: failures, and slots that were missed under the misfire policy. */
const countedRules: ReadonlySet<AlarmRule> = new Set(["failed", "exhausted", "unfired"]);

/** Returns SQL for the exact total of a counter: the sum of its rows that have been folded and of those that have not. */
const totals = (
  s: string,
  column: string,
  taskId: string,
) => `(select coalesce(sum(${column}), 0) from (select ${column} from ${s}.tally where task_id = ${taskId}
    union all select ${column} from ${s}.tally_delta where task_id = ${taskId}) x)`;

/** Returns SQL for the number of successes of the task with this name. */
export const succeededOf = (s: string, subject: string) =>
  totals(s, "succeeded", `(select id from ${s}.task where name = ${subject})`);

/**
 * Returns the failures and missed slots since the last evaluation.
 * @param seen the table that stores the counters as of the last evaluation
 */
export async function counted(
  client: SqlClient,
  s: string,
  now: number,
  seen: "alarm_seen" | "alarm_rule_seen" = "alarm_seen",
): Promise<Finding[]> {
  const { rows: first } = await client.query(
    `insert into ${s}.${seen} (task_id, failed, missed) values (0, 0, 0) on conflict do nothing returning task_id`,
  );
  const { rows } = await client.query(
    `with totals as (
       select task_id, sum(failed)::bigint as failed, sum(missed)::bigint as missed
       from (select task_id, failed, missed from ${s}.tally where failed > 0 or missed > 0
             union all select task_id, failed, missed from ${s}.tally_delta where failed > 0 or missed > 0) x group by task_id),
     news as materialized (
       select t.task_id, t.failed, t.missed, t.failed - coalesce(k.failed, 0) as more_failed, t.missed - coalesce(k.missed, 0) as more_missed
       from totals t left join ${s}.${seen} k using (task_id)
       where t.failed > coalesce(k.failed, 0) or t.missed > coalesce(k.missed, 0)),
     kept as (
       insert into ${s}.${seen} (task_id, failed, missed) select task_id, failed, missed from news
       on conflict (task_id) do update set failed = excluded.failed, missed = excluded.missed)
     select n.task_id as "taskId", t.name, n.more_failed::float8 as failed, n.more_missed::float8 as missed
     from news n join ${s}.task t on t.id = n.task_id order by n.more_failed desc, t.name`,
  );
  // At the first evaluation, all earlier failures and missed slots are ignored.
  if (first.length > 0) return [];
  const failing = rows.filter(({ failed }) => Number(failed) > 0);
  const { rows: newest } = await client.query(
    `select i.task_id as "taskId", h.id::float8 as run, h.error,
       exists (select from ${s}.attempt a where a.run_id = h.id and a.outcome = 'failed') as "failedBefore" from unnest($1::int[]) as i (task_id)
     cross join lateral (select id, error from ${s}.run_history where task_id = i.task_id and outcome = ${runOutcome.failed} and ended_ms > $2
                         order by ended_ms desc limit 1) h`,
    [failing.slice(0, worded).map(({ taskId }) => taskId), now - 86_400_000],
  );
  const wordsOf = new Map(newest.map((row) => [row.taskId, row]));
  return [
    ...failing.map(({ taskId, name, failed }): Finding => {
      const known = wordsOf.get(taskId);
      // Only failed attempts count here; attempts that were lost or snoozed are not among the attempts that the retry policy counts.
      const rule = known?.failedBefore ? "exhausted" : "failed";
      const text = known ? reasonOf(known.error as Json).words : "see carillon dead list";
      return {
        rule,
        subject: String(name),
        count: Number(failed),
        text: text.slice(0, longestText),
        runId: known ? Number(known.run) : null,
      };
    }),
    ...rows
      .filter(({ missed }) => Number(missed) > 0)
      .map(
        ({ name, missed }): Finding => ({
          rule: "unfired",
          subject: String(name),
          count: Number(missed),
          runId: null,
          text: "slots were given up by the task's misfire policy",
        }),
      ),
  ];
}

/**
 * Returns SQL for the number of successes that the task with this name had when it last failed. Counters have no order, so the history
 * shows whether a success came after that failure. Failures are always in the history; a success without a row counts as earlier than the
 * failure.
 * @param since an SQL expression for the time before which history is not searched
 */
export function succeededAtFailure(s: string, subject: string, since: string) {
  return `(${succeededOf(s, subject)} - coalesce((
   select (h.outcome = ${runOutcome.succeeded})::int from unnest(array[${runOutcome.succeeded}, ${runOutcome.failed}]::smallint[]) as o (outcome) cross join lateral (
     select outcome, ended_ms, id from ${s}.run_history
     where task_id = (select id from ${s}.task where name = ${subject}) and outcome = o.outcome and ended_ms > ${since}
     order by ended_ms desc, id desc limit 1) h
   order by h.ended_ms desc, h.id desc limit 1), 0))`;
}

/**
 * Records which groups are at their concurrency limit now. Without this record, a later evaluation that finds a free slot could not tell
 * that the group was full until shortly before.
 */
export async function markFull(database: Database, nowMs: number): Promise<void> {
  const s = database.schema;
  // This is a separate, short statement, so that a claim never waits for the whole evaluation. It skips groups whose limit a claim
  // has locked.
  await database.query(
    "alarm-groups",
    `update ${s}.group_limit l set full_ms = $1 where l.group_id = any (array(
       select g.group_id from ${s}.group_limit g where g.most <= (
         select count(*) from ${s}.task t join ${s}.run r on r.task_id = t.id and r.state = ${runState.claimed} where t.group_id = g.group_id)
       for update of g skip locked))`,
    [Math.round(nowMs)],
  );
}

export async function findAll(
  client: SqlClient,
  s: string,
  rules: readonly AlarmRule[],
  thresholds: Thresholds,
  now: number,
): Promise<Finding[]> {
  const found: Finding[] = rules.some((rule) => countedRules.has(rule)) ? await counted(client, s, now) : [];
  if (rules.includes("late")) {
    const { rows } = await client.query(
      `with told as (delete from ${s}.alarm_report returning *)
       select rule, subject, sum(count)::float8 as count,
              (array_agg(text order by substring(text from '[0-9]+')::bigint desc nulls last))[1] as text, max(run_id)::float8 as run from told group by rule, subject`,
    );
    found.push(...rows.map((row) => findingOf(row.rule as AlarmRule, row)));
  }
  for (const rule of rules) {
    const question = askedOf(s)[rule];
    if (!question) continue;
    const { rows } = await client.query(question.sql, question.valueOf(thresholds, now));
    found.push(...rows.map((row) => findingOf(rule, row)));
  }
  return found;
}

interface Question {
  sql: string;
  valueOf: (thresholds: Thresholds, now: number) => number[];
}

/**
 * Tests, by the rules `unfired` and `overdue`, whether slots are planned in time and due runs that wait for a worker are claimed in time.
 * @returns the first finding; null if there is none
 */
export async function whyBehind(
  database: Database,
  { overdueMs, unfiredMs }: Pick<Thresholds, "overdueMs" | "unfiredMs">,
  now: number,
): Promise<string | null> {
  const s = database.schema;
  const thresholds = { lateMs: 0, overdueMs, unfiredMs, stuckMs: 0, leaderlessMs: 0, summaryMs: 0 };
  await markFull(database, now);
  for (const rule of ["unfired", "overdue"] as const) {
    const question = askedOf(s)[rule] as Question;
    const [found] = await database.query<{ subject: string; text: string }>(
      `alarm-behind-${rule}`,
      // Runs that wait for a limit wait as their task's owner intends.
      rule === "overdue" ? overdueSql(s, utcSql, 1, "w.cause = 'worker'") : question.sql,
      question.valueOf(thresholds, now),
    );
    if (found) return `${ruleWords[rule]}: ${found.subject}: ${found.text}`;
  }
  return null;
}

/** Returns SQL that formats a time as ISO 8601. @param ms an SQL expression for epoch milliseconds */
const utcSql = (ms: string) => `to_char(to_timestamp(${ms} / 1000.0) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;

const everyTask = () => "true";

/**
 * @param scope returns an SQL condition on the tasks `t` of which findings are wanted; its parameters begin with the given number. It is a
 * part of the statements, because each returns at most `most` findings, which could all be of other tasks.
 */
export const askedOf = (
  s: string,
  scope: (first: number) => string = everyTask,
): Partial<Record<AlarmRule, Question>> => ({
  overdue: {
    sql: overdueSql(s, utcSql, most, "true", scope === everyTask ? undefined : scope(2)),
    valueOf: ({ overdueMs }, now) => [now - overdueMs],
  },
  stuck: {
    sql: `select t.name as subject, count(*)::float8 as count, min(r.id)::float8 as run,
               case when bool_or(o.ended_ms is not null) then 'its worker is gone, and it was not taken back'
                    when bool_or(r.started_ms is null) then 'claimed, and never started' else 'past its timeout' end as text
        from ${s}.run r join ${s}.task t on t.id = r.task_id left join ${s}.session o on o.id = r.session_id
        where r.state = ${runState.claimed} and (o.ended_ms < $1 or (r.started_ms is null and greatest(r.due_ms, r.claimed_ms) < $1)
              or r.started_ms + ${timeoutMsSql} < $1) and ${scope(2)}
        group by t.name order by t.name limit ${most}`,
    valueOf: ({ stuckMs }, now) => [now - stuckMs],
  },
  unfired: {
    // The count is 0, so that repeated evaluations do not count the same slot several times.
    sql: `select t.name as subject, 0::float8 as count, null::float8 as run,
               'a slot came due and was not planned: ' || ${utcSql("p.next_slot_ms")} as text
        from ${s}.plan p join ${s}.task t on t.id = p.task_id
        where p.next_slot_ms < $1 and not p.paused and t.deleted_ms is null and ${scope(2)} order by p.next_slot_ms limit ${most}`,
    valueOf: ({ unfiredMs }, now) => [now - unfiredMs],
  },
  leaderless: {
    sql: `select '' as subject, 1::float8 as count, null::float8 as run,
               'slots are planned a moment ahead only, by whoever is left; see carillon nodes' as text
        from ${s}.leadership l left join ${s}.session x on x.id = l.session_id
        where x.id is null or x.ended_ms < $1`,
    valueOf: ({ leaderlessMs }, now) => [now - leaderlessMs],
  },
  clock: {
    sql: `select '' as subject, 1::float8 as count, null::float8 as run,
               format('it is %s s %s cluster time, which goes on without it since %s; set the clock of the store''s machine right (NTP), or run carillon clock adopt if it is right',
                 round(abs(clock_shift_ms / 1000)::numeric, 1), case when clock_shift_ms < 0 then 'ahead of' else 'behind' end,
                 ${utcSql("clock_since_ms")}) as text
        from ${s}.cluster where clock_shift_ms <> 0`,
    valueOf: () => [],
  },
  rewound: {
    sql: `select '' as subject, 1::float8 as count, null::float8 as run,
               format('it is %s h behind what it has been, and no slot of before fires until %s; if the clock of the store''s machine is wrong, set it right (NTP); if it is right, wait, or run carillon clock replan',
                 round(((reached_ms - $1::bigint) / 3600000.0)::numeric, 2), ${utcSql("reached_ms")}) as text
        from ${s}.cluster where reached_ms > $1::bigint + ${timeBackMs} and reached_ms > coalesce(replanned_ms, 0)`,
    valueOf: (_, now) => [now],
  },
  paused: {
    sql: `select name as subject, 1::float8 as count, null::float8 as run,
               format('%s: nothing of it starts until carillon tasks resume %s', paused_why, name) as text
        from ${s}.task t where paused_failures is not null and paused_ms is not null and deleted_ms is null and ${scope(1)}
        order by name limit ${most}`,
    valueOf: () => [],
  },
  ended: {
    sql: `select t.name as subject, 1::float8 as count, null::float8 as run,
               'no slot is left: give it another schedule, or remove it' as text
        from ${s}.plan p join ${s}.task t on t.id = p.task_id
        where ${endedSql(s)} and t.definition->>'atEnd' = 'alarm' order by t.name limit ${most}`,
    valueOf: () => [],
  },
  // Each recovery raises one alarm. A completed recovery is found until an alarm after its end exists, so that a second recovery raises a
  // new alarm. A recovery that takes long raises an alarm while it lasts.
  recovery: {
    sql: `select '' as subject, count(*) filter (where ended_ms is not null)::float8 as count, null::float8 as run,
               (array_agg(${recoveryText(s)} order by number desc))[1] as text
        from ${s}.recovery r left join ${s}.alarm a on a.rule = 'recovery' and a.subject = ''
        where (r.ended_ms > greatest($1::bigint - ${recoveryShownMs}, coalesce(a.last_ms, 0) - ${recoveryCountedMs})
               and r.ended_ms <= $1::bigint - ${recoveryCountedMs})
           or (r.ended_ms is null and r.began_ms < $1::bigint - ${recoveryLongMs}
               and r.number = (select recovery from ${s}.cluster where recovering_since_ms is not null))
        having count(*) > 0`,
    valueOf: (_, now) => [now],
  },
});

const recoveryText = (s: string) => `case when r.ended_ms is null
  then format('since %s a recovery is under way, and no work is done until the processes that were at work have told what they remember',
              ${utcSql("r.began_ms")})
  else format('at %s: %s; %s runs and %s results were put back',
              ${utcSql("r.began_ms")},
              case when r.back_ms is null then 'it was promoted or restored, or crashed, and by how much it went back is not known'
                   when r.back_ms = 0 then 'it was promoted or restored, or crashed, and went back by less than a beat'
                   else format('it went back %s s', round(r.back_ms / 1000.0, 1)) end, r.runs, r.verdicts)
       || case when r.missing = '{}' then ''
               else format('; what these nodes did last is not known, for they did not come: %s; %s runs at most may have run twice',
                           array_to_string(r.missing, ', '), ${inDoubtSql(s, "r")}) end end`;

export const findingOf = (rule: AlarmRule, { subject, count, text, run }: Record<string, unknown>): Finding => ({
  rule,
  subject: String(subject),
  count: Number(count),
  text: String(text),
  runId: run === null ? null : Number(run),
});
