import { limits } from "../../../base/limits.ts";
import { keyNeedsTask, liveStates, outcomes } from "../../../run/run.ts";
import type { RunFilter, RunMatch, RunRecord } from "../../../run/run-record.ts";
import type { RunBrowse, RunPage, RunPlace } from "../../browse-store.ts";
import type { Database } from "../database.ts";
import { type RunRow, runRecordSql } from "../enqueue/run-rows.ts";
import { runState } from "../states.ts";
import { idOf } from "../tasks/read.ts";
import {
  type Among,
  type Asked,
  endedNumbers,
  endedRuns,
  exactPage,
  liveNumbers,
  liveRuns,
  type Phase,
  tasksSql,
  tasksValues,
  testsOf,
} from "./run-pieces.ts";

/**
 * Returns a page of runs. The list consists of pieces, each read from an index that has the order of the list, at most one page from each;
 * the pieces are then merged. So the cost of a page depends on the number of pieces, not on the number of runs. No index contains a run's
 * source, and the history has no index of keys: with these filters a page reads a limited number of runs (a *window*), and may return fewer
 * runs than requested, or none, together with a `next`.
 * @throws OPTION_INVALID for a key without a task
 */
export async function browseRuns(database: Database, browse: RunBrowse): Promise<RunPage> {
  const { states, after, limit } = browse;
  const among = await amongOf(database, browse.taskId, browse.match);
  if (among === null) return { runs: [], next: null };
  const [live, ended] = [liveNumbers(states), endedNumbers(states)];
  const runs: RunRecord[] = [];
  if (live.length > 0 && after?.phase !== "ended") {
    const page = await readerOf(among, "live")(database, { ...browse, among }, live);
    if (page.next !== null) return page;
    runs.push(...page.runs);
  }
  if (ended.length === 0) return { runs, next: null };
  const place = after?.phase === "ended" ? after : null;
  const read = readerOf(among, "ended");
  const page = await read(database, { ...browse, among, after: place, limit: limit - runs.length }, ended);
  return { runs: [...runs, ...page.runs], next: page.next };
}

/**
 * Returns runs from the same pieces with all their fields, for callers in this process: first the live runs by state, claimed ones first,
 * each state by due time; then the ended runs, latest first. A single SQL text for all filters would have a single plan, which sorted all
 * ended runs to return fifty.
 * @throws TASK_UNKNOWN, OPTION_INVALID for a key without a task
 */
export async function listRuns(database: Database, filter: RunFilter): Promise<RunRecord[]> {
  const { task, states = [...liveStates, ...outcomes], sinceMs = null, limit, ...match } = filter;
  const taskId = task === undefined ? null : await idOf(database, task);
  const among = await amongOf(database, taskId, match);
  if (among === null) return [];
  const [live, ended] = [liveNumbers(states), endedNumbers(states)];
  const any = { states: [], taskId, match, among, readyBeforeMs: null, sinceMs, untilMs: null, after: null };
  const browse: Asked = { ...any, limit, brief: false };
  // A window continues by due time only, so each state needs its own windows.
  const phases = among.tested.length > 0 ? live.reverse().map((state) => [state]) : live.length > 0 ? [live] : [];
  const runs: RunRecord[] = [];
  for (const states of phases)
    runs.push(
      ...(await readAll(
        (part) => readerOf(among, "live")(database, { ...browse, ...part }, states),
        limit - runs.length,
      )),
    );
  if (ended.length === 0) return runs;
  const read = readerOf(among, "ended");
  const since = await readAll((part) => read(database, { ...browse, ...part }, ended), limit - runs.length);
  // A run that ended between the two reads is in both results.
  const shown = new Set(runs.map(({ runId }) => runId));
  return [...runs, ...since.filter(({ runId }) => !shown.has(runId))];
}

type Reader = (database: Database, browse: Asked, numbers: number[]) => Promise<RunPage>;

function readerOf({ tested }: Among, phase: Phase): Reader {
  if (!tested.includes("labels")) return phase === "live" ? liveRuns : endedRuns;
  return (database, browse, numbers) => labelledRuns(database, browse, phase, numbers);
}

/**
 * Returns a page of runs by labels. If many runs have the labels, the first window in the list's order contains enough of them. If this
 * window does not fill the page, the labels are rare, and the missing runs are read through the index of labels: all runs with the labels,
 * sorted.
 */
