import { type Deadline, deadlinesAround, type RuleKind, thresholdsOf } from "../../../alarms/stored-rules.ts";
import { formatDuration } from "../../../base/duration.ts";
import { runOutcome, runState, takesRuns } from "../states.ts";
import { most } from "./alarm-findings.ts";
import { clusterFinders } from "./cluster-findings.ts";
import type { Find, Found } from "./watched.ts";

/** Runs that ended longer ago than this, in ms, are ignored. The bound also limits how many partitions of the history are read. */
const lookedBackMs = 30 * 86_400_000;
/** A task's usual duration is measured over its last `usualOf` successful runs, and is unknown with fewer than `usualLeast`. */
const usualOf = 50;
const usualLeast = 5;
/**
 * The end of a run is stored at most this many ms after the time of the end; a run that is stored later is examined only as the last one.
 */
const storedWithinMs = 5_000;
/** Ends that are older than this, in ms, count as former ones, even if the rules have not been evaluated since. */
const unseenMostMs = 600_000;
/** A changed definition is found within this time, in ms, of the change: longer than a cluster is usually without a leader. */
const changedBackMs = 3_600_000;
const longestText = 300;

/** SQL condition: the task `t` stores no rows of its successful runs. */
const keepsNoneSql = "t.definition->>'history' = 'failures'";

/**
 * SQL: the duration, from start to end in ms, that the share `share` of the last successful runs of the task `t` did not exceed. The column
 * is `usual`, null if there are too few such runs.
 * @param share for example 0.9
 * @param since the SQL parameter with a time in ms; runs that ended before it are not read
 */
const usualSql = (s: string, share: number, since: string): string =>
  `(select case when count(*) >= ${usualLeast} then percentile_cont(${share}) within group (order by h.took) end::float8 as usual
    from (select ended_ms - started_ms as took from ${s}.run_history
          where task_id = t.id and outcome = ${runOutcome.succeeded} and started_ms is not null and ended_ms > ${since}
          order by ended_ms desc, id desc limit ${usualOf}) h)`;

const spanText = (ms: number): string => formatDuration(ms < 1_000 ? Math.round(ms) : Math.round(ms / 1_000) * 1_000);

/**
 * Finds tasks with too many failures among their last runs. It checks only tasks with a new failure and tasks with an open alarm of this
 * rule, because other tasks have no new failure.
 */
const failed: Find = async ({ client, s, now, rule, scope, values, news }) => {
  const { failures, of } = thresholdsOf(rule.content);
  const { rows: open } = await client.query(
    `select subject from ${s}.alarm where rule = $1 and cleared_ms is null limit ${most}`,
    [rule.name],
  );
  const tasks = new Set(open.map(({ subject }) => String(subject)));
  for (const { rule: found, subject } of news) if (found !== "unfired" && tasks.size < 2 * most) tasks.add(subject);
  if (tasks.size === 0) return [];
  const last = (outcome: number) => `(select id, outcome, ended_ms from ${s}.run_history
      where task_id = t.id and outcome = ${outcome} and ended_ms > $6 order by ended_ms desc, id desc limit $7)`;
  const { rows } = await client.query(
    `select t.name as subject, x.failed, x.runs, x.run::float8 as run
     from ${s}.task t cross join lateral (
       select count(*) filter (where outcome = ${runOutcome.failed})::int as failed, count(*)::int as runs,
              max(id) filter (where outcome = ${runOutcome.failed}) as run
       from (select * from (${last(runOutcome.succeeded)} union all ${last(runOutcome.failed)}) e
             order by ended_ms desc, id desc limit $7) l) x
     where ${scope} and t.name = any ($5) and x.failed >= $8 and not coalesce(${keepsNoneSql}, false)
     order by x.failed desc, t.name limit ${most}`,
    [...values, [...tasks], now - lookedBackMs, of, failures],
  );
  return rows.map(({ subject, failed, runs, run }) => ({
    subject: String(subject),
    count: Number(failed),
    text: runs === 1 ? "the last run failed" : `${failed} of the last ${runs} runs failed`,
    runId: Number(run),
  }));
};

/** Finds tasks with a run that has been executing for too long. Reads only runs that started longer ago than the shortest threshold. */
const slow: Find = async ({ client, s, now, rule, scope, values }) => {
  const { longerMs, times, leastMs } = thresholdsOf(rule.content);
  const least = Math.min(longerMs ?? Number.POSITIVE_INFINITY, times === null ? Number.POSITIVE_INFINITY : leastMs);
  const { rows } = await client.query(
    `select t.name as subject, r.run::float8 as run, ($5::bigint - r.started_ms)::float8 as "forMs", u.usual
     from (select task_id, min(started_ms) as started_ms, (array_agg(id order by started_ms, id))[1] as run from ${s}.run
           where state = ${runState.claimed} and started_ms < $5::bigint - $6::bigint group by task_id) r
     join ${s}.task t on t.id = r.task_id cross join lateral ${usualSql(s, 0.9, "$7")} u
     where ${scope} and ($5::bigint - r.started_ms > $8::float8
       or $5::bigint - r.started_ms > $9::float8 and $5::bigint - r.started_ms > $10::float8 * u.usual)
     order by t.name limit ${most}`,
    [...values, now, least, now - lookedBackMs, longerMs, leastMs, times],
  );
  return rows.map(({ subject, run, forMs, usual }): Found => {
    const usually = usual === null ? "" : `; 90 % of its runs take at most ${spanText(Number(usual))}`;
    const text = `a run has been under way for ${spanText(Number(forMs))}${usually}`;
    return { subject: String(subject), count: 1, text, runId: Number(run) };
  });
};

