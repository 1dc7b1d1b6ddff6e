import { limits } from "../limits.ts";
import type { ClaimAnswer, ClaimedRun, ClaimStore, ReclaimedRun, Settlement, SqlClient } from "../store.ts";
import { type ClaimedColumns, claimedRuns, columnsSql } from "./claimed-columns.ts";
import type { Database } from "./database.ts";
import { finishing, isUnkept, leaving } from "./dead-letters.ts";
import { type EndedRun, follow, LooseEnds, looseEndsOf, tieUp } from "./following.ts";
import { lockPlans, settleGates } from "./gates.ts";
import { LimitedClaims, makesRoomSql, roomToldSql, unlimitedRunSql, unlimitedSql } from "./group-limits.ts";
import { endLate } from "./late.ts";
import { comingOf, nextDueOf } from "./next-due.ts";
import { earliest, prioritiesSql } from "./ready.ts";
import { allEnded, asEnded, retries, tasksOf } from "./retries.ts";
import { lockGates } from "./retry-tokens.ts";
import { takeUpLeft } from "./set-aside.ts";
import { byNumber, type EndedTogether, endedEachSql, fencesOf, lateSql, settledSql, settledValues } from "./settle.ts";
import { notifySql, unaddressed } from "./signals.ts";
import { type TurnRow, turnSql, turnValues } from "./turns.ts";
import { withdraw } from "./withdraw.ts";

export type Ended = Settlement & { verdict: Extract<Settlement["verdict"], { kind: "ended" }> };

/** With it, for other stores: how claimed runs end within a transaction. */
export interface Endings {
  finishIn(client: SqlClient, ended: Ended[], nowMs: number, loose?: LooseEnds): Promise<number[]>;
}

