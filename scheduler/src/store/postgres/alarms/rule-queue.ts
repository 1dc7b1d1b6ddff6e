import { longestQueue, type StoredRule, thresholdsOf } from "../../../alarms/stored-rules.ts";
import { formatDuration } from "../../../base/duration.ts";
import { isCarillonError, isStoreAway, messageOf } from "../../../base/errors.ts";
import type { Database } from "../database.ts";
import { runState } from "../states.ts";
import { most } from "./alarm-findings.ts";
import type { Finder, Found } from "./watched.ts";

/** How often the queues are counted during the time `within` over which growth is measured. */
const counts = 10;
/** After a count that took n ms, the rule's queues are not counted for `restTimes` times n ms: counting takes 2 % of a processor at most. */
const restTimes = 50;

type Rule = Pick<StoredRule, "name" | "version" | "content">;

/** The waiting due runs of a task. */
interface Queue {
  id: number;
  name: string;
  waiting: number;
}

/** One count of the queues in the scope of a rule. */
export interface QueueCount {
  version: number;
  atMs: number;
  /** Ordered by name. For a rule without `grows` they are the queues that are too long, counted up to one run above its threshold. */
  queues: Queue[];
}

/** The last attempt to count the queues in the scope of a rule. */
interface Attempt {
  version: number;
  atMs: number;
  tookMs: number;
}

/**
 * Counts queues for the rules of kind queue. It does so before the transaction that evaluates the rules, because a count of long queues can
 * take seconds, in which no rule could be changed.
 */
export class QueueCounter {
  readonly #database: Database;
  readonly #counted = new Map<string, QueueCount>();
  readonly #attempts = new Map<string, Attempt>();

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Counts the queues of the rules that are to be counted now. A count that fails is logged, and the other rules are still counted.
   * @param rules all enabled rules of kind queue @param scopeOf returns the SQL condition of a rule's scope and its values $1 to $4
   * @returns the last count for each rule that has been counted; it may be of an earlier version of the rule
   * @throws if the store is away
   */
  async count(
    rules: readonly Rule[],
    scopeOf: (rule: Rule) => { scope: string; values: readonly unknown[] },
    now: number,
  ): Promise<ReadonlyMap<string, QueueCount>> {
    const { clock, log } = this.#database;
    for (const known of [this.#counted, this.#attempts])
      for (const name of known.keys()) if (!rules.some((rule) => rule.name === name)) known.delete(name);
    for (const rule of rules) {
      const { name, version } = rule;
      if (!this.#isDue(rule, now)) continue;
      const beganMono = clock.monotonic();
      try {
        this.#counted.set(name, { version, atMs: now, queues: await this.#queues(rule, scopeOf(rule), now) });
      } catch (error) {
        if (isStoreAway(error) || isCarillonError(error, "STOPPED")) throw error;
        log.warn({ rule: name, error: messageOf(error) }, "the queues of an alarm rule could not be counted");
      }
      this.#attempts.set(name, { version, atMs: now, tookMs: clock.monotonic() - beganMono });
    }
    return this.#counted;
  }

  #isDue({ name, version, content }: Rule, now: number): boolean {
    const last = this.#attempts.get(name);
    // A rule that is new or was changed is counted at once. A count of the future is from before cluster time went back.
    if (last?.version !== version || last.atMs > now) return true;
    const { more, withinMs } = thresholdsOf(content);
    const everyMs = more === null ? Math.ceil(withinMs / counts) : 0;
    return now - last.atMs >= Math.max(everyMs, restTimes * last.tookMs);
  }

  #queues(
    { content }: Rule,
    { scope, values }: { scope: string; values: readonly unknown[] },
    now: number,
  ): Promise<Queue[]> {
    const s = this.#database.schema;
    const { more, grows } = thresholdsOf(content);
    return this.#database.query<Queue>(
      "alarm-queues",
      `select t.id, t.name, q.waiting from ${s}.task t cross join lateral (select count(*)::int as waiting from (
         select from ${s}.run r where r.task_id = t.id and r.due_ms <= $5 and r.state in (${runState.held}, ${runState.ready}) limit $6) w) q
       where ${scope} and q.waiting > $7 order by t.name`,
      [...values, now, grows === null ? (more ?? 0) + 1 : longestQueue, grows === null ? more : 0],
    );
  }
}

