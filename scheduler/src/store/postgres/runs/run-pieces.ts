import { limits } from "../../../base/limits.ts";
import { likeOf } from "../../../run/operations.ts";
import { liveStates, outcomes } from "../../../run/run.ts";
import type { RunMatch } from "../../../run/run-record.ts";
import type { RunBrowse, RunPage } from "../../browse-store.ts";
import { placeOfRun } from "../../browse-store.ts";
import type { Database } from "../database.ts";
import { asRunRecord, type RunRow, runRecordSql } from "../enqueue/run-rows.ts";
import { sourceNumber } from "../enqueue/sources.ts";
import { runState } from "../states.ts";
import { inNamespacesSql } from "../tasks/task-filter.ts";

/** The row limits that statements use. There are few, so that there are few SQL texts; a page is then cut from the rows. */
const sizes = [51, 201];

/**
 * Returns the row limit of the statement that reads a page: the smallest of `sizes` that is large enough, else `limit` itself. The limit
 * is a literal in the SQL text, because the planner assumes many rows if the limit is a parameter. Few limits give few SQL texts, which
 * can be prepared; this matters because with dozens of partitions, planning takes ten times as long as executing.
 */
const sizeOf = (limit: number): number => sizes.find((size) => size >= limit) ?? limit;

const priorities = "generate_series(0, 9) as q (priority)";

/** The request of a page. `brief` (default true) returns only the fields that lists show. */
export type Asked = RunBrowse & { brief?: boolean; among: Among };

/**
 * How a list is read: in the index order of all runs (`taskIds` null), or in the index order of the runs of these tasks. `tested` lists the
 * filters that no index covers: the statement tests them on each run that it reads, so it reads only a limited number of runs, its window.
 */
export interface Among {
  taskIds: readonly number[] | null;
  tested: readonly ("source" | "key" | "labels" | "tasks")[];
}

export type Phase = "live" | "ended";

/** Returns the name of a prepared statement. Unusual sizes are not prepared, because there could be any number of them. */
function nameOf(phase: string, numbers: number[], { among, brief = true }: Asked, size: number): string {
  if (!sizes.includes(size)) return "";
  const { taskIds, tested } = among;
  const stream = taskIds === null ? "all" : taskIds.length === 1 ? "task" : "tasks";
  return [brief ? "browse" : "list", phase, numbers.join(""), stream, size, ...tested].join("-");
}

/** Returns conditions on a row `r` of a run, with their values. @param first the number of the first SQL parameter */
export function testsOf(s: string, { match, among }: Asked, first: number): { sql: string; values: unknown[] } {
  const values: unknown[] = [];
  const next = (value: unknown) => `$${first - 1 + values.push(value)}`;
  const sql = among.tested.map((tested) => {
    if (tested === "source") return `r.source = ${next(match?.source ? sourceNumber(match.source) : null)}`;
    if (tested === "key") return `r.key = ${next(match?.key ?? null)}`;
    if (tested === "labels") return `r.labels @> ${next(JSON.stringify(match?.labels))}::jsonb`;
    const [group, namespaces, like] = tasksValues(match).map(next) as [string, string, string];
    return `r.task_id in (${tasksSql(s, group, namespaces, like)})`;
  });
  return { sql: sql.join(" and "), values };
}

/** The numbers of the tasks of a group, in namespaces, with a name like a pattern (null: any), including removed tasks. */
export const tasksSql = (s: string, group: string, namespaces: string, like: string): string =>
  `select f.id from ${s}.task f where (${group}::text is null or f.group_id = (select id from ${s}.worker_group where name = ${group}))
   and ${inNamespacesSql("f.name", `${namespaces}::text[]`)} and (${like}::text is null or f.name like ${like})`;

/** The values of `tasksSql`. */
export const tasksValues = ({ group, namespaces, matching }: RunMatch = {}): unknown[] => [
  group ?? null,
  namespaces ?? null,
  matching === undefined ? null : likeOf(matching),
];

interface LookedRow extends RunRow {
  looked: number;
  last_ms: number | null;
  last_id: number | null;
}

interface Window {
  /** SQL texts, each of which selects id, time and `hit` of runs in the list's order. */
  pieces: string[];
  time: "due_ms" | "ended_ms";
  /** The most runs that are read. */
  most: number;
  /** The most runs that are returned. */
  size: number;
  /** SQL that selects the records of the runs in `found`. */
  records: string;
}

