import type { LateResult, Relative } from "../../../run/flow.ts";
import { liveStates, outcomes } from "../../../run/run.ts";
import type { AttemptRecord } from "../../../run/run-record.ts";
import type { WholeRun } from "../../browse-store.ts";
import type { Database } from "../database.ts";
import { asRunRecord, type RunRow, runRecordSql } from "../enqueue/run-rows.ts";
import { sourceOf } from "../enqueue/sources.ts";
import { letterStates, runOutcome } from "../states.ts";
import { namespaceSql } from "../tasks/task-filter.ts";

const arrayLeast = 16;

/**
 * Pads the list by repeating a number. The planner assumes ten elements for an array of unknown length. With a shorter array a new plan
 * would look cheaper than the cached one, and PostgreSQL would plan each time, which takes longer than the read if there is one partition
 * per day. Repeated numbers are looked up only once.
 */
const padded = (ids: number[]): number[] =>
  ids.length >= arrayLeast ? ids : [...ids, ...new Array<number>(arrayLeast - ids.length).fill(ids[0] as number)];

/**
 * Reads live runs first, and then looks among ended runs for those that were not found, so that a run that ends between the two
 * statements is found by the second.
 * @param brief true to leave out parts that can be large
 */
export async function runRows(database: Database, runIds: number[], brief: boolean): Promise<Map<number, RunRow>> {
  const found = new Map<number, RunRow>();
  for (const table of ["run", "run_history"] as const) {
    const left = runIds.filter((runId) => !found.has(runId));
    if (left.length === 0) break;
    const text = `${runRecordSql(database.schema, table, brief)} where r.id = any($1)`;
    const name = `${brief ? "brief" : "whole"}-${table}`;
    for (const row of await database.query<RunRow>(name, text, [padded(left)])) found.set(row.id, row);
  }
  return found;
}

/**
 * Reads everything about runs, with as many statements for many runs as for one, because with one partition per day the cost of a statement
 * hardly depends on the number of runs. Rows of the history are looked up by numbers in an array and not by a join, for which the planner
 * would read the whole history.
 */
export function wholeRuns(database: Database) {
  const s = database.schema;

  const relativesSql = `
    with me as materialized (
      select id, parent_id, inputs from ${s}.run where id = any($1)
      union all select id, parent_id, inputs from ${s}.run_history where id = any($1)),
    near as materialized (
      select id as asked, parent_id as id, 'parent' as relation from me where parent_id is not null
      union select m.id, i.id, 'input' from me m cross join lateral unnest(m.inputs) i (id) where i.id is distinct from m.parent_id),
    kin as (
      select parent_id as asked, id, task_id, state, false as ended, source::text as relation from ${s}.run where parent_id = any($1)
      union all select parent_id, id, task_id, outcome, true, source::text from ${s}.run_history where parent_id = any($1)
      union all
      select n.asked, r.id, r.task_id, r.state, r.ended, n.relation from near n join (
        select id, task_id, state, false as ended from ${s}.run where id = any(array(select id from near))
        union all select id, task_id, outcome, true from ${s}.run_history where id = any(array(select id from near))) r on r.id = n.id)
    select asked, id, task, state, ended, relation
    from (select k.*, t.name as task, row_number() over (partition by k.asked, ${namespaceSql("t.name")} order by k.id) as place
          from kin k join ${s}.task t on t.id = k.task_id) k
    where place <= $2 order by id`;

  return async (runIds: number[], relativesMost: number): Promise<(WholeRun | null)[]> => {
    const ids = padded([...new Set(runIds)]);
    const [found, attempts, relatives, late, letters, redrives] = await Promise.all([
      runRows(database, ids, false),
      database.query<AttemptRecord & { asked: number }>(
        "whole-attempts",
        `select a.run_id as asked, a.attempt, a.fence, o.node, a.claimed_ms as "claimedMs", a.started_ms as "startedMs", a.ended_ms as "endedMs",
                a.outcome, a.error
         from ${s}.attempt a left join ${s}.session o on o.id = a.session_id where a.run_id = any($1) order by a.attempt`,
        [ids],
      ),
      database.query<{ asked: number; id: number; task: string; state: number; ended: boolean; relation: string }>(
        "whole-relatives",
        relativesSql,
        [ids, relativesMost],
      ),
      database.query<Omit<LateResult, "outcome"> & { asked: number; outcome: number }>(
        "whole-late",
        `select l.run_id as asked, l.fence, o.node, l.outcome, l.at_ms as "atMs", l.error from ${s}.late_result l
         left join ${s}.session o on o.id = l.session_id where l.run_id = any($1) order by l.at_ms`,
        [ids],
      ),
      database.query<{ asked: number; fingerprint: string; state: number; redrivenBy: number | null }>(
        "whole-letters",
        `select run_id as asked, fingerprint, state, redriven_by as "redrivenBy" from ${s}.dead_letter where run_id = any($1)`,
        [ids],
      ),
      database.query<{ asked: number; id: number }>(
        "whole-redrives",
        `select redriven_by as asked, run_id as id from ${s}.dead_letter where redriven_by = any($1)`,
        [ids],
      ),
    ]);
    const of = <Row extends { asked: number }>(rows: Row[], runId: number) => rows.filter((row) => row.asked === runId);
    const wholes = new Map<number, WholeRun>();
    for (const [runId, row] of found) {
      const [letter] = of(letters, runId);
      wholes.set(runId, {
        run: asRunRecord(row),
        attempts: of(attempts, runId).map(({ asked: _, ...attempt }) => attempt),
        relatives: of(relatives, runId).map(({ id, task, state, ended, relation }) => ({
          runId: id,
          task,
          state: (ended ? outcomes[state] : liveStates[state]) ?? "",
          relation: (relation === "parent" || relation === "input"
            ? relation
            : sourceOf(Number(relation))) as Relative["relation"],
        })),
        late: of(late, runId).map(({ asked: _, outcome, ...result }) => ({
          ...result,
          outcome: outcome === runOutcome.succeeded ? "succeeded" : "failed",
        })),
        letter: letter
          ? {
              fingerprint: letter.fingerprint,
              state: letterStates[letter.state] ?? "open",
              redrivenBy: letter.redrivenBy,
            }
          : null,
        redrives: of(redrives, runId)[0]?.id ?? null,
      });
    }
    return runIds.map((runId) => wholes.get(runId) ?? null);
  };
}
