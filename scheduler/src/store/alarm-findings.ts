import type { Thresholds } from "../alarm-store.ts";
import type { AlarmRule, Finding } from "../alarms.ts";
import { reasonOf } from "../error-fingerprint.ts";
import type { Json } from "../json.ts";
import type { SqlClient } from "../store.ts";
import type { Database } from "./database.ts";
import { waitingSql, waitsForWorkerSql } from "./ready.ts";

/** Of one rule, in one look; the rest is found by the next. */
const most = 1_000;
/** Tasks whose newest failure is read, for its words. */
const worded = 100;
const longestText = 300;
/** That are found by the store's counters: failures, and slots that the misfire policy gave up. */
const countedRules: ReadonlySet<AlarmRule> = new Set(["failed", "exhausted", "unfired"]);

/** What each rule finds. All of it is small however many runs there are: indexes, counters and what is under way. */
export function findSql(database: Database) {
  const s = database.schema;
  /** Exact: what is folded and what is not yet. */
  const totals = (column: string, taskId: string) =>
    `(select coalesce(sum(${column}), 0) from (select ${column} from ${s}.tally where task_id = ${taskId}
      union all select ${column} from ${s}.tally_delta where task_id = ${taskId}) x)`;

  /** How often the task of this name has succeeded. */
  const succeededOf = (subject: string) => totals("succeeded", `(select id from ${s}.task where name = ${subject})`);

  async function counted(client: SqlClient, now: number): Promise<Finding[]> {
    const { rows: first } = await client.query(
      `insert into ${s}.alarm_seen (task_id, failed, missed) values (0, 0, 0) on conflict do nothing returning task_id`,
    );
    const { rows } = await client.query(
      `with totals as (
         select task_id, sum(failed)::bigint as failed, sum(missed)::bigint as missed
         from (select task_id, failed, missed from ${s}.tally where failed > 0 or missed > 0
               union all select task_id, failed, missed from ${s}.tally_delta where failed > 0 or missed > 0) x group by task_id),
       news as materialized (
         select t.task_id, t.failed, t.missed, t.failed - coalesce(k.failed, 0) as more_failed, t.missed - coalesce(k.missed, 0) as more_missed
         from totals t left join ${s}.alarm_seen k using (task_id)
         where t.failed > coalesce(k.failed, 0) or t.missed > coalesce(k.missed, 0)),
       kept as (
         insert into ${s}.alarm_seen (task_id, failed, missed) select task_id, failed, missed from news
         on conflict (task_id) do update set failed = excluded.failed, missed = excluded.missed)
       select n.task_id as "taskId", t.name, n.more_failed::float8 as failed, n.more_missed::float8 as missed
       from news n join ${s}.task t on t.id = n.task_id order by n.more_failed desc, t.name`,
    );
    // What had failed before anybody looked is known.
    if (first.length > 0) return [];
    const failing = rows.filter(({ failed }) => Number(failed) > 0);
    const { rows: newest } = await client.query(
      `select i.task_id as "taskId", h.id::float8 as run, h.attempt, h.error from unnest($1::int[]) as i (task_id)
       cross join lateral (select id, attempt, error from ${s}.run_history where task_id = i.task_id and outcome = 1 and ended_ms > $2
                           order by ended_ms desc limit 1) h`,
      [failing.slice(0, worded).map(({ taskId }) => taskId), now - 86_400_000],
    );
    const wordsOf = new Map(newest.map((row) => [row.taskId, row]));
    return [
      ...failing.map(({ taskId, name, failed }): Finding => {
        const known = wordsOf.get(taskId);
        const rule = Number(known?.attempt ?? 1) > 1 ? "exhausted" : "failed";
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
            ...{ rule: "unfired", subject: String(name), count: Number(missed), runId: null },
            text: "slots were given up by the task's misfire policy",
          }),
        ),
    ];
  }

  const asked: Partial<Record<AlarmRule, { sql: string; valueOf: (thresholds: Thresholds, now: number) => number[] }>> =
    {
      // Also of those that have an addressee, or wait for one: by the index that claims use. A task that was edited or resumed has
      // waited since then.
      overdue: {
        sql: `select t.name as subject, count(*)::float8 as count, null::float8 as run,
                   'the oldest is due since ' || to_char(to_timestamp(min(o.due_ms) / 1000.0) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as text
            from ${waitingSql(s, "$1", 100)} o join ${s}.task t on t.id = o.task_id
            where greatest(o.since_ms, t.changed_ms) < $1 and ${waitsForWorkerSql(s)}
              and not exists (select from ${s}.group_limit l where l.group_id = t.group_id and l.full_ms >= $1)
            group by t.name order by min(o.due_ms) limit ${most}`,
        valueOf: ({ overdueMs }, now) => [now - overdueMs],
      },
      stuck: {
        sql: `select t.name as subject, count(*)::float8 as count, min(r.id)::float8 as run,
                   case when bool_or(o.ended_ms is not null) then 'its worker is gone, and it was not taken back'
                        when bool_or(r.started_ms is null) then 'claimed, and never started' else 'past its timeout' end as text
            from ${s}.run r join ${s}.task t on t.id = r.task_id left join ${s}.session o on o.id = r.session_id
            where r.state = 3 and (o.ended_ms < $1 or (r.started_ms is null and greatest(r.due_ms, r.claimed_ms) < $1)
                  or r.started_ms + (t.definition->>'timeoutMs')::bigint < $1)
            group by t.name order by t.name limit ${most}`,
        valueOf: ({ stuckMs }, now) => [now - stuckMs],
      },
      unfired: {
        // Counted once, however often it is looked at.
        sql: `select t.name as subject, 0::float8 as count, null::float8 as run,
                   'a slot came due and was not planned: ' || to_char(to_timestamp(p.next_slot_ms / 1000.0) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as text
            from ${s}.plan p join ${s}.task t on t.id = p.task_id
            where p.next_slot_ms < $1 and not p.paused and t.deleted_ms is null order by p.next_slot_ms limit ${most}`,
        valueOf: ({ unfiredMs }, now) => [now - unfiredMs],
      },
      leaderless: {
        sql: `select '' as subject, 1::float8 as count, null::float8 as run,
                   'slots are planned a moment ahead only, by whoever is left; see carillon nodes' as text
            from ${s}.leadership l left join ${s}.session x on x.id = l.session_id
            where x.id is null or x.ended_ms < $1`,
        valueOf: ({ leaderlessMs }, now) => [now - leaderlessMs],
      },
    };

  return {
    succeededOf,

    /**
     * The same, as it was when the task failed last. Counters tell no order: where it has succeeded after that, the history
     * does. Failures are kept always; a success that is not is counted as before. @param since a time: not looked for before it
     */
    succeededAtFailure: (subject: string, since: string) => `(${succeededOf(subject)} - coalesce((
       select 1 - h.outcome from unnest(array[0, 1]::smallint[]) as o (outcome) cross join lateral (
         select outcome, ended_ms, id from ${s}.run_history
         where task_id = (select id from ${s}.task where name = ${subject}) and outcome = o.outcome and ended_ms > ${since}
         order by ended_ms desc, id desc limit 1) h
       order by h.ended_ms desc, h.id desc limit 1), 0))`,

    /** Groups that are at their limit now: room that is there when it is looked for may be a moment old. */
    async markFull(nowMs: number): Promise<void> {
      // By itself, and not of those that somebody claims of just now: whoever claims never waits for a look.
      await database.query(
        "alarm-groups",
        `update ${s}.group_limit l set full_ms = $1 where l.group_id = any (array(
           select g.group_id from ${s}.group_limit g where g.most <= (
             select count(*) from ${s}.task t join ${s}.run r on r.task_id = t.id and r.state = 3 where t.group_id = g.group_id)
           for update of g skip locked))`,
        [Math.round(nowMs)],
      );
    },

    async all(client: SqlClient, rules: readonly AlarmRule[], thresholds: Thresholds, now: number): Promise<Finding[]> {
      const found: Finding[] = rules.some((rule) => countedRules.has(rule)) ? await counted(client, now) : [];
      if (rules.includes("late")) {
        const { rows } = await client.query(
          `with told as (delete from ${s}.alarm_report returning *)
           select rule, subject, sum(count)::float8 as count,
                  (array_agg(text order by substring(text from '[0-9]+')::bigint desc nulls last))[1] as text, max(run_id)::float8 as run from told group by rule, subject`,
        );
        found.push(...rows.map((row) => findingOf(row.rule as AlarmRule, row)));
      }
      for (const rule of rules) {
        const question = asked[rule];
        if (!question) continue;
        const { rows } = await client.query(question.sql, question.valueOf(thresholds, now));
        found.push(...rows.map((row) => findingOf(rule, row)));
      }
      return found;
    },
  };
}

const findingOf = (rule: AlarmRule, { subject, count, text, run }: Record<string, unknown>): Finding => ({
  ...{ rule, subject: String(subject), count: Number(count), text: String(text) },
  runId: run === null ? null : Number(run),
});
