import { liveStates, type Outcome, outcomes } from "../../../run/run.ts";
import type { RunFilter, RunRecord } from "../../../run/run-record.ts";
import type { RunBrowse } from "../../browse-store.ts";
import type { Database } from "../database.ts";
import { asRunRecord, type RunRow, runRecordSql, stateNames } from "../enqueue/run-rows.ts";
import { runState } from "../states.ts";
import { idOf } from "../tasks/read.ts";

/** Row limits of the statements: few sizes, so that there are few texts. A page is cut from the rows. */
const sizes = [51, 201];

/**
 * With some dozens of partitions, planning a statement takes ten times as long as running it, so each is prepared, and has its size as a
 * literal: a plan for any number of rows would be a plan for many.
 */
const sizeOf = (limit: number): number => sizes.find((size) => size >= limit) ?? limit;

/** Statements of other sizes are not prepared: there would be one for each size ever requested. */
const nameOf = (phase: string, numbers: number[], { taskId, brief = true }: Asked, size: number): string =>
  sizes.includes(size)
    ? `${brief ? "browse" : "list"}-${phase}-${numbers.join("")}-${taskId === null ? "all" : "task"}-${size}`
    : "";

const priorities = "generate_series(0, 9) as q (priority)";

/**
 * Returns a page of runs. Each piece of the list is read from an index with the same order, at most a page from each, and the pieces are
 * merged: the cost of a page depends on the number of pieces, not on the number of runs.
 */
export async function browseRuns(database: Database, browse: RunBrowse): Promise<RunRecord[]> {
  const { states, after, limit } = browse;
  const live = states.flatMap((state) => (isLive(state) ? [liveStates.indexOf(state)] : []));
  const ended = states.flatMap((state) => (isLive(state) ? [] : [outcomes.indexOf(state as Outcome)]));
  const runs: RunRecord[] = [];
  if (live.length > 0 && after?.phase !== "ended") runs.push(...(await liveRuns(database, browse, live)));
  if (ended.length > 0 && runs.length < limit) {
    const place = after?.phase === "ended" ? after : null;
    runs.push(...(await endedRuns(database, { ...browse, after: place, limit: limit - runs.length }, ended)));
  }
  return runs;
}

/**
 * The same pieces for callers in this process, with all fields of a run: the live states by due time, claimed ones first, then the ended
 * runs, the latest first. One text for all filters would be one plan for all: it sorted every ended run to show fifty.
 */
export async function listRuns(database: Database, filter: RunFilter): Promise<RunRecord[]> {
  const { task, states = [...liveStates, ...outcomes], sinceMs = null, limit } = filter;
  const taskId = task === undefined ? null : await idOf(database, task);
  const { length: most } = liveStates;
  const wanted = new Set(states.map((state) => stateNames.indexOf(state)));
  const live = liveStates.map((_, number) => number).filter((number) => wanted.has(number));
  const ended = [...wanted].filter((number) => number >= most).map((number) => number - most);
  const browse = { states: [], taskId, readyBeforeMs: null, sinceMs, untilMs: null, after: null, brief: false };
  const runs = live.length > 0 ? await liveRuns(database, { ...browse, limit }, live) : [];
  if (ended.length === 0 || runs.length >= limit) return runs;
  const since = await endedRuns(database, { ...browse, limit: limit - runs.length }, ended.sort());
  // A run that ended between the two statements is in both.
  const shown = new Set(runs.map(({ runId }) => runId));
  return [...runs, ...since.filter(({ runId }) => !shown.has(runId))];
}

/** `brief`, the default: lists show only a part of a run's fields. */
type Asked = RunBrowse & { brief?: boolean };

const isLive = (state: string): state is (typeof liveStates)[number] =>
  (liveStates as readonly string[]).includes(state);

/**
 * Ordered by due time; in full lists (not `brief`) by state first. The index orders begin with a task, a group or a priority, of which
 * there are few; each is probed. One statement covers all states, so that a run that changes its state meanwhile is found in one of them.
 */