/**
 * Finds tasks with a run that succeeded too quickly: the last one, or one of the last ten that ended since the evaluation before this one. The
 * task's usual is what 90 % of the runs before them took at least.
 */
const quick: Find = async ({ client, s, now, lastLookMs, rule, scope, values }) => {
  const { shorterMs, times, leastMs } = thresholdsOf(rule.content);
  const { rows } = await client.query(
    `select t.name as subject, q.run::float8 as run, q.took::float8 as took, q.usual
     from ${s}.task t cross join lateral (
       select (array_agg(id order by took, id) filter (where fresh))[1] as run, min(took) filter (where fresh) as took,
              case when count(*) filter (where not fresh) >= ${usualLeast}
                then percentile_cont(0.1) within group (order by took) filter (where not fresh) end::float8 as usual
       from (select id, took, n = 1 or n <= 10 and ended_ms > $5::bigint as fresh
             from (select id, ended_ms, ended_ms - started_ms as took, row_number() over (order by ended_ms desc, id desc) as n
                   from ${s}.run_history where task_id = t.id and outcome = ${runOutcome.succeeded} and started_ms is not null and ended_ms > $6
                   order by ended_ms desc, id desc limit ${usualOf}) l) h) q
     where ${scope} and not coalesce(${keepsNoneSql}, false)
       and (q.took < $7::float8 or q.usual >= $8::float8 and q.took * $9::float8 < q.usual) order by t.name limit ${most}`,
    [
      ...values,
      Math.max((lastLookMs ?? now) - storedWithinMs, now - unseenMostMs),
      now - lookedBackMs,
      shorterMs,
      leastMs,
      times,
    ],
  );
  return rows.map(({ subject, run, took, usual }) => ({
    subject: String(subject),
    count: 1,
    text: `a run took only ${spanText(Number(took))}${usual === null ? "" : `; 90 % of its runs take at least ${spanText(Number(usual))}`}`,
    runId: Number(run),
  }));
};

interface DeadlineRow {
  subject: string;
  wasDone: boolean;
  isDone: boolean;
  bornMs: number | null;
  startedMs: number | null;
  waitsMs: number | null;
  slotMs: number | null;
  usual: number | null;
}

const deadline: Find = async ({ client, s, now, rule, scope, values }) => {
  const { last, next } = deadlinesAround(rule.content, now);
  const done = (since: string) => `exists (select from ${s}.run_history h
    where h.task_id = t.id and h.outcome = ${runOutcome.succeeded} and h.ended_ms > ${since} and h.due_ms > ${since})`;
  const forecasts = (rule.content.forecast ?? true) && now >= next.fromMs;
  // The condition of `missedBy` stands in the statement, too, so that tasks that are in time do not take the places of others.
  const { rows } = await client.query(
    `select * from (
       select t.name as subject, ${done("$5::bigint")} as "wasDone", ${done("$6::bigint")} as "isDone",
         (select v.changed_ms from ${s}.task_version v where v.task_id = t.id and v.version = 1)::float8 as "bornMs",
         (select min(r.started_ms) from ${s}.run r where r.task_id = t.id and r.state = ${runState.claimed})::float8 as "startedMs",
         (select min(r.due_ms) from ${s}.run r where r.task_id = t.id and r.state <> ${runState.claimed})::float8 as "waitsMs",
         (select p.next_slot_ms from ${s}.plan p where p.task_id = t.id)::float8 as "slotMs", u.usual
       from ${s}.task t cross join lateral ${usualSql(s, 0.5, "$7")} u
       where ${scope} and t.paused_ms is null and not coalesce(${keepsNoneSql}, false) offset 0) x
     where not "wasDone" and coalesce("bornMs" < $8::float8, true)
       or $9::boolean and not "isDone" and coalesce("startedMs", "waitsMs", "slotMs") is not null
         and coalesce("startedMs", greatest($10::float8, least("waitsMs", "slotMs"))) + coalesce(usual, 0) > $11::float8
     order by subject limit ${most}`,
    [...values, last.fromMs, next.fromMs, now - lookedBackMs, last.byMs, forecasts, now, next.byMs],
  );
  const by = `${rule.content.by} ${rule.content.zone}`;
  return (rows as unknown as DeadlineRow[]).flatMap((row): Found[] => {
    const found = { subject: row.subject, runId: null };
    if (!row.wasDone && (row.bornMs === null || row.bornMs < last.byMs))
      return [{ ...found, count: 1, text: `not done by ${by}${row.startedMs === null ? "" : "; a run is under way"}` }];
    const why = forecasts && !row.isDone ? missedBy(row, next, now) : null;
    // The count of a forecast is 0, so that a missed deadline found later counts as worse, and is sent.
    return why === null ? [] : [{ ...found, count: 0, text: `will probably not be done by ${by}: ${why}` }];
  });
};

