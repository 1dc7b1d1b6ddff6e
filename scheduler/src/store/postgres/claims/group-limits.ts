/**
 * Limits how many runs of a group are executed at once, across all workers. Claimed runs are counted, so claims enforce the limit: a claim
 * locks the group's row in `group_limit`, counts the claimed runs of the group's tasks, and only then claims more, in one transaction.
 * Claims of other groups do not wait. Ends, retries and reclaims keep no counter: they change the counted rows themselves, so a crash
 * cannot leave a wrong count.
 *
 * Claims without this lock leave out limited groups: they read a table that is empty unless an operator has set a limit. The limit is
 * therefore exact even if this process's cache of limits is outdated: until the cache has a group's limit, this process claims no runs of
 * the group.
 *
 * The tasks of a limited group share each claim fairly, because a group at its limit always has a backlog: at the highest priority that is
 * due, the claim takes one run of each task, starting after the task that was served last, then the next run of each task.
 */

import type { ClaimedRun, ClaimRequest, TurnRequest } from "../../../run/claim-store.ts";
import { notifySql } from "../cluster/signals.ts";
import type { Database } from "../database.ts";
import { runState, takesRuns } from "../states.ts";
import { earliestReadySql, prioritiesSql } from "./ready.ts";
import { type PickedRun, toStart } from "./to-start.ts";

/** The most time, in ms, until a worker whose claims are always full reads a new limit. */
const knownMs = 1_000;
/**
 * The most rounds in which one claim takes runs of one group. A round takes as many runs as the limit allows; another one follows only if
 * some runs must not start.
 */
const roundsMost = 20;
/** The delay, in ms, before the next try if due runs could not be claimed because another transaction is writing them. */
const busyMs = 50;

/** SQL: the limited groups. The database evaluates this once per statement; the table is empty if there are no limits. */
const limitedGroups = (s: string) => `array(select group_id from ${s}.group_limit)`;
const limitedTasks = (s: string) =>
  `array(select lt.id from ${s}.group_limit l join ${s}.task lt on lt.group_id = l.group_id)`;

/**
 * SQL: selects those of the given groups that have no limit, so that claims need no lock. A session's own group (a number below 0) passes,
 * although it may have runs of limited groups; `unlimitedRunSql` checks each of its runs.
 */
export const unlimitedSql = (s: string, groupIds: string) =>
  `(select x.group_id from unnest(${groupIds}) as x (group_id) where x.group_id <> all (${limitedGroups(s)}))`;
/** SQL condition: the run belongs to no limited group. Only runs in a session's own group (a number below 0) need this check. */
export const unlimitedRunSql = (s: string, groupId: string, taskId: string) =>
  `(${groupId} > 0 or ${taskId} <> all (${limitedTasks(s)}))`;
export const unlimitedGroupSql = (s: string, groupId: string) => `${groupId} <> all (${limitedGroups(s)})`;
export const limitedOfSql = (s: string, groupIds: string) =>
  `array(select group_id from ${s}.group_limit where group_id = any (${groupIds}))`;
/** SQL condition: the task belongs to a limited group, so the end of one of its runs frees a slot that other runs may wait for. */
export const makesRoomSql = (s: string, taskId: string) =>
  `exists (select from ${s}.group_limit l join ${s}.task lt on lt.group_id = l.group_id where lt.id = ${taskId})`;

/**
 * SQL: signals to the workers that runs of the tasks $1 have ended, if ready runs of their limited groups exist, even runs that are due
 * later. The signal is needed because a group at its limit reports no next due time. An addressed run also causes the signal, because it
 * may belong to any group. $2 is the time.
 */
export const roomToldSql = (s: string) => `
  select ${notifySql(s, "'ready ' || $2::bigint")} from (
    select from ${s}.group_limit l where l.group_id in (select group_id from ${s}.task where id = any($1))
    and (exists (select from ${s}.run where state = ${runState.ready} and group_id = l.group_id)
         or exists (select from ${s}.run where state = ${runState.ready} and group_id < 0)) limit 1) waiting`;

/**
 * SQL statement: records, for the groups of these runs' tasks, that the group was at its limit until now. A later claim reads the record to
 * compute since when a waiting run waited only for a worker. Rows are only inserted: an update would lock a row, and in a caller's long
 * transaction this lock would block the claims.
 * @param tasks SQL for an array with one task number for each run that frees its slot
 * @param counted true if these runs still have the state `claimed` in the snapshot of the statement
 */
