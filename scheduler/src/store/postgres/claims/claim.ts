import type { ClaimAnswer, ClaimedRun, ClaimRequest } from "../../../run/claim-store.ts";
import type { Database } from "../database.ts";
import { runRecall, runState } from "../states.ts";
import { type ClaimedColumns, claimedFields, claimedRuns, columnsSql } from "./claimed-columns.ts";
import { groupReadySql, LimitedClaims, unlimitedRunSql, unlimitedSql } from "./group-limits.ts";
import { nextDueOf } from "./next-due.ts";
import { earliest, prioritiesSql } from "./ready.ts";
import { toStart } from "./to-start.ts";

/** Used by the claims and the fair claims (`turn`) of one store: SQL texts that are built once, and this process's cache of limits. */
export interface Claiming {
  database: Database;
  claimSql: string;
  /** SQL: claims the `picked` runs by row location. $1 is the session, $6 the time. */
  takeSql: string;
  levelsSql: string;
  limited: LimitedClaims;
  askNext: ReturnType<typeof nextDueOf>;
}

export function claimingOf(database: Database): Claiming {
  const s = database.schema;
  const take = takeSql(s, "plan.followed");
  return {
    database,
    claimSql: claimSql(s, take),
    levelsSql: levelsSql(s),
    takeSql: take,
    // In a group with a limit, another run may wait for the end of any run, so all its runs are claimed as linked.
    limited: new LimitedClaims(database, takeSql(s, "true", groupReadySql(s))),
    askNext: nextDueOf(database),
  };
}

/*
 * SQL: claims the rows in `picked`, matched by their location (ctid), which stays valid because the rows are locked. With a join by run
 * number, the planner read the whole table for 2,000 of 100,000 rows: 40 ms instead of 15 ms. A row that moved between this statement's
 * snapshot and its lock is left for the next claim.
 * `followed`: SQL condition that other runs or tasks wait for the run's end. `more`: further columns to set.
 */
const takeSql = (
  s: string,
  followed: string,
  more = "",
) => `update ${s}.run r set state = case when plan.paused then ${runState.paused} else ${runState.claimed} end, version = plan.version, session_id = $1, claimed_ms = $6, recall = ${runRecall.none},
           started_ms = null, fence = nextval('${s}.fence'), attempt = r.attempt + case when plan.paused then 0 else 1 end${more}
    from ${s}.plan where r.ctid = any (array(select place from picked)) and plan.task_id = r.task_id
    returning ${claimedFields(followed)}, plan.paused`;

/*
 * SQL of a claim: one index probe per group and priority, the highest priority of all groups first. Each probe is bounded by the due time,
 * so future runs are not read, however many there are. A ready run whose task is paused gets the state `paused` instead of being claimed; a
 * transaction older than the pause may have enqueued such a run. A claim takes the task's current version, not the version with which the
 * run was enqueued, so a worker never receives a version that is older than the one in its cache.
 */
const claimSql = (s: string, take: string) => `
    with alive as materialized (select draining from ${s}.session where id = $1 and ended_ms is null),
    picked as materialized (
      select r.place
      from (select g.group_id, p.priority from ${unlimitedSql(s, "$2::int[]")} g cross join unnest(${prioritiesSql}) as p (priority) where p.priority >= $7 order by 2 desc) o
      cross join lateral (
        select ctid as place from ${s}.run
        where state = ${runState.ready} and group_id = o.group_id and priority = o.priority and due_ms <= $4 and task_id <> all ($3::int[])
          and ${unlimitedRunSql(s, "o.group_id", "task_id")}
        order by due_ms limit $5 for update skip locked) r
      where exists (select from alive where not draining) limit $5
    ), taken as (${take})${columnsSql("$6", `, coalesce((select draining from alive), false) as draining`)}`;

/**
 * Selects the priorities at which runs are due, highest first, as two lists: one for the groups $1, which have limits, and one for those of
 * the groups $2 that have none.
 */
const levelsSql = (s: string) => {
  const at = (groups: string, id: string) =>
    `array(select p.priority from unnest(${prioritiesSql}) as p (priority) where exists (select from ${groups} cross join lateral (
       select 1 from ${s}.run where state = ${runState.ready} and group_id = ${id} and priority = p.priority and due_ms <= $3 limit 1) r))`;
  return `select ${at("unnest($1::int[]) as g (id)", "g.id")} as limited, ${at(`${unlimitedSql(s, "$2::int[]")} g`, "g.group_id")} as others`;
};

