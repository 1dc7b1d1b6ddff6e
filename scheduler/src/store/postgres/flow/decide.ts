import type { SqlClient } from "../../../base/change.ts";
import { CarillonError } from "../../../base/errors.ts";
import { liveStates, outcomes } from "../../../run/run.ts";
import { audited } from "../access/audit.ts";
import { failIn } from "../claims/finish.ts";
import { lockPlans, settleGates } from "../claims/gates.ts";
import { notifyReadySql } from "../cluster/signals.ts";
import type { Database } from "../database.ts";
import { runState } from "../states.ts";
import { LooseEnds, tieUp } from "./following.ts";

/** The request of `FlowStore.decide`. */
interface Decision {
  runId: number;
  how: "retry" | "fail";
  why: string;
  nowMs: number;
  by: string;
}

/** Applies an operator's decision on an undecided run: it is retried or fails. */
export async function decide(database: Database, { runId, how, why, nowMs, by }: Decision): Promise<void> {
  const s = database.schema;
  const now = Math.round(nowMs);
  const loose = new LooseEnds();
  const [found] = await database.query<{ task_id: number }>(
    "flow-undecided",
    `select task_id from ${s}.run where id = $1`,
    [runId],
  );
  await database.transaction(async (client) => {
    if (found) await lockPlans(client, s, [found.task_id]);
    const { rows } = await client.query(`select state, fence, attempt, gate from ${s}.run where id = $1 for update`, [
      runId,
    ]);
    const run = rows[0];
    if (!found || run?.state !== runState.undecided) throw await notUndecided(client, s, runId);
    const entry = { atMs: now, who: by, act: `decide: ${how}`, about: "run" as const, named: String(runId) };
    await audited(client, s, { ...entry, before: { state: "undecided" }, after: null, why });
    if (how === "retry") {
      await client.query(
        `with back as (
           update ${s}.run r set state = case when p.paused then ${runState.paused} when r.gate > 0 then ${runState.held} else ${runState.ready} end, due_ms = greatest(r.due_ms, $2)
           from ${s}.plan p where r.id = $1 and p.task_id = r.task_id returning r.state, r.due_ms, r.group_id)
         ${notifyReadySql(s, `back where state = ${runState.ready}`)}`,
        [runId, now],
      );
      if ((run.gate as number) > 0) await settleGates(client, s, [found.task_id], now, false);
      return;
    }
    const message = `its worker was lost, and it was decided to give it up${why === "" ? "" : `: ${why}`}`;
    const undecided = { runId, fence: Number(run.fence), attempt: run.attempt as number, taskId: found.task_id };
    await failIn(client, s, { ...undecided, code: "WORKER_LOST", message }, now, loose);
  });
  await tieUp(database, loose, nowMs);
}

async function notUndecided(client: SqlClient, s: string, runId: number): Promise<CarillonError> {
  const { rows } = await client.query(
    `select state from ${s}.run where id = $1 union all select outcome + ${liveStates.length} from ${s}.run_history where id = $1`,
    [runId],
  );
  if (!rows[0])
    return new CarillonError("RUN_UNKNOWN", `there is no run ${runId}`, { hint: "See `carillon runs list`." });
  const state = [...liveStates, ...outcomes][rows[0].state as number];
  return new CarillonError("RUN_STATE", `run ${runId} is ${state}, and not undecided: there is nothing to decide`);
}