export function claimStore(database: Database): ClaimStore & Endings {
  const s = database.schema;
  const { retry, retryIn } = retries(database);
  const fields = (
    followed: string,
  ) => `r.id as "runId", r.task_id as "taskId", r.version, r.fence, r.attempt, r.due_ms as "dueMs", r.slot_ms as "slotMs",
    r.priority, r.key, r.payload, r.shard, r.checkpoint as state, (r.gate > 0 or r.after_end or r.parent_id is not null or ${followed}) as linked`;
  const bookFields = fields(
    `exists (select from ${s}.plan p where p.task_id = r.task_id and p.followed) or ${makesRoomSql(s, "r.task_id")}`,
  );

  /*
   * By the rows' places, which their locks hold fast: joined by number, the planner read the whole table for 2,000 of
   * 100,000 rows, 40 ms instead of 15. A row that moved between this statement's snapshot and its lock is left for the
   * next claim. `followed`: whether anything waits for the end of it.
   */
  const taking = (
    followed: string,
  ) => `update ${s}.run r set state = case when plan.paused then 1 else 3 end, version = plan.version, session_id = $1, claimed_ms = $6, recall = 0,
           started_ms = null, fence = nextval('${s}.fence'), attempt = r.attempt + case when plan.paused then 0 else 1 end
    from ${s}.plan where r.ctid = any (array(select place from picked)) and plan.task_id = r.task_id
    returning ${fields(followed)}, plan.paused`;
  const takeSql = taking("plan.followed");
  // Of a group with a limit others wait for every end.
  const limited = new LimitedClaims(database, taking("true"), toStart);
  const askNext = nextDueOf(database);

  /*
   * One probe of the index per group and priority, each bounded by the due time, so runs of the future are not looked
   * at however many they are. A run whose task was paused after the run was read into this statement, or enqueued by
   * a transaction older than the pause, is put aside here instead of claimed. A claim takes the task's version of this
   * moment, whatever was known when the run was made: no worker's memory can be too old for what it claims.
   */
  const claimSql = `
    with alive as materialized (select 1 from ${s}.session where id = $1 and ended_ms is null),
    picked as materialized (
      select r.place from ${unlimitedSql(s, "$2::int[]")} g cross join unnest(${prioritiesSql}) as p (priority)
      cross join lateral (
        select ctid as place from ${s}.run
        where state = 2 and group_id = g.group_id and priority = p.priority and due_ms <= $4 and task_id <> all ($3::int[])
          and ${unlimitedRunSql(s, "g.group_id", "task_id")}
        order by due_ms limit $5 for update skip locked) r
      where exists (select from alive) limit $5
    ), taken as (${takeSql})${columnsSql("$6")}`;

  return {
    finishIn,

    async claim(request): Promise<ClaimAnswer> {
      const { groupIds, limit, nowMs } = request;
      const until = Math.round(request.untilMs);
      const known = limited.of(groupIds);
      // First, for they take no more than their limits, and not all, for these may be large.
      const first = await limited.claim(request, known, known.length < groupIds.length ? Math.ceil(limit / 2) : limit);
      const left = limit - first.runs.length;
      const now = Math.round(nowMs);
      const [columns] = await database.query<ClaimedColumns>("claim", claimSql, [
        request.sessionId,
        groupIds,
        request.exceptTaskIds,
        until,
        left,
        now,
      ]);
      const rows = claimedRuns(columns, now);
      const runs = [...first.runs, ...(await toStart(rows, nowMs))];
      // A full batch says that there is more; asking when would be a wasted question.
      if (rows.length >= left) {
        await limited.refresh(groupIds);
        return { runs, nextDue: async () => until };
      }
      const learn = async () => {
        const { next, limited: found } = await askNext(groupIds, request.exceptTaskIds);
        return { next, unknown: limited.learn(groupIds, found) };
      };
      if (runs.length > 0) {
        const nextDue = async () => {
          const { next, unknown } = await learn();
          // Of limits that were not known until now: the next claim looks there.
          return earliest([next, first.nextDueMs, unknown.length > 0 ? nowMs : null]);
        };
        return { runs, nextDue };
      }
      const { next, unknown } = await learn();
      const more = await limited.claim(request, unknown, limit);
      return { runs: more.runs, nextDue: async () => earliest([next, first.nextDueMs, more.nextDueMs]) };
    },

    coming: comingOf(database),

    async turn(request) {
      const rows = await database.query<TurnRow<ClaimedRun & { paused: boolean }>>(
        "claim-turn",
        turnSql(s, takeSql),
        turnValues(request),
      );
      const claimed = rows.flatMap(({ runId, ...run }) => (runId === null ? [] : [{ ...run, runId }]));
      const runs = await toStart(claimed, request.nowMs);
      // Their tasks take turns in every claim; here it is the groups' turn.
      const { free: _, ...asked } = request;
      const more = await limited.claim(
        asked,
        limited.of(request.groupIds),
        Math.min(request.each, request.limit - runs.length),
      );
      return { runs: [...runs, ...more.runs], lastTaskId: rows[0]?.lastTaskId ?? 0 };
    },

    async settle(sessionId, given, nowMs) {
      const settlements = byNumber(given);
      const applied = await database.persist(async () => {
        const retried = await retry(settlements, nowMs);
        // A retry that was not taken is of a run or task that was stopped meanwhile, or is no longer ours.
        const ended = await finishAll(allEnded(settlements, retried), nowMs);
        return [...retried, ...ended, ...(await release(settlements, nowMs))];
      });
      if (applied.length === settlements.length) return new Set<number>();
      const done = new Set(applied);
      return refused(
        sessionId,
        settlements.filter(({ fence }) => !done.has(fence)),
        nowMs,
      );
    },

    async settleIn(client, _sessionId, settlement, nowMs) {
      const [ended] = asEnded(settlement, new Set());
      // It is asked about again when the handler has returned, with another time: that a row can answer, a trace cannot.
      return ended !== undefined && (await finishIn(client, [{ ...ended, unkept: false }], nowMs)).length > 0;
    },

    async heldBy(sessionId) {
      return database.query<ClaimedRun>(
        "claim-held",
        `select ${bookFields} from ${s}.run r where r.session_id = $1 and r.state = 3`,
        [sessionId],
      );
    },

    async adopt(oldSessionId, newSessionId) {
      return database.query<ClaimedRun>(
        "claim-adopt",
        `update ${s}.run r set session_id = $2 where r.session_id = $1 and r.state = 3 returning ${bookFields}`,
        [oldSessionId, newSessionId],
      );
    },

    async recalls(sessionId) {
      return database.query(
        "claim-recalls",
        `select id as "runId", fence, case recall when 1 then 'cancel' else 'withdraw' end as kind, coalesce(recall_why, '') as why
         from ${s}.run where session_id = $1 and state = 3 and recall > 0`,
        [sessionId],
      );
    },

    async report(sessionId, given) {
      const reports = byNumber(given);
      await database.query(
        "claim-report",
        `update ${s}.run r set started_ms = i.started_ms, progress = coalesce(i.progress, r.progress),
                recall = case when r.recall = 2 then 0 else r.recall end
         from unnest((select $2::bigint[]), (select $3::bigint[]), (select $4::bigint[]), (select $5::jsonb[]))
              as i (id, fence, started_ms, progress)
         where r.id = i.id and r.fence = i.fence and r.state + 0 = 3 and r.session_id = $1`,
        [
          sessionId,
          reports.map(({ runId }) => runId),
          reports.map(({ fence }) => fence),
          reports.map(({ startedMs }) => Math.round(startedMs)),
          reports.map(({ progress }) => progress),
        ],
      );
    },

    async reclaim(sessionId, silentForMs, nowMs, limit): Promise<ReclaimedRun[]> {
      const loose = new LooseEnds();
      const reclaimed = await database.transaction(async (client) => {
        const { rows: tasks } = await client.query(
          `select distinct task_id from ${s}.run where session_id = $1 and state = 3 and (gate > 0 or after_end)`,
          [sessionId],
        );
        await lockPlans(
          client,
          s,
          tasks.map((row) => row.task_id as number),
        );
        const { rows } = await client.query(
          `select r.id as "runId", r.task_id as "taskId", r.fence, r.attempt, r.session_id as "sessionId", r.started_ms as "startedMs",
                  r.due_ms as "dueMs", (r.gate > 0 or r.after_end) as linked,
                  case when r.recall = 1 or t.deleted_ms is not null then 'cancel'
                       when r.started_ms is null and r.due_ms > o.ended_ms then 'release'
                       when t.definition->>'onWorkerLost' = 'ask' then 'ask'
                       when t.definition->>'onWorkerLost' = 'retry'
                        and (select count(*) from ${s}.attempt a where a.run_id = r.id and a.outcome = 'lost') < $3 then 'retry'
                       else 'fail' end as outcome, t.definition->>'onWorkerLost' = 'retry' as blamed
           from ${s}.run r join ${s}.task t on t.id = r.task_id join ${s}.session o on o.id = r.session_id
           where r.session_id = $1 and r.state = 3 and o.ended_ms is not null
             and (r.started_ms is null or (t.definition->>'graceMs')::bigint <= $2)
           order by r.id limit $4 for update of r skip locked`,
          [sessionId, Math.round(silentForMs), limits.workerLosses, limit],
        );
        const lost = rows as unknown as (ReclaimedRun & Lost)[];
        const error = JSON.stringify({ code: "WORKER_LOST", message: "the worker fell silent while it had this run" });
        const blamed = JSON.stringify({
          code: "WORKER_LOST",
          message: `the worker fell silent while it had this run, for the ${limits.workerLosses + 1}th time: the run is taken to be the cause`,
        });
        const settled = lost.map((run) => ({
          ...run,
          runId: Number(run.runId),
          fence: Number(run.fence),
          endedMs: nowMs,
        }));
        // Before the gates of those that retry, all that this will lock: two that lock in another order wait for each other.
        if (settled.some(({ outcome, linked }) => outcome === "retry" && linked))
          await lockGates(
            client,
            s,
            tasks.map((row) => row.task_id as number),
          );
        await retryIn(
          client,
          settled
            .filter(({ outcome }) => outcome === "retry" || outcome === "ask")
            // What was claimed ahead of its time does not run before it.
            .map((run) => ({
              ...run,
              verdict: {
                ...{ kind: "retry" as const, dueMs: Math.max(nowMs, Number(run.dueMs)), error },
                ask: run.outcome === "ask",
              },
            })),
          "lost",
        );
        await releaseIn(
          client,
          settled
            .filter(({ outcome }) => outcome === "release")
            .map((run) => ({ ...run, verdict: { kind: "released" as const } })),
          nowMs,
          loose,
        );
        await finishIn(
          client,
          settled
            .filter(({ outcome }) => outcome === "fail" || outcome === "cancel")
            .map((run) => ({
              ...run,
              verdict: {
                kind: "ended" as const,
                outcome: run.outcome === "fail" ? "failed" : "cancelled",
                result: null,
                error: run.blamed ? blamed : error,
              },
            })),
          nowMs,
          loose,
        );
        const asked = settled.filter(({ outcome, linked }) => outcome === "ask" && linked);
        // What waits for a decision has no place meanwhile.
        if (asked.length > 0)
          await settleGates(
            client,
            s,
            asked.map(({ taskId }) => taskId),
            nowMs,
            true,
          );
        return settled;
      });
      await tieUp(database, loose, nowMs);
      return reclaimed;
    },
  };

  /** Of what was picked, in the order of its time, without what is of a paused task or too late by its task's policy. */
  async function toStart(rows: (ClaimedRun & { paused: boolean })[], nowMs: number): Promise<ClaimedRun[]> {
    const stopped = rows.filter(({ paused }) => paused).map(({ taskId }) => taskId);
    if (stopped.length > 0) await takeUpLeft(database, { setAside: stopped }, nowMs);
    const claimed = stopped.length > 0 ? rows.filter(({ paused }) => !paused) : rows;
    claimed.sort((a, b) => a.dueMs - b.dueMs || a.runId - b.runId);
    const late = await endLate(database, claimed, nowMs);
    return late.size > 0 ? claimed.filter(({ fence }) => !late.has(fence)) : claimed;
  }

  /** Ends runs: plain ones in one statement of its own, linked ones with what hangs from their end in a transaction. */
  async function finishAll(ended: Ended[], nowMs: number): Promise<number[]> {
    const plain = ended.filter((item) => !isLinked(item));
    const linked = ended.filter(isLinked);
    const done: number[] = [];
    const end = async (items: Ended[], { name, text, values }: ReturnType<typeof finishing>) => {
      const [told] = await database.query<EndedTogether>(name, text, values);
      const fences = fencesOf(told, items);
      for (const fence of fences) done.push(fence);
      // Edited after it was claimed: the task counts its places now. A crash before this is mended by the dispatcher.
      const tasks = told?.linked ?? [];
      if (tasks.length > 0) await database.transaction((client) => afterEnds(client, tasks, nowMs));
      return fences;
    };
    for (const alike of byKeeping(plain)) {
      const gone = new Set(isUnkept(alike[0] as Ended) ? await end(alike, leaving(s, alike)) : []);
      const left = alike.filter(({ fence }) => !gone.has(fence));
      if (left.length > 0) await end(left, finishing(s, left));
    }
    if (linked.length > 0) {
      const loose = new LooseEnds();
      done.push(...(await database.transaction((client) => finishIn(client, linked, nowMs, loose))));
      await tieUp(database, loose, nowMs);
    }
    return done;
  }

  async function finishIn(
    client: SqlClient,
    ended: Ended[],
    nowMs: number,
    loose = new LooseEnds(),
  ): Promise<number[]> {
    if (ended.length === 0) return [];
    await lockPlans(client, s, tasksOf(ended));
    const done = new Map<number, Finished>();
    for (const alike of byKeeping(ended)) {
      const { text, values } = finishing(s, alike, endedEachSql(s));
      const { rows } = await client.query(text, values);
      for (const row of rows as unknown as Finished[]) done.set(Number(row.fence), row);
    }
    await follow(
      client,
      s,
      ended.flatMap((settlement) => {
        const row = done.get(settlement.fence);
        return row ? [{ ...row, settlement }] : [];
      }),
      nowMs,
      loose,
    );
    await afterEnds(client, linkedTasks([...done.values()]), nowMs);
    const roomy = [...done.values()].flatMap(({ makesRoom, task_id }) => (makesRoom ? [task_id] : []));
    if (roomy.length > 0) await client.query(roomToldSql(s), [roomy, Math.round(nowMs)]);
    return [...done.keys()];
  }

  /** What hangs from the end of runs: the next slot of a fixed delay, and the places that are free now. */
  async function afterEnds(client: SqlClient, taskIds: number[], nowMs: number): Promise<void> {
    if (taskIds.length === 0) return;
    await client.query(
      `with moved as (
         update ${s}.plan p set next_slot_ms = $2 + after_end_ms from (
           select task_id from ${s}.plan where task_id = any($1) and after_end_ms is not null and next_slot_ms is null and not paused
             and not exists (select from ${s}.run r where r.task_id = plan.task_id and r.after_end)
           order by task_id for update) x
         where p.task_id = x.task_id returning p.task_id)
       select ${notifySql(s, "'plans'")} from moved limit 1`,
      [taskIds, Math.round(nowMs)],
    );
    await settleGates(client, s, taskIds, nowMs, true);
  }

  /** Gives runs back unstarted. One that was asked back meets what its task's stop does to unclaimed runs. */
  async function release(settlements: Settlement[], nowMs: number): Promise<number[]> {
    const released = settlements.filter(({ verdict }) => verdict.kind === "released");
    if (released.length === 0) return [];
    const loose = new LooseEnds();
    const fences = await database.transaction((client) => releaseIn(client, released, nowMs, loose));
    await tieUp(database, loose, nowMs);
    return fences;
  }

  async function releaseIn(
    client: SqlClient,
    released: Settlement[],
    nowMs: number,
    loose: LooseEnds,
  ): Promise<number[]> {
    if (released.length === 0) return [];
    // A resume that came between what this reads and what it does would leave a run set aside for which nobody comes.
    await lockPlans(client, s, [...new Set(released.map(({ taskId }) => taskId))], true);
    const { rows } = await client.query(
      `update ${s}.run r set state = case when r.recall = 1 then 3 else 2 end,
                attempt = r.attempt - case when r.recall = 1 then 0 else 1 end, recall = case when r.recall = 1 then 1 else 0 end,
                group_id = ${unaddressed}
         from unnest((select $1::bigint[]), (select $2::bigint[])) as i (id, fence), ${s}.plan
         where r.id = i.id and r.fence = i.fence and r.state + 0 = 3 and plan.task_id = r.task_id
         returning r.fence, r.task_id, r.state, plan.paused, r.group_id, case when ${makesRoomSql(s, "r.task_id")} then least(r.due_ms, $3) else r.due_ms end as due_ms`,
      [released.map(({ runId }) => runId), released.map(({ fence }) => fence), Math.round(nowMs)],
    );
    const stopped = new Set(rows.filter((row) => row.paused && row.state === 2).map((row) => row.task_id as number));
    for (const taskId of stopped) {
      const { rows: tasks } = await client.query(`select deleted_ms from ${s}.task where id = $1`, [taskId]);
      await withdraw(client, s, taskId, Math.round(nowMs), tasks[0]?.deleted_ms == null ? "paused" : "removed");
    }
    for (const kind of ["ready", "direct"]) {
      const of = rows.filter((row) => row.state === 2 && !row.paused && (row.group_id === 0) === (kind === "direct"));
      const dueMs = Math.min(...of.map((row) => Number(row.due_ms)));
      if (of.length > 0) await client.query(`select ${notifySql(s, `'${kind} ${dueMs}'`)}`);
    }
    const cancelled = new Set(rows.filter((row) => row.state === 3).map((row) => Number(row.fence)));
    await finishIn(
      client,
      released
        .filter(({ fence }) => cancelled.has(fence))
        .map((item) => ({
          ...item,
          verdict: { kind: "ended" as const, outcome: "cancelled" as const, result: null, error: null },
        })),
      nowMs,
      loose,
    );
    return rows.map((row) => Number(row.fence));
  }

  /** Verdicts that found no claim of theirs: applied already by a try whose reply was lost, or too late for good. */
  async function refused(sessionId: number, missing: Settlement[], nowMs: number): Promise<Set<number>> {
    const known = await database.persist(() =>
      database.query<{ fence: number }>("settle-known", settledSql(s), settledValues(missing)),
    );
    const settled = new Set(known.map(({ fence }) => fence));
    // Applied by a try whose reply was lost, or in the handler's own transaction: what comes after the commit is left.
    const linked = missing.filter(
      (item) => settled.has(item.fence) && item.verdict.kind === "ended" && isLinked(item as Ended),
    );
    if (linked.length > 0) await tieUp(database, await looseEndsOf(database, linked), nowMs);
    const late = missing.filter(({ fence }) => !settled.has(fence));
    // One that gives back what is not its own any more says nothing of what was done.
    const told = late.filter(({ verdict }) => verdict.kind !== "released");
    if (told.length > 0) {
      const values = [
        told.map(({ runId }) => runId),
        told.map(({ fence }) => fence),
        told.map(({ verdict }) => (verdict.kind === "ended" && verdict.outcome === "succeeded" ? 0 : 1)),
        told.map(({ verdict }) => ("error" in verdict ? verdict.error : null)),
        told.map((item) => item.sessionId ?? sessionId),
        Math.round(nowMs),
      ];
      await database.persist(() => database.query("settle-late", lateSql(s), values));
    }
    return new Set(late.map(({ fence }) => fence));
  }
}

interface Lost {
  dueMs: number;
  startedMs: number | null;
  linked: boolean;
  /** Of a failed one: not by its task's wish, but because its workers were lost too often. */
  blamed: boolean;
}

/** Of `endedEachSql`. */
interface Finished extends Omit<EndedRun, "settlement"> {
  fence: number;
  task_id: number;
  linked: boolean;
  makesRoom: boolean;
}

/** A statement takes only such as are kept, or only such as are not. */
function byKeeping(ended: Ended[]): Ended[][] {
  if (!ended.some(isUnkept)) return ended.length > 0 ? [ended] : [];
  const [kept, unkept] = [ended.filter((item) => !isUnkept(item)), ended.filter(isUnkept)];
  return kept.length > 0 ? [kept, unkept] : [unkept];
}

const isLinked = ({ linked, verdict }: Ended) => linked || verdict.onward !== undefined;
const linkedTasks = (rows: Finished[]) => [...new Set(rows.filter(({ linked }) => linked).map((row) => row.task_id))];
