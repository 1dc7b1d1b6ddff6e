import type { SqlClient } from "../../../base/change.ts";
import { CarillonError } from "../../../base/errors.ts";
import { runUnknown } from "../../../run/run.ts";
import type { AttemptRecord } from "../../../run/run-record.ts";
import type { RunStore } from "../../../run/run-store.ts";
import { audited } from "../access/audit.ts";
import { lockPlans, settleGates } from "../claims/gates.ts";
import { endExpired } from "../claims/to-start.ts";
import type { Announcer } from "../cluster/announcer.ts";
import type { CheckTransaction } from "../cluster/callers-transaction.ts";
import { notifySql } from "../cluster/signals.ts";
import type { Database } from "../database.ts";
import { enqueueStore } from "../enqueue/enqueue.ts";
import { forgetKeys } from "../enqueue/known-keys.ts";
import { originStore } from "../enqueue/origins.ts";
import { asRunRecord, type RunRow, runRecordSql } from "../enqueue/run-rows.ts";
import { runOutcome, runRecall, runState } from "../states.ts";
import { listRuns } from "./browse-runs.ts";
import { endStore } from "./ends.ts";
import { logStore } from "./logs.ts";
import { endUnclaimedSql } from "./unclaimed-ends.ts";

export function runStore(database: Database, announcer: Announcer, requireTransaction: CheckTransaction): RunStore {
  const s = database.schema;

  const recordSql = (table: "run" | "run_history") => runRecordSql(s, table);

  const store: RunStore = {
    ...enqueueStore(database, announcer),
    ...originStore(database),
    ...logStore(database),
    ...endStore(database),

    announced: () => announcer.announced(),
    requireTransaction,

    async cancel(runId, why, nowMs, by) {
      const now = Math.round(nowMs);
      const putDown = async (client: SqlClient, outcome: string) => {
        if (by === undefined) return;
        const entry = { atMs: now, who: by, act: "cancel", about: "run" as const, named: String(runId) };
        await audited(client, s, { ...entry, before: null, after: { outcome }, why });
      };
      return database.transaction(async (client) => {
        const { rows: tasks } = await client.query(`select task_id from ${s}.run where id = $1`, [runId]);
        await lockPlans(
          client,
          s,
          tasks.map((row) => row.task_id as number),
        );
        // Locks the run first, because another transaction could claim it between two statements that only read its state.
        const live = await client.query(`select state from ${s}.run where id = $1 for update`, [runId]);
        if (live.rows[0]?.state === runState.claimed) {
          await client.query(`update ${s}.run set recall = ${runRecall.cancel}, recall_why = $2 where id = $1`, [
            runId,
            why,
          ]);
          await client.query(`select ${notifySql(s, "'recall'")}`);
          await putDown(client, "asked");
          return "asked";
        }
        const { rows } = await client.query(
          endUnclaimedSql(s, {
            which: "where r.id = $1",
            outcome: runOutcome.cancelled,
            why: "$3",
            now: "$2",
            answer: "task_id, gate",
          }),
          [runId, now, why],
        );
        const gone = rows[0];
        if (!gone) throw await notLive(runId);
        await putDown(client, "cancelled");
        if ((gone.gate as number) > 0) await settleGates(client, s, [gone.task_id as number], nowMs, true);
        return "cancelled";
      });
    },

    endExpired: (nowMs) => endExpired(database, nowMs),
    forgetKeys: (nowMs) => forgetKeys(database, nowMs),

    async recallsOpen(runIds) {
      const rows = await database.query<{ id: number }>(
        "run-recalls",
        `select id from ${s}.run where id = any($1) and state = ${runState.claimed} and recall <> ${runRecall.none} and started_ms is null`,
        [runIds],
      );
      return rows.map(({ id }) => id);
    },

    async find(runId) {
      for (const table of ["run", "run_history"] as const) {
        const [row] = await database.query<RunRow>(`run-find-${table}`, `${recordSql(table)} where r.id = $1`, [runId]);
        if (row) return asRunRecord(row);
      }
      throw runUnknown(runId);
    },

    list: (filter) => listRuns(database, filter),

    async attempts(runId): Promise<AttemptRecord[]> {
      return database.query<AttemptRecord>(
        "run-attempts",
        `select a.attempt, a.fence, o.node, a.claimed_ms as "claimedMs", a.started_ms as "startedMs", a.ended_ms as "endedMs", a.outcome, a.error
         from ${s}.attempt a left join ${s}.session o on o.id = a.session_id where a.run_id = $1 order by a.attempt`,
        [runId],
      );
    },
  };
  return store;

  async function notLive(runId: number): Promise<CarillonError> {
    const { state } = await store.find(runId);
    return new CarillonError("RUN_STATE", `run ${runId} has ended (${state}) and cannot be cancelled`);
  }
}