/** The runs that one claim has taken so far. */
interface Taken {
  runs: ClaimedRun[];
  left: number;
  /** When the next run of a limited group can be claimed, as of the last read; null if no run waits or a signal will report it. */
  nextDueMs: number | null;
  /** True if the groups without a limit may have more due runs than the claim took. */
  full: boolean;
  draining: boolean;
}

export async function claim(claiming: Claiming, request: ClaimRequest): Promise<ClaimAnswer> {
  const { limited, askNext } = claiming;
  const { groupIds, limit, nowMs } = request;
  const taken: Taken = { runs: [], left: limit, nextDueMs: null, full: false, draining: false };
  const known = limited.of(groupIds);
  if (known.length > 0 && known.length < groupIds.length) await takeMixed(claiming, request, taken, known);
  else {
    if (known.length > 0) await takeLimited(claiming, request, taken, known, { most: limit });
    // This call is made even if all groups have limits, because a limit may have been removed since, and because the result shows whether
    // the session is draining.
    await takePlain(claiming, request, taken, 0);
  }
  const { runs, nextDueMs } = taken;
  if (taken.draining) return { runs, nextDue: async () => null, draining: true };
  // A full batch means that more runs are probably due, so a query for the next due time would be wasted.
  if (taken.full) {
    await limited.refresh(groupIds);
    return { runs, nextDue: async () => Math.round(request.untilMs) };
  }
  const learn = async () => {
    const { next, limited: found } = await askNext(groupIds, request.exceptTaskIds);
    return { next, unknown: limited.learn(groupIds, found) };
  };
  if (runs.length > 0) {
    const nextDue = async () => {
      const { next, unknown } = await learn();
      // A group turned out to be limited: poll again at once so that its runs are claimed.
      return earliest([next, nextDueMs, unknown.length > 0 ? nowMs : null]);
    };
    return { runs, nextDue };
  }
  const { next, unknown } = await learn();
  const more = await limited.claim(request, unknown, limit);
  return { runs: more.runs, nextDue: async () => earliest([next, nextDueMs, more.nextDueMs]) };
}

/**
 * Claims runs of groups with and without a limit, higher priorities first. At the same priority the limited groups come first, because
 * their limits restrict how many runs they take. If groups without a limit also have runs of that priority, the limited groups get at most
 * half of the worker's remaining free slots, because a limit may be large.
 */
async function takeMixed(claiming: Claiming, request: ClaimRequest, taken: Taken, known: number[]): Promise<void> {
  const { database } = claiming;
  const [levels] = await database.query<{ limited: number[]; others: number[] }>("claim-levels", claiming.levelsSql, [
    known,
    request.groupIds,
    Math.round(request.untilMs),
  ]);
  const { limited = [], others = [] } = levels ?? {};
  let above = Number.POSITIVE_INFINITY;
  for (const level of limited) {
    if (others.some((one) => level < one && one < above)) await takePlain(claiming, request, taken, level + 1);
    if (taken.left <= 0) return;
    above = level;
    const most = others.includes(level) ? Math.ceil(taken.left / 2) : taken.left;
    await takeLimited(claiming, request, taken, known, { most, leastPriority: level });
  }
  if (taken.left > 0) await takePlain(claiming, request, taken, 0);
  if (taken.left > 0) await takeLimited(claiming, request, taken, known, { most: taken.left });
}

async function takeLimited(
  { limited }: Claiming,
  request: ClaimRequest,
  taken: Taken,
  known: number[],
  { most, leastPriority = 0 }: { most: number; leastPriority?: number },
): Promise<void> {
  const free = Math.max(0, (request.free ?? request.limit) - taken.runs.length);
  const { runs, nextDueMs } = await limited.claim({ ...request, free, leastPriority }, known, most);
  taken.runs.push(...runs);
  taken.left -= runs.length;
  taken.nextDueMs = nextDueMs;
}

/** Claims runs of the groups without a limit. */
async function takePlain(
  { database, claimSql }: Claiming,
  request: ClaimRequest,
  taken: Taken,
  leastPriority: number,
): Promise<void> {
  const now = Math.round(request.nowMs);
  const [columns] = await database.query<ClaimedColumns & { draining: boolean }>("claim", claimSql, [
    request.sessionId,
    request.groupIds,
    request.exceptTaskIds,
    Math.round(request.untilMs),
    taken.left,
    now,
    leastPriority,
  ]);
  const rows = claimedRuns(columns, now);
  taken.runs.push(...(await toStart(database, rows, request.nowMs)));
  taken.full = rows.length >= taken.left;
  taken.left -= rows.length;
  taken.draining ||= columns?.draining ?? false;
}