/**
 * Returns why the task will probably miss its next deadline; null if it will not, or if nothing is known about the next run.
 */
function missedBy(row: DeadlineRow, { byMs }: Deadline, now: number): string | null {
  const usually = row.usual === null ? "" : `, and usually takes ${spanText(row.usual)}`;
  const took = row.usual ?? 0;
  if (row.startedMs !== null)
    return row.startedMs + took > byMs ? `it has been under way for ${spanText(now - row.startedMs)}${usually}` : null;
  const starts = [row.waitsMs, row.slotMs].filter((ms) => ms !== null);
  // Other code enqueues this task's runs, so the time of its next run is unknown.
  if (starts.length === 0) return null;
  const startMs = Math.max(now, Math.min(...starts));
  if (startMs + took <= byMs) return null;
  return startMs > byMs ? "its next run is due later" : `it has not begun${usually}`;
}

const ended: Find = async ({ client, s, scope, values }) => {
  const { rows } = await client.query(
    `select t.name as subject from ${s}.plan p join ${s}.task t on t.id = p.task_id
     where ${scope} and p.next_slot_ms is null and not p.paused and t.definition->'schedule'->>'type' <> 'manual'
       and not exists (select from ${s}.run r where r.task_id = t.id) order by t.name limit ${most}`,
    [...values],
  );
  const text = "no slot is left: give it another schedule, or remove it";
  return rows.map(({ subject }) => ({ subject: String(subject), count: 1, text, runId: null }));
};

const unserved: Find = async ({ client, s, now, rule, scope, values }) => {
  const { rows } = await client.query(
    `with alive as materialized (
       select groups, tasks, labels from ${s}.session
       where ((${takesRuns}) or ended_ms > $5::bigint) and coalesce(capacity, 1) > 0)
     select t.name as subject, g.name as "group" from ${s}.task t join ${s}.worker_group g on g.id = t.group_id
     where ${scope} and t.paused_ms is null and not exists (
       select from alive o where g.name = any (o.groups) and (o.tasks is null or coalesce(t.of_name, t.name) = any (o.tasks))
         and o.labels @> coalesce(t.definition->'labels', '{}')) order by t.name limit ${most}`,
    [...values, now - thresholdsOf(rule.content).afterMs],
  );
  return rows.map(({ subject, group }) => ({
    subject: String(subject),
    count: 1,
    text: `no live worker of the group ${group} takes its runs`,
    runId: null,
  }));
};

/**
 * Finds tasks with a new version of their definition. Versions that the rule has found are kept by number. If a task has no kept version,
 * only versions after the rule's own last change and its last alarm about the task count: an older version of Carillon kept none. The first
 * version of a task is no change.
 */
const changed: Find = async ({ client, s, now, rule, scope, values }) => {
  const since = now - changedBackMs;
  const { rows } = await client.query(
    `with found as materialized (
       select t.id, t.name as subject, count(*)::int as versions, max(v.version) as version,
         (array_agg(format('version %s by %s', v.version, v.author) || case when v.reason = '' then '' else ': ' || v.reason end
                    order by v.version desc))[1] as text
       from ${s}.task t join ${s}.task_version v on v.task_id = t.id
       left join ${s}.alarm_version k on k.rule = $6 and k.task_id = t.id
       where ${scope} and t.changed_ms > $5 and v.changed_ms > $5
         and case when k.version is null then v.changed_ms > greatest((select changed_ms from ${s}.alarm_rule where name = $6),
                                                                      (select last_ms from ${s}.alarm where rule = $6 and subject = t.name))
                  else v.version > k.version end
         and exists (select from ${s}.task_version w where w.task_id = t.id and w.version < v.version)
       group by t.id order by t.name limit ${most}),
     kept as (
       insert into ${s}.alarm_version (rule, task_id, version) select $6, id, version from found
       on conflict (rule, task_id) do update set version = excluded.version)
     select subject, versions, text from found`,
    [...values, since, rule.name],
  );
  // Twice the time, because the versions of a task may bear times in another order.
  await client.query(
    `delete from ${s}.alarm_version k where rule = $1
     and not exists (select from ${s}.task_version v where v.task_id = k.task_id and v.version >= k.version and v.changed_ms > $2)`,
    [rule.name, since - changedBackMs],
  );
  return rows.map(({ subject, versions, text }) => ({
    subject: String(subject),
    count: Number(versions),
    text: String(text).slice(0, longestText),
    runId: null,
  }));
};

/** The functions that find subjects, by kind of rule. The kinds left out use the statements of built-in rules; see follow-rules.ts. */
export const finders: Record<Exclude<RuleKind, "overdue" | "stuck" | "unfired" | "paused" | "queue">, Find> = {
  failed,
  slow,
  quick,
  deadline,
  ended,
  unserved,
  changed,
  ...clusterFinders,
};