async function liveRuns(database: Database, browse: Asked, states: number[]): Promise<RunRecord[]> {
  const s = database.schema;
  const { taskId, sinceMs, untilMs, readyBeforeMs, after, limit, brief = true } = browse;
  const size = sizeOf(limit);
  const bound = (state: string) => `and r.due_ms >= $1 and r.due_ms < $2 and (r.due_ms, r.id) > ($3, $4)
    ${state === String(runState.ready) ? "and r.due_ms < $6" : ""} order by r.due_ms, r.id limit ${size}`;
  const of = (where: string, state: string) =>
    `select r.id, r.due_ms${brief ? "" : ", r.state"} from ${s}.run r where ${where} ${bound(state)}`;
  const order = (from: string) => `${brief ? "" : `${from}state desc, `}${from}due_ms, ${from}id`;
  const pieces = states.map((state) => {
    if (taskId !== null) {
      const one = of(`r.task_id = $5 and r.state = ${state} and r.priority = q.priority`, String(state));
      return `(select p.* from ${priorities}, lateral (${one}) p)`;
    }
    if (state === runState.claimed) return `(${of(`r.state = ${runState.claimed}`, "")})`;
    if (state === runState.ready) {
      // The groups that have ready runs, each found by one probe after the previous one.
      const one = of(
        `r.state = ${runState.ready} and r.group_id = g.id and r.priority = q.priority`,
        String(runState.ready),
      );
      return `(with recursive g (id) as (
        (select min(group_id) from ${s}.run where state = ${runState.ready})
        union all select (select min(r.group_id) from ${s}.run r where r.state = ${runState.ready} and r.group_id > g.id) from g where g.id is not null)
        select p.* from g, ${priorities}, lateral (${one}) p where g.id is not null)`;
    }
    return `(${of(`r.state in (${runState.held}, ${runState.paused}, ${runState.undecided}) and r.state = ${state}`, "")})`;
  });
  const rows = await database.query<RunRow>(
    nameOf("live", states, browse, size),
    `${runRecordSql(s, "run", brief)} join (select id from (${pieces.join(" union all ")}) pieces order by ${order("")} limit ${size}) p
       on p.id = r.id
     where ($5::int is null or true) and $6::bigint is not null order by ${order("r.")}`,
    [
      sinceMs ?? after?.atMs ?? Number.MIN_SAFE_INTEGER,
      untilMs ?? Number.MAX_SAFE_INTEGER,
      after?.atMs ?? Number.MIN_SAFE_INTEGER,
      after?.runId ?? 0,
      taskId,
      readyBeforeMs ?? Number.MAX_SAFE_INTEGER,
    ],
  );
  return rows.slice(0, limit).map(asRunRecord);
}

/**
 * The latest first: within a partition by the index of outcomes or of tasks, over partitions in their order. Unused bounds are left out of
 * the text: the plan cached for all bounds estimated that two of them together leave next to nothing, so little that it read all 10,000
 * runs of a task and sorted them (80 ms), because of tomorrow's empty partitions, which are cheapest without an index.
 */
async function endedRuns(database: Database, browse: Asked, ends: number[]): Promise<RunRecord[]> {
  const s = database.schema;
  const { taskId, sinceMs, untilMs, after, limit, brief = true } = browse;
  const size = sizeOf(limit);
  const bounds = [
    ...(sinceMs === null ? [] : [["since", "r.ended_ms >= $1"]]),
    ...(untilMs === null ? [] : [["until", "r.ended_ms < $2"]]),
    // The first of the two conditions excludes partitions, which a row comparison does not.
    ...(after === null ? [] : [["after", "r.ended_ms <= $3 and (r.ended_ms, r.id) < ($3, $4)"]]),
  ];
  const of = (...where: string[]) => `(select r.id, r.ended_ms from ${s}.run_history r
    where ${[...where, ...bounds.map(([, bound]) => bound)].join(" and ")}
    order by r.ended_ms desc, r.id desc limit ${size})`;
  const pieces = ends.map((end) => of(...(taskId === null ? [] : ["r.task_id = $5"]), `r.outcome = ${end}`));
  const name = nameOf("ended", ends, browse, size);
  const rows = await database.query<RunRow>(
    name && [name, ...bounds.map(([kind]) => kind)].join("-"),
    `${runRecordSql(s, "run_history", brief)} join (
       select id, ended_ms from (${pieces.join(" union all ")}) pieces order by ended_ms desc, id desc limit ${size}) p
       on p.id = r.id and p.ended_ms = r.ended_ms
     where coalesce($1::bigint, $2::bigint, $3::bigint, $4::bigint, $5::int) is null or true
     order by r.ended_ms desc, r.id desc`,
    [sinceMs, untilMs, after?.atMs ?? null, after?.runId ?? null, taskId],
  );
  return rows.slice(0, limit).map(asRunRecord);
}
