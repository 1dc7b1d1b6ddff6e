import type { SqlClient } from "../../../base/change.ts";
import { notifySql } from "../cluster/signals.ts";
import type { Database } from "../database.ts";
import { type EndedRun, follow, LooseEnds, tieUp } from "../flow/following.ts";
import { finishing, isUnkept, leaving } from "../runs/dead-letters.ts";
import { failingToldSql } from "../runs/failing.ts";
import { runState } from "../states.ts";
import { lockPlans, settleGates } from "./gates.ts";
import { groupFreedSql, roomToldSql } from "./group-limits.ts";
import { tasksOf } from "./retries.ts";
import { type Ended, type EndedTogether, endedEachSql, endedLinkedSql, fencesOf } from "./settle.ts";

/**
 * Ends runs. Plain runs end in a few statements, by whether their history rows are kept. Linked runs (other runs or tasks may wait for
 * their end), and plain runs that those statements left out, end in one transaction with the consequences of their end.
 * @returns the fences of the runs that ended
 */
export async function finishAll(database: Database, ended: Ended[], nowMs: number): Promise<number[]> {
  const s = database.schema;
  const plain = ended.filter((item) => !isLinked(item));
  let linked = ended.filter(isLinked);
  const done: number[] = [];
  const end = async (items: Ended[], { name, text, values }: ReturnType<typeof finishing>) => {
    const [told] = await database.query<EndedTogether>(name, text, values);
    const fences = fencesOf(told, items);
    for (const fence of fences) done.push(fence);
    // These tasks were edited after the claim and now have a concurrency limit or plan from a run's end. If the process crashes before this
    // point, the dispatcher does the same later.
    const tasks = told?.linked ?? [];
    if (tasks.length > 0) await database.transaction((client) => afterEnds(client, s, tasks, nowMs));
    return fences;
  };
  for (const alike of byKeeping(plain)) {
    const gone = new Set(isUnkept(alike[0] as Ended) ? await end(alike, leaving(s, alike)) : []);
    const left = alike.filter(({ fence }) => !gone.has(fence));
    const finished = new Set(left.length > 0 ? await end(left, finishing(s, left)) : []);
    // Each of these runs has lost its claim, or another task was made to follow its task after the claim, so the statement for linked runs
    // handles them.
    if (finished.size < left.length) linked = [...linked, ...left.filter(({ fence }) => !finished.has(fence))];
  }
  await tellFailing((text, values) => database.query("task-failing-told", text, values), s, plain);
  if (linked.length > 0) {
    const loose = new LooseEnds();
    done.push(...(await database.transaction((client) => finishIn(client, s, linked, nowMs, loose))));
    await tieUp(database, loose, nowMs);
  }
  return done;
}

/**
 * Ends runs in the caller's transaction.
 * @param loose collects the work that remains after the commit
 * @returns the fences of the runs that ended
 */
export async function finishIn(
  client: SqlClient,
  s: string,
  ended: Ended[],
  nowMs: number,
  loose = new LooseEnds(),
): Promise<number[]> {
  if (ended.length === 0) return [];
  await lockPlans(client, s, tasksOf(ended));
  const done: EndedLinked = { fences: [], tasks: [], awaited: [] };
  for (const alike of byKeeping(ended)) {
    const told = await endLinked(client, s, alike);
    for (const fence of told.fences) done.fences.push(fence);
    done.tasks.push(...told.tasks);
    done.awaited.push(...told.awaited);
  }
  const awaited = new Map(done.awaited.map((row) => [Number(row.fence), row]));
  await follow(
    client,
    s,
    ended.flatMap((settlement) => {
      const row = awaited.get(settlement.fence);
      return row ? [{ ...row, settlement }] : [];
    }),
    nowMs,
    loose,
  );
  await afterEnds(client, s, [...new Set(done.tasks)], nowMs);
  const roomy = done.awaited.flatMap(({ makesRoom, task_id }) => (makesRoom ? [task_id] : []));
  if (roomy.length > 0) {
    await client.query(groupFreedSql(s, "$1::int[]", "$2::bigint", false), [roomy, Math.round(nowMs)]);
    await client.query(roomToldSql(s), [roomy, Math.round(nowMs)]);
  }
  await tellFailing((text, values) => client.query(text, values), s, ended);
  return done.fences;
}