async function labelledRuns(database: Database, browse: Asked, phase: Phase, numbers: number[]): Promise<RunPage> {
  const page = await (phase === "live" ? liveRuns : endedRuns)(database, browse, numbers);
  const { runs, next } = page;
  if (next === null || runs.length === browse.limit) return page;
  const rest = await indexedRuns(
    database,
    { ...browse, after: next, limit: browse.limit - runs.length },
    phase,
    numbers,
  );
  return { runs: [...runs, ...rest.runs], next: rest.next };
}

/**
 * Reads a page through the index of labels. The statement is planned each time, because a plan for arbitrary labels assumes that they are
 * frequent, and would read all runs of a time span instead. The CTE prevents the planner from scanning the list's order until enough runs
 * are found.
 */
async function indexedRuns(database: Database, browse: Asked, phase: Phase, numbers: number[]): Promise<RunPage> {
  const s = database.schema;
  const { among, sinceMs, untilMs, readyBeforeMs, after, limit, brief = true } = browse;
  const isLive = phase === "live";
  const [time, down] = isLive ? ["due_ms", ""] : ["ended_ms", " desc"];
  const tests = testsOf(s, browse, 1);
  const values = [...tests.values];
  const given = (value: unknown) => `$${values.push(value)}`;
  const where = [tests.sql, `r.${isLive ? "state" : "outcome"} = any(${given(numbers)})`];
  if (among.taskIds !== null) where.push(`r.task_id = any(${given(among.taskIds)}::int[])`);
  if (sinceMs !== null) where.push(`r.${time} >= ${given(sinceMs)}`);
  if (untilMs !== null) where.push(`r.${time} < ${given(untilMs)}`);
  if (isLive && readyBeforeMs !== null)
    where.push(`(r.state <> ${runState.ready} or r.due_ms < ${given(readyBeforeMs)})`);
  if (after !== null) {
    const [at, id] = [given(after.atMs), given(after.runId)];
    const [least, beyond] = isLive ? [">=", ">"] : ["<=", "<"];
    // The first comparison excludes partitions, which the row comparison alone does not.
    where.push(`r.${time} ${least} ${at} and (r.${time}, r.id) ${beyond} (${at}, ${id})`);
  }
  const table = isLive ? "run" : "run_history";
  const rows = await database.query<RunRow>(
    "",
    `with labelled as materialized (select r.id, r.${time} from ${s}.${table} r where ${where.join(" and ")})
     ${runRecordSql(s, table, brief)} join (select * from labelled order by ${time}${down}, id${down} limit ${limit}) p
       on p.id = r.id and p.${time} = r.${time}
     order by r.${time}${down}, r.id${down}`,
    values,
  );
  return exactPage(rows, limit);
}

/** Reads parts until there are `limit` runs or no more parts. */
async function readAll(
  read: (part: { after: RunPlace | null; limit: number }) => Promise<RunPage>,
  limit: number,
): Promise<RunRecord[]> {
  const runs: RunRecord[] = [];
  for (let after: RunPlace | null = null; runs.length < limit; ) {
    const { runs: some, next }: RunPage = await read({ after, limit: limit - runs.length });
    runs.push(...some);
    if (next === null) break;
    after = next;
  }
  return runs;
}

/**
 * Decides how the matching runs are read. A group, namespaces and a pattern of names each select a set of tasks. Runs of a few tasks are
 * read by the index of tasks; for many tasks, probing each one would take longer than reading the runs in order and testing them.
 * @returns null if no task matches
 * @throws OPTION_INVALID for a key without a task
 */
async function amongOf(database: Database, taskId: number | null, match: RunMatch = {}): Promise<Among | null> {
  const { group, namespaces, matching, key, source, labels } = match;
  if (key !== undefined && taskId === null) throw keyNeedsTask();
  const tested = [
    ...(source === undefined ? [] : (["source"] as const)),
    ...(key === undefined ? [] : (["key"] as const)),
    ...(labels === undefined ? [] : (["labels"] as const)),
  ];
  const own = taskId === null ? null : [taskId];
  if (group === undefined && namespaces === undefined && matching === undefined) return { taskIds: own, tested };
  const most = source === undefined && labels === undefined ? limits.tasksProbed : limits.tasksProbedWithTests;
  const rows = await database.query<{ id: number }>(
    "browse-among",
    `${tasksSql(database.schema, "$1", "$2", "$3")} and ($4::int is null or f.id = $4) limit $5`,
    [...tasksValues(match), taskId, most + 1],
  );
  if (rows.length === 0) return null;
  if (rows.length <= most) return { taskIds: rows.map(({ id }) => id), tested };
  return { taskIds: null, tested: [...tested, "tasks"] };
}
