import { CarillonError } from "../errors.ts";
import type { ChildWrite, FlowStore, Follower, InputsPage, LateResult, Relative, RunInput } from "../flow.ts";
import { limits } from "../limits.ts";
import { liveStates, outcomes } from "../run.ts";
import type { Enqueued, SqlClient } from "../store.ts";
import { audited } from "./audit.ts";
import type { Endings } from "./claims.ts";
import type { Database } from "./database.ts";
import { LooseEnds, tieUp } from "./following.ts";
import { lockPlans, settleGates } from "./gates.ts";
import { notifyReadySql } from "./signals.ts";
import { sourceNumber, sourceOf } from "./sources.ts";

const child = sourceNumber("child");

export function flowStore(database: Database, { finishIn }: Endings): FlowStore {
  const s = database.schema;
  /** Of a chain of children under one key, the last one stands for it; of one that was split its first part, which has the key. */
  const childrenSql = (parent: string) => `
    select distinct on (task_id, key) id, task_id, key from (
      select id, task_id, key from ${s}.run where parent_id = ${parent} and source = ${child} and key is not null
      union all select id, task_id, key from ${s}.run_history where parent_id = ${parent} and source = ${child} and key is not null) c
    order by task_id, key, id desc`;

  const spawnSql = `
    with i as (
      select nextval('${s}.run_id') as id, i.* from unnest($3::int[], $4::jsonb[], $5::text[]) with ordinality as i (task_id, payload, key, place)
    ), known as materialized (${childrenSql("$1")}),
    made as (
      insert into ${s}.run (id, task_id, group_id, version, state, due_ms, created_ms, priority, gate, after_end, source, key, payload,
                            parent_id, slot_ms, origin, limit_key)
      select i.id, t.id, case when t.routed then 0 else t.group_id end, t.version, case when t.paused_ms is not null then 1 when t.gate > 0 then 0 else 2 end, $2, $2,
             (t.definition->>'priority')::smallint, t.gate, false, ${child}, i.key, i.payload, $1, $6, $7, case when t.lanes then i.key end
      from i join ${s}.task t on t.id = i.task_id and t.deleted_ms is null
      where not exists (select from known k where k.task_id = i.task_id and k.key = i.key)
      order by i.place
      on conflict (task_id, key) where key is not null do nothing returning id, task_id, key, state, due_ms, group_id
    ), told as (
      ${notifyReadySql(s, "made where state = 2")}
    )
    select coalesce(made.id, known.id, r.id) as id, made.id is not null as created, made.state = 0 as held, i.task_id as "taskId",
           (select count(*) from known) + (select count(*) from made) as children, (select count(*) from told)
    from i left join made on made.task_id = i.task_id and made.key = i.key
           left join known on known.task_id = i.task_id and known.key = i.key
           left join ${s}.run r on r.task_id = i.task_id and r.key = i.key
    order by i.place`;

  const inputFields = `h.id as "runId", t.name as task, case when h.source = ${child} then substr(h.key, strpos(h.key, '/') + 1) end as key,
    h.slot_ms as "slotMs", h.outcome, h.result, h.error`;

  /** Without a page `limit null` is none, and no size is asked for. */
  const pageSql = (ended: string) => `
    select ${inputFields}, h.found from (
      select h.*, sum(case when $4::bigint > 0 then coalesce(octet_length(h.result::text), 0) + coalesce(octet_length(h.error::text), 0) end)
                    over (order by h.id) as bytes, row_number() over (order by h.id) as place, count(*) over () as found
      from (select h.* from ${ended} order by h.id limit $3::bigint) h) h
    join ${s}.task t on t.id = h.task_id where h.bytes is null or h.bytes <= $4 or h.place = 1 order by h.id`;

  return {
    async taskId(name) {
      const [row] = await database.persist(() =>
        database.query<{ id: number }>("flow-task", `select id from ${s}.task where name = $1 and deleted_ms is null`, [
          name,
        ]),
      );
      if (!row) throw unknownTask(`there is no task ${JSON.stringify(name)}`);
      return row.id;
    },

    async spawn(parent, children: ChildWrite[], nowMs) {
      const now = Math.round(nowMs);
      const made = await database.persist(() =>
        database.transaction(async (client) => {
          // The lock keeps another attempt of the parent from spawning at the same time.
          const { rows: parents } = await client.query(
            `select slot_ms, coalesce(slot_ms, origin, id) as origin from ${s}.run where id = $1 and fence = $2 and state = 3 for no key update`,
            [parent.runId, parent.fence],
          );
          if (!parents[0])
            throw new CarillonError(
              "FENCE_STALE",
              `run ${parent.runId} is no longer this worker's, so it spawns nothing`,
            );
          const { rows } = await client.query(spawnSql, [
            parent.runId,
            now,
            children.map(({ taskId }) => taskId),
            children.map(({ payload }) => payload),
            children.map(({ key }) => `${parent.runId}/${key}`),
            parents[0].slot_ms,
            parents[0].origin,
          ]);
          if (rows.some(({ id }) => id === null)) throw unknownTask("the task of a child was removed");
          if (Number(rows[0]?.children ?? 0) > limits.children)
            throw new CarillonError(
              "OPTION_INVALID",
              `run ${parent.runId} would have more than ${limits.children} children`,
            );
          return rows as unknown as (Enqueued & { id: number; held: boolean | null; taskId: number })[];
        }),
      );
      // A crash between the two leaves a held run with a free place, which the dispatcher's sweep finds.
      await admit(
        made.filter(({ held }) => held).map(({ taskId }) => taskId),
        nowMs,
      );
      return made.map(({ id, created }) => ({ runId: Number(id), created }));
    },

    async saveState(runId, fence, state) {
      const rows = await database.persist(() =>
        database.query(
          "flow-state",
          `update ${s}.run set checkpoint = $3 where id = $1 and fence = $2 and state = 3 returning 1`,
          [runId, fence, state],
        ),
      );
      return rows.length > 0;
    },

    inputs: async (of) => (await database.persist(() => readInputs(of, null))).inputs,

    inputsPage: readInputs,

    async decide(runId, how, why, nowMs, by) {
      const now = Math.round(nowMs);
      const loose = new LooseEnds();
      const [found] = await database.query<{ task_id: number }>(
        "flow-undecided",
        `select task_id from ${s}.run where id = $1`,
        [runId],
      );
      await database.transaction(async (client) => {
        if (found) await lockPlans(client, s, [found.task_id]);
        const { rows } = await client.query(
          `select state, fence, attempt, gate from ${s}.run where id = $1 for update`,
          [runId],
        );
        const run = rows[0];
        if (!found || run?.state !== liveStates.indexOf("undecided")) throw await notUndecided(client, runId);
        const entry = { atMs: now, who: by, act: `decide: ${how}`, about: "run" as const, named: String(runId) };
        await audited(client, s, { ...entry, before: { state: "undecided" }, after: null, why });
        if (how === "retry") {
          await client.query(
            `with back as (
               update ${s}.run r set state = case when p.paused then 1 when r.gate > 0 then 0 else 2 end, due_ms = greatest(r.due_ms, $2)
               from ${s}.plan p where r.id = $1 and p.task_id = r.task_id returning r.state, r.due_ms, r.group_id)
             ${notifyReadySql(s, "back where state = 2")}`,
            [runId, now],
          );
          if ((run.gate as number) > 0) await settleGates(client, s, [found.task_id], now, false);
          return;
        }
        // By way of a claim, so that this end is like any other's.
        await client.query(`update ${s}.run set state = 3 where id = $1`, [runId]);
        const [fence, attempt] = [Number(run.fence), run.attempt as number];
        const message = `its worker was lost, and it was decided to give it up${why === "" ? "" : `: ${why}`}`;
        const error = JSON.stringify({ code: "WORKER_LOST", message });
        const verdict = { kind: "ended" as const, outcome: "failed" as const, result: null, error };
        const plain = { runId, fence, attempt, taskId: found.task_id, linked: true, startedMs: null, endedMs: now };
        await finishIn(client, [{ ...plain, verdict }], now, loose);
      });
      await tieUp(database, loose, nowMs);
    },

    followers: (taskId) =>
      database.query<Follower>(
        "flow-followers",
        `select t.name as task, (array['success', 'failure', 'any'])[f.ends + 1] as on,
                array(select u.name from ${s}.follow o join ${s}.task u on u.id = o.upstream_id
                      where o.task_id = f.task_id and o.upstream_id <> $1 order by u.name) as with
         from ${s}.follow f join ${s}.task t on t.id = f.task_id and t.deleted_ms is null
         where f.upstream_id = $1 order by t.name`,
        [taskId],
      ),

    async relatives(runId, limit) {
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
    },

    async lateResults(runId) {
      const rows = await database.query<Omit<LateResult, "outcome"> & { outcome: number }>(
        "flow-late",
        `select l.fence, o.node, l.outcome, l.at_ms as "atMs", l.error from ${s}.late_result l
         left join ${s}.session o on o.id = l.session_id where l.run_id = $1 order by l.at_ms`,
        [runId],
      );
      return rows.map((row) => ({ ...row, outcome: row.outcome === 0 ? "succeeded" : "failed" }));
    },
  };

  async function readInputs(
    { runId, fence }: { runId: number; fence?: number },
    page: InputsPage | null,
  ): Promise<{ inputs: RunInput[]; more: boolean }> {
    const [run] = await database.query<{ source: number; parent_id: number | null; inputs: number[] | null }>(
      "flow-run",
      `select source, parent_id, inputs from ${s}.run where id = $1 and ($2::bigint is null or fence = $2 and state = 3)
       union all select source, parent_id, inputs from ${s}.run_history where id = $1 and $2::bigint is null`,
      [runId, fence ?? null],
    );
    if (!run && fence !== undefined)
      throw new CarillonError("FENCE_STALE", `run ${runId} is no longer this worker's, so it is not told`);
    if (!run) return { inputs: [], more: false };
    const isJoin = sourceOf(run.source) === "join";
    const ids =
      run.inputs?.map(Number) ?? (run.parent_id === null || sourceOf(run.source) === "child" ? [] : [run.parent_id]);
    const rows = await database.query<Omit<RunInput, "outcome"> & { outcome: number; found: number }>(
      `flow-inputs-${isJoin}`,
      pageSql(
        isJoin
          ? `(${childrenSql("$1")}) c join ${s}.run_history h on h.id = c.id and h.parent_id = $1 where h.id > $2`
          : `${s}.run_history h where h.id = any($1) and h.id > $2`,
      ),
      [isJoin ? run.parent_id : ids, page?.afterRunId ?? 0, page && page.limit + 1, page?.bytes ?? null],
    );
    const told = page ? rows.slice(0, page.limit) : rows;
    return {
      inputs: told.map(({ found: _, ...row }) => ({ ...row, outcome: outcomes[row.outcome] as RunInput["outcome"] })),
      more: (rows[0]?.found ?? 0) > told.length,
    };
  }

  async function admit(taskIds: number[], nowMs: number): Promise<void> {
    if (taskIds.length === 0) return;
    await database.persist(() => database.transaction((client) => settleGates(client, s, taskIds, nowMs, false)));
  }

  async function notUndecided(client: SqlClient, runId: number): Promise<CarillonError> {
    const { rows } = await client.query(
      `select state from ${s}.run where id = $1 union all select outcome + ${liveStates.length} from ${s}.run_history where id = $1`,
      [runId],
    );
    if (!rows[0])
      return new CarillonError("RUN_UNKNOWN", `there is no run ${runId}`, { hint: "See `carillon runs list`." });
    const state = [...liveStates, ...outcomes][rows[0].state as number];
    return new CarillonError("RUN_STATE", `run ${runId} is ${state}, and not undecided: there is nothing to decide`);
  }
}

const unknownTask = (what: string) =>
  new CarillonError("TASK_UNKNOWN", what, { hint: "See `carillon tasks list`. A task exists once it is stored." });