/** Returns tasks with more waiting due runs than the threshold, and tasks that have many more of them than some time ago. */
export async function queueFindings(finder: Finder, count: QueueCount): Promise<Found[]> {
  const { more, grows } = thresholdsOf(finder.rule.content);
  const found = [
    ...(more === null ? [] : long(count, more)),
    ...(grows === null ? [] : await growing(finder, count, grows)),
  ];
  return [...new Map(found.map((one) => [one.subject, one])).values()];
}

const long = ({ queues }: QueueCount, more: number): Found[] =>
  queues
    .filter(({ waiting }) => waiting > more)
    .slice(0, most)
    .map(({ name }) => ({ subject: name, count: 1, text: `more than ${more} due runs wait`, runId: null }));

/**
 * Finds queues that have grown: compares the last count of each queue with the count `withinMs` before it. The row with the task 0 stands
 * for the count as a whole, because a queue without waiting runs has no row.
 */
async function growing(finder: Finder, count: QueueCount, grows: number): Promise<Found[]> {
  const { client, s, rule } = finder;
  const { withinMs } = thresholdsOf(rule.content);
  await keep(finder, count, withinMs);
  const { rows } = await client.query(
    `with last as (select max(at_ms) as at_ms from ${s}.alarm_queue where rule = $1 and task_id = 0),
          former as (select max(q.at_ms) as at_ms from ${s}.alarm_queue q, last
                     where q.rule = $1 and q.task_id = 0 and q.at_ms <= last.at_ms - $2::bigint)
     select t.name as subject, q.waiting, q.waiting - coalesce(f.waiting, 0) as more, last.at_ms - former.at_ms as "spanMs"
     from last join former on former.at_ms is not null join ${s}.alarm_queue q on q.rule = $1 and q.at_ms = last.at_ms
     join ${s}.task t on t.id = q.task_id
     left join ${s}.alarm_queue f on f.rule = $1 and f.task_id = q.task_id and f.at_ms = former.at_ms
     where t.deleted_ms is null and q.waiting - coalesce(f.waiting, 0) > $3 order by t.name limit ${most}`,
    [rule.name, withinMs, grows],
  );
  return rows.map(({ subject, waiting, more, spanMs }) => ({
    subject: String(subject),
    count: 1,
    text: `${waiting} due runs wait, ${more} more than ${formatDuration(Math.round(Number(spanMs) / 1_000) * 1_000)} ago`,
    runId: null,
  }));
}

/**
 * Stores the count, if the last stored one is old enough, and deletes the counts before the one with which the last one is compared. That one
 * is kept however old it is, because counts of long queues may follow each other after a longer time than `withinMs`.
 */
async function keep({ client, s, now, rule }: Finder, { atMs, queues }: QueueCount, withinMs: number): Promise<void> {
  // Rows of the future are from before the cluster's time went back.
  await client.query(`delete from ${s}.alarm_queue where rule = $1 and at_ms > $2`, [rule.name, now]);
  const { rows: recent } = await client.query(
    `select from ${s}.alarm_queue where rule = $1 and task_id = 0 and at_ms > $2`,
    [rule.name, atMs - Math.ceil(withinMs / counts)],
  );
  if (recent.length > 0) return;
  await client.query(
    `insert into ${s}.alarm_queue (rule, task_id, at_ms, waiting)
     select $1, 0, $2::bigint, 0 union all select $1, id, $2, waiting from unnest($3::int[], $4::int[]) as q (id, waiting)`,
    [rule.name, atMs, queues.map(({ id }) => id), queues.map(({ waiting }) => waiting)],
  );
  await client.query(
    `delete from ${s}.alarm_queue where rule = $1
     and at_ms < (select max(at_ms) from ${s}.alarm_queue where rule = $1 and task_id = 0 and at_ms <= $2)`,
    [rule.name, atMs - withinMs],
  );
}