export const groupFreedSql = (s: string, tasks: string, now: string, counted: boolean) => `
  insert into ${s}.group_freed (group_id, at_ms) select l.group_id, ${now} from ${s}.group_limit l
  where l.group_id in (select group_id from ${s}.task where id = any (${tasks})) and l.most <=
    (select count(*) from ${s}.task t join ${s}.run r on r.task_id = t.id and r.state = ${runState.claimed} where t.group_id = l.group_id)
    ${counted ? "" : `+ (select count(*) from unnest(${tasks}) as e (id) join ${s}.task t on t.id = e.id where t.group_id = l.group_id)`}`;

/** SQL for a claim's UPDATE: sets the time until which the limit of the group $2 delayed the run. `freed`: the rows of `groupFreedSql`. */
export const groupReadySql = (s: string) =>
  `, ready_ms = greatest(r.ready_ms, (select full_ms from ${s}.group_limit where group_id = $2), (select max(at_ms) from freed))`;

export interface LimitedAnswer {
  runs: ClaimedRun[];
  /** The next due time, as in the answer of a claim. A group at its limit has none, because the end of each of its runs is signalled. */
  nextDueMs: number | null;
}

type LimitedRequest = ClaimRequest & Partial<Pick<TurnRequest, "leastPriority" | "waitingTaskIds">>;

export class LimitedClaims {
  readonly #database: Database;
  readonly #takeSql: string;
  #known: ReadonlySet<number> = new Set();
  #knownMono = Number.NEGATIVE_INFINITY;

  /** @param takeSql SQL that claims the `picked` runs by row location: $1 session, $2 group, $6 time; it reads `freed` */
  constructor(database: Database, takeSql: string) {
    this.#database = database;
    this.#takeSql = takeSql;
  }

  /** Returns the given groups that the cache lists as limited. */
  of(groupIds: number[]): number[] {
    return this.#known.size === 0 ? [] : groupIds.filter((id) => this.#known.has(id));
  }