/** The runs that a statement ended: their fences, the tasks of the linked ones, and the runs whose end another run may wait for. */
interface EndedLinked {
  fences: number[];
  tasks: number[];
  awaited: Finished[];
}

/**
 * Ends runs of which all or none leave a row in the history. Many runs are answered in one row: 2,000 rows took a third of the process's
 * time for these ends. A single run is answered in a row of its own, because a caller's own client may read arrays differently.
 */
async function endLinked(client: SqlClient, s: string, alike: Ended[]): Promise<EndedLinked> {
  const together = alike.length > 1 && alike.every(({ verdict }) => verdict.onward === undefined);
  const { text, values } = finishing(s, alike, together ? endedLinkedSql(s) : endedEachSql(s));
  const { rows } = await client.query(text, values);
  if (together) {
    const told = rows[0] as unknown as EndedTogether & { awaited: Finished[] | null };
    return { fences: fencesOf(told, alike), tasks: told.linked ?? [], awaited: told.awaited ?? [] };
  }
  const each = rows as unknown as Finished[];
  return { fences: each.map(({ fence }) => Number(fence)), tasks: linkedTasks(each), awaited: each };
}

/** Signals failed runs to the leader, which pauses a task that has `pauseAfter` once enough runs have failed. */
async function tellFailing(query: (text: string, values: unknown[]) => Promise<unknown>, s: string, ended: Ended[]) {
  const failed = ended.filter(({ verdict }) => verdict.outcome === "failed");
  if (failed.length > 0) await query(failingToldSql(s), [[...new Set(failed.map(({ taskId }) => taskId))]]);
}

/**
 * Fails a run that no worker has claimed, in the caller's transaction. It sets the run to `claimed` first, so that `finishIn` can end it.
 */
export async function failIn(
  client: SqlClient,
  s: string,
  { code, message, ...run }: Pick<Ended, "runId" | "fence" | "attempt" | "taskId"> & { code: string; message: string },
  nowMs: number,
  loose: LooseEnds,
): Promise<void> {
  await client.query(`update ${s}.run set state = ${runState.claimed} where id = $1`, [run.runId]);
  const error = JSON.stringify({ code, message });
  const verdict = { kind: "ended" as const, outcome: "failed" as const, result: null, error };
  await finishIn(client, s, [{ ...run, linked: true, startedMs: null, endedMs: nowMs, verdict }], nowMs, loose);
}

/**
 * Handles the consequences of ends: plans the next slot of tasks with a fixed delay, and gives out slots of concurrency that became free.
 */
async function afterEnds(client: SqlClient, s: string, taskIds: number[], nowMs: number): Promise<void> {
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

/** A row of `endedEachSql`. */
interface Finished extends Omit<EndedRun, "settlement"> {
  fence: number;
  task_id: number;
  linked: boolean;
  makesRoom: boolean;
}

/** Splits the ended runs by whether their history rows are kept, because one statement handles only one of the two kinds. */
function byKeeping(ended: Ended[]): Ended[][] {
  if (!ended.some(isUnkept)) return ended.length > 0 ? [ended] : [];
  const [kept, unkept] = [ended.filter((item) => !isUnkept(item)), ended.filter(isUnkept)];
  return kept.length > 0 ? [kept, unkept] : [unkept];
}

export const isLinked = ({ linked, verdict }: Ended) => linked || verdict.onward !== undefined;
const linkedTasks = (rows: Finished[]) => [...new Set(rows.filter(({ linked }) => linked).map((row) => row.task_id))];