/**
 * Returns the statement that reads a window of runs and returns those that pass the tests. Each row also has the number of runs that were
 * read and, if the window is full, the position of its last run, after which the next window begins. If no run passes, one row has only
 * these columns.
 */
function windowSql({ pieces, time, most, size, records }: Window): string {
  const down = time === "ended_ms" ? " desc" : "";
  return `
    with looked as materialized (
      select * from (${pieces.join(" union all ")}) pieces order by ${time}${down}, id${down} limit ${most}),
    found as (select id, ${time} from looked where hit order by ${time}${down}, id${down} limit ${size}),
    last as (select (select count(*)::int from looked) as looked, l.${time} as last_ms, l.id as last_id
      from (select ${time}, id from looked order by ${time}${down}, id${down} offset ${most - 1} limit 1) l
      right join (select 1) one on true)
    select last.*, r.* from last left join (${records}) r on true order by r.${time}${down}, r.id${down}`;
}

function pageOf(rows: LookedRow[], phase: Phase, window: number, limit: number): RunPage {
  const runs = rows
    .filter(({ id }) => id !== null)
    .slice(0, limit)
    .map(asRunRecord);
  const [{ looked, last_ms: atMs, last_id: runId }] = rows as [LookedRow];
  const last = runs.at(-1);
  if (runs.length === limit && last) return { runs, next: placeOfRun(last) };
  return { runs, next: looked < window || atMs === null || runId === null ? null : { phase, atMs, runId } };
}

export const exactPage = (rows: RunRow[], limit: number): RunPage => {
  const runs = rows.slice(0, limit).map(asRunRecord);
  const last = runs.at(-1);
  return { runs, next: runs.length === limit && last ? placeOfRun(last) : null };
};

/**
 * Reads live runs ordered by due time, or by state first if not `brief`. The indexes begin with a task, a group or a priority; there are
 * few of these, and each is probed. One statement reads all states, so that a run whose state changes meanwhile is found in one of them.
 */