  /** Updates the cache. @returns the limited groups that were not cached before */
  learn(groupIds: number[], limited: number[]): number[] {
    this.#knownMono = this.#database.clock.monotonic();
    const unknown = limited.filter((id) => !this.#known.has(id));
    if (unknown.length > 0 || this.of(groupIds).length > limited.length)
      this.#known = new Set([...[...this.#known].filter((id) => !groupIds.includes(id)), ...limited]);
    return unknown;
  }

  /** Reads the limits again if the cache is old. Claims that are always full need this, because they never query the next due time. */
  async refresh(groupIds: number[]): Promise<void> {
    if (this.#database.clock.monotonic() - this.#knownMono < knownMs) return;
    const s = this.#database.schema;
    const [row] = await this.#database.query<{ limited: number[] }>(
      "group-limits",
      `select ${limitedOfSql(s, "$1::int[]")} as limited`,
      [groupIds],
    );
    this.learn(groupIds, row?.limited ?? []);
  }

  /**
   * Claims runs of limited groups.
   * @param request the request of a claim or of a fair claim (`turn`)
   * @param groupIds groups that are cached as limited
   */
  async claim(request: LimitedRequest, groupIds: number[], limit: number): Promise<LimitedAnswer> {
    const runs: ClaimedRun[] = [];
    let nextDueMs: number | null = null;
    const next = (ms: number) => {
      nextDueMs = Math.min(nextDueMs ?? Number.POSITIVE_INFINITY, ms);
    };
    const untilMs = Math.round(request.untilMs);
    // A worker that claims more runs than it has free slots would keep the group's slots from workers that have free slots.
    const most = Math.min(limit, Math.max(1, request.free ?? limit));
    for (const groupId of groupIds) {
      for (let round = 1; ; round++) {
        const look = await this.#look(request, groupId);
        if (look.room <= 0 || look.next === null) break;
        if (look.next > untilMs || runs.length >= most || round > roundsMost) {
          next(look.next);
          break;
        }
        const rows = await this.#take(request, groupId, Math.min(most - runs.length, look.room));
        if (rows.length === 0) {
          next(request.nowMs + busyMs);
          break;
        }
        runs.push(...(await toStart(this.#database, rows, request.nowMs)));
      }
    }
    return { runs, nextDueMs };
  }

  /** Reads the free slots of the group and its next due time, without a lock. `#take` checks both again under the lock. */
  async #look(
    { sessionId, exceptTaskIds }: ClaimRequest,
    groupId: number,
  ): Promise<{ room: number; next: number | null }> {
    const s = this.#database.schema;
    const [row] = await this.#database.query<{ room: number; next: number | null }>(
      "group-limit-look",
      `select coalesce((${roomSql(s, "$1")}), 0) as room, (${earliestReadySql(
        s,
        "(values ($1::bigint), (-$2::bigint)) as g (id)",
        "g.id",
        `task_id <> all ($3::int[]) and (g.id > 0 or task_id in (select id from ${s}.task where group_id = $1))`,
      )}) as next`,
      [groupId, sessionId, exceptTaskIds],
    );
    return { room: row?.room ?? 0, next: row?.next ?? null };
  }

  /*
   * Claims runs of one group. A first statement takes the lock, so that the snapshot of the next statement includes all claims of earlier
   * holders. `member` also includes the tasks of the first runs in the ready index, so that a run whose task has just moved to another
   * group is not left out for ever.
   */
  async #take(request: LimitedRequest, groupId: number, limit: number): Promise<PickedRun[]> {
    const s = this.#database.schema;
    return this.#database.transaction(async (client) => {
      await client.query(`select from ${s}.group_limit where group_id = $1 for update`, [groupId]);
      const { rows } = await client.query(
        `with alive as materialized (select 1 from ${s}.session where id = $1 and ${takesRuns}),
         room as materialized (
           select least($5::int, l.free)::int as places, l.free, l.cursor from (
             select (${roomSql(s, "$2")}) as free, cursor from ${s}.group_limit where group_id = $2) l),
         level as materialized (
           select p.priority, r.task_id from (values ($2::bigint), (-$1::bigint)) as g (id)
             cross join unnest(${prioritiesSql}) as p (priority) cross join lateral (
               select task_id from ${s}.run where state = ${runState.ready} and group_id = g.id and priority = p.priority and due_ms <= $4
               order by due_ms limit 1) r
           where exists (select from alive) and (select places from room) > 0),
         member as materialized (
           select id, row_number() over (order by id <= (select cursor from room), id) as n from (
             select id from ${s}.task where group_id = $2 and exists (select from level)
             union select task_id from level) t where id <> all ($3::int[])),
         candidate as materialized (
           select r.id, member.id as task_id, row_number() over (order by l.priority desc, r.k, member.n) as place
           from member cross join (select distinct priority from level) l cross join lateral (
             select x.id, row_number() over (order by x.due_ms) as k from (
               select id, due_ms from ${s}.run where task_id = member.id and state = ${runState.ready} and priority = l.priority and due_ms <= $4
               and group_id in ($2, -$1::bigint) order by due_ms limit (select places from room)) x) r
           where l.priority >= $7 and not (l.priority = $7 and member.id = any ($8::int[]))
           order by place limit (select greatest(places, 0) from room)),
         freed as (
           delete from ${s}.group_freed where group_id = $2 and exists (select from candidate) returning at_ms),
         turned as (
           update ${s}.group_limit set cursor = (select task_id from candidate order by place desc limit 1),
                  full_ms = case when (select count(*) from candidate) >= (select free from room) then $6::bigint
                                 else greatest(full_ms, (select max(at_ms) from freed)) end
           where group_id = $2 and exists (select from candidate)),
         picked as materialized (
           select r.ctid as place from ${s}.run r where r.id in (select id from candidate) and r.state = ${runState.ready} for update skip locked)
         ${this.#takeSql}`,
        [
          request.sessionId,
          groupId,
          request.exceptTaskIds,
          Math.round(request.untilMs),
          limit,
          Math.round(request.nowMs),
          request.leastPriority ?? 0,
          request.waitingTaskIds ?? [],
        ],
      );
      return rows as unknown as PickedRun[];
    });
  }
}

/** SQL: the number of free slots under the group's limit; no row if the group has no limit, because other claims then take its runs. */
const roomSql = (s: string, groupId: string) => `
  select l.most - (select count(*)::int from ${s}.task t join ${s}.run r on r.task_id = t.id and r.state = ${runState.claimed} where t.group_id = l.group_id)
  from ${s}.group_limit l where l.group_id = ${groupId}`;
