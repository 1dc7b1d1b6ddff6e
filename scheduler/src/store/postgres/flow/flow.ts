import type { FlowStore, Follower, LateResult, Relative } from "../../../run/flow.ts";
import { liveStates, outcomes } from "../../../run/run.ts";
import type { Database } from "../database.ts";
import { sourceOf } from "../enqueue/sources.ts";
import { runOutcome, runState } from "../states.ts";
import { connected } from "./connected.ts";
import { decide } from "./decide.ts";
import { family } from "./family.ts";
import { fireJoins } from "./following.ts";
import { readInputs } from "./inputs.ts";
import { spawn, unknownTask } from "./spawn.ts";

export function flowStore(database: Database): FlowStore {
  return {
    taskId: (name) => taskId(database, name),
    spawn: (parent, children, nowMs) => spawn(database, parent, children, nowMs),
    saveState: (runId, fence, state) => saveState(database, runId, fence, state),
    inputs: async (of) => (await database.persist(() => readInputs(database, of, null))).inputs,
    inputsPage: (of, page) => readInputs(database, of, page),
    join: (parentIds, nowMs) => fireJoins(database, parentIds, nowMs),
    decide: (runId, how, why, nowMs, by) => decide(database, { runId, how, why, nowMs, by }),
    followers: (taskId) => followers(database, taskId),
    connected: (which) => connected(database, which),
    family: (runId, limit) => family(database, runId, limit),
    relatives: (runId, limit) => relatives(database, runId, limit),
    lateResults: (runId) => lateResults(database, runId),
  };
}

async function taskId(database: Database, name: string): Promise<number> {
  const s = database.schema;
  const [row] = await database.persist(() =>
    database.query<{ id: number }>("flow-task", `select id from ${s}.task where name = $1 and deleted_ms is null`, [
      name,
    ]),
  );
  if (!row) throw unknownTask(`there is no task ${JSON.stringify(name)}`);
  return row.id;
}

async function saveState(database: Database, runId: number, fence: number, state: string | null): Promise<boolean> {
  const s = database.schema;
  const rows = await database.persist(() =>
    database.query(
      "flow-state",
      `update ${s}.run set checkpoint = $3 where id = $1 and fence = $2 and state = ${runState.claimed} returning 1`,
      [runId, fence, state],
    ),
  );
  return rows.length > 0;
}

async function followers(database: Database, taskId: number): Promise<Follower[]> {
  const s = database.schema;
  return database.query<Follower>(
    "flow-followers",
    `select t.name as task, (array['success', 'failure', 'any'])[f.ends + 1] as on,
            array(select u.name from ${s}.follow o join ${s}.task u on u.id = o.upstream_id
                  where o.task_id = f.task_id and o.upstream_id <> $1 order by u.name) as with
     from ${s}.follow f join ${s}.task t on t.id = f.task_id and t.deleted_ms is null
     where f.upstream_id = $1 order by t.name`,
    [taskId],
  );
}

async function relatives(database: Database, runId: number, limit: number): Promise<Relative[]> {
  const s = database.schema;
  const rows = await database.query<{ id: number; task: string; state: number; ended: boolean; relation: string }>(
    "flow-relatives",
    `with me as (
       select parent_id, source, inputs from ${s}.run where id = $1
       union all select parent_id, source, inputs from ${s}.run_history where id = $1),
     kin as (
       select id, task_id, state, false as ended, source, parent_id from ${s}.run
       where parent_id = $1 or id = any(array(select parent_id from me union all select unnest(inputs) from me))
       union all select id, task_id, outcome, true, source, parent_id from ${s}.run_history where parent_id = $1
       union all select id, task_id, outcome, true, source, parent_id from ${s}.run_history
       where id = any(array(select parent_id from me union all select unnest(inputs) from me))
         and parent_id is distinct from $1)
     select k.id, t.name as task, k.state, k.ended,
            case when k.parent_id = $1 then k.source::text when k.id in (select parent_id from me) then 'parent' else 'input' end as relation
     from kin k join ${s}.task t on t.id = k.task_id order by k.id limit $2`,
    [runId, limit],
  );
  return rows.map(({ id, task, state, ended, relation }) => ({
    runId: id,
    task,
    state: (ended ? outcomes[state] : liveStates[state]) ?? "",
    relation: (relation === "parent" || relation === "input"
      ? relation
      : sourceOf(Number(relation))) as Relative["relation"],
  }));
}

async function lateResults(database: Database, runId: number): Promise<LateResult[]> {
  const s = database.schema;
  const rows = await database.query<Omit<LateResult, "outcome"> & { outcome: number }>(
    "flow-late",
    `select l.fence, o.node, l.outcome, l.at_ms as "atMs", l.error from ${s}.late_result l
     left join ${s}.session o on o.id = l.session_id where l.run_id = $1 order by l.at_ms`,
    [runId],
  );
  return rows.map((row) => ({ ...row, outcome: row.outcome === runOutcome.succeeded ? "succeeded" : "failed" }));
}