export async function liveRuns(database: Database, browse: Asked, states: number[]): Promise<RunPage> {
  const s = database.schema;
  const { among, sinceMs, untilMs, readyBeforeMs, after, limit, brief = true } = browse;
  const size = sizeOf(limit);
  const { taskIds } = among;
  const several = taskIds !== null && taskIds.length > 1;
  // At most one unfinished run of a task has a given key, so the index of keys finds it directly.
  const isKeyed = taskIds?.length === 1 && among.tested.includes("key");
  const tests = testsOf(s, browse, 7);
  const isWindow = tests.sql !== "" && !isKeyed;
  const most = isWindow ? limits.liveRunsLookedAt : size;
  const bound = (state: string) => `and r.due_ms >= $1 and r.due_ms < $2 and (r.due_ms, r.id) > ($3, $4)
    ${state === String(runState.ready) ? "and r.due_ms < $6" : ""} order by r.due_ms, r.id limit ${most}`;
  const hit = isWindow ? `, ${tests.sql} as hit` : "";
  const of = (where: string, state: string) =>
    `select r.id, r.due_ms${brief ? "" : ", r.state"}${hit} from ${s}.run r where ${where} ${bound(state)}`;
  const order = (from: string) => `${brief ? "" : `${from}state desc, `}${from}due_ms, ${from}id`;
  const pieces = states.map((state) => {
    if (isKeyed) return `(${of(`r.task_id = $5 and r.state = ${state} and ${tests.sql}`, String(state))})`;
    if (taskIds?.length === 1) {
      const one = of(`r.task_id = $5 and r.state = ${state} and r.priority = q.priority`, String(state));
      return `(select p.* from ${priorities}, lateral (${one}) p)`;
    }
    if (taskIds !== null) {
      const one = of(`r.task_id = k.id and r.state = ${state} and r.priority = q.priority`, String(state));
      return `(select p.* from unnest($5::int[]) as k (id), ${priorities}, lateral (${one}) p)`;
    }
    if (state === runState.claimed) return `(${of(`r.state = ${runState.claimed}`, "")})`;
    if (state === runState.ready) {
      // The query steps through the groups that have ready runs, with one probe each.
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
  const records = runRecordSql(s, "run", brief);
  const typed = `($5::${several ? "int[]" : "int"} is null or true) and $6::bigint is not null`;
  const values = [
    sinceMs ?? after?.atMs ?? Number.MIN_SAFE_INTEGER,
    untilMs ?? Number.MAX_SAFE_INTEGER,
    after?.atMs ?? Number.MIN_SAFE_INTEGER,
    after?.runId ?? 0,
    several ? taskIds : (taskIds?.[0] ?? null),
    readyBeforeMs ?? Number.MAX_SAFE_INTEGER,
    ...tests.values,
  ];
  const name = nameOf("live", states, browse, size);
  if (isWindow) {
    const found = `${records} join found p on p.id = r.id where ${typed}`;
    const sql = windowSql({ pieces, time: "due_ms", most, size, records: found });
    return pageOf(await database.query<LookedRow>(name, sql, values), "live", most, limit);
  }
  const sql = `${records} join (select id from (${pieces.join(" union all ")}) pieces order by ${order("")} limit ${size}) p
       on p.id = r.id
     where ${typed} order by ${order("r.")}`;
  return exactPage(await database.query<RunRow>(name, sql, values), limit);
}

/**
 * Reads ended runs, latest first, from partition to partition, in each by the index of outcomes or of tasks. Bounds that are not used are
 * left out of the SQL text. With all bounds in the text, the cached plan assumed that two bounds together match almost no rows, and read
 * and sorted all 10,000 runs of a task (80 ms).
 */
export async function endedRuns(database: Database, browse: Asked, ends: number[]): Promise<RunPage> {
  const s = database.schema;
  const { among, sinceMs, untilMs, after, limit, brief = true } = browse;
  const { taskIds } = among;
  const size = sizeOf(limit);
  const tests = testsOf(s, browse, 6);
  const isWindow = tests.sql !== "";
  const most = isWindow ? limits.endedRunsLookedAt : size;
  const bounds = [
    ...(sinceMs === null ? [] : [["since", "r.ended_ms >= $1"]]),
    ...(untilMs === null ? [] : [["until", "r.ended_ms < $2"]]),
    // The first comparison excludes partitions, which the row comparison alone does not.
    ...(after === null ? [] : [["after", "r.ended_ms <= $3 and (r.ended_ms, r.id) < ($3, $4)"]]),
  ];
  const of = (
    ...where: string[]
  ) => `(select r.id, r.ended_ms${isWindow ? `, ${tests.sql} as hit` : ""} from ${s}.run_history r
    where ${[...where, ...bounds.map(([, bound]) => bound)].join(" and ")}
    order by r.ended_ms desc, r.id desc limit ${most})`;
  const several = taskIds !== null && taskIds.length > 1;
  const pieces = ends.map((end) =>
    several
      ? `(select p.* from unnest($5::int[]) as k (id), lateral ${of("r.task_id = k.id", `r.outcome = ${end}`)} p)`
      : of(...(taskIds === null ? [] : ["r.task_id = $5"]), `r.outcome = ${end}`),
  );
  const named = nameOf("ended", ends, browse, size);
  const name = named && [named, ...bounds.map(([kind]) => kind)].join("-");
  const values = [
    sinceMs,
    untilMs,
    after?.atMs ?? null,
    after?.runId ?? null,
    several ? taskIds : (taskIds?.[0] ?? null),
    ...tests.values,
  ];
  const records = runRecordSql(s, "run_history", brief);
  const typed = several
    ? "(coalesce($1::bigint, $2::bigint, $3::bigint, $4::bigint) is null or $5::int[] is not null)"
    : "(coalesce($1::bigint, $2::bigint, $3::bigint, $4::bigint, $5::int) is null or true)";
  if (isWindow) {
    const found = `${records} join found p on p.id = r.id and p.ended_ms = r.ended_ms where ${typed}`;
    const sql = windowSql({ pieces, time: "ended_ms", most, size, records: found });
    return pageOf(await database.query<LookedRow>(name, sql, values), "ended", most, limit);
  }
  const sql = `${records} join (
       select id, ended_ms from (${pieces.join(" union all ")}) pieces order by ended_ms desc, id desc limit ${size}) p
       on p.id = r.id and p.ended_ms = r.ended_ms
     where ${typed} order by r.ended_ms desc, r.id desc`;
  return exactPage(await database.query<RunRow>(name, sql, values), limit);
}

/** Returns the numbers of the live states with these names. */
export const liveNumbers = (states: readonly string[]): number[] =>
  liveStates.flatMap((state, number) => (states.includes(state) ? [number] : []));
export const endedNumbers = (states: readonly string[]): number[] =>
  outcomes.flatMap((outcome, number) => (states.includes(outcome) ? [number] : []));
