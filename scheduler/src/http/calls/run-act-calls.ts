import type { Clock } from "../../base/clock.ts";
import { checkIfKeyTaken, type EnqueueDurability, type EnqueueOptions, replacing } from "../../run/enqueue-options.ts";
import { keyOverTime } from "../../run/keys/key-over-time.ts";
import type { EnqueueWrite } from "../../run/run-record.ts";
import { type Enqueues, payloadBytes } from "../../store/enqueues.ts";
import { awaitRecall } from "../../store/recall.ts";
import type { Store } from "../../store/store.ts";
import { withContext } from "../../store/trace-context.ts";
import type { Call, Some } from "../call.ts";
import type { Quotas } from "../quotas.ts";
import { changeOf } from "./changes.ts";
import { Gathered } from "./gathered.ts";

export interface RunActOptions {
  store: Store;
  clock: Clock;
  enqueues: Enqueues;
  quotas: Quotas;
}

const entriesPerStatement = 500;

/** A run to be enqueued, in the form of the API contract. */
interface GivenRun {
  task: string;
  payload?: unknown;
  in?: string | number | undefined;
  at?: string | undefined;
  key?: string | undefined;
  limitKey?: string | undefined;
  priority?: number | undefined;
  retry?: unknown;
  runTimeout?: string | number | null | undefined;
  expiresIn?: string | number | undefined;
  expiresAt?: string | undefined;
  labels?: Record<string, string> | undefined;
  durability?: EnqueueDurability | undefined;
}

/** Returns those options of a run that need conversion, or checks beyond those of the contract. */
const optionsOf = ({
  at,
  expiresAt,
  retry,
  runTimeout,
  expiresIn,
  labels,
  durability,
  ...given
}: GivenRun): EnqueueOptions =>
  ({
    in: given.in,
    at: at && Date.parse(at),
    retry,
    runTimeout,
    expiresIn,
    labels,
    durability,
    expiresAt: expiresAt && Date.parse(expiresAt),
  }) as EnqueueOptions;

/** The API calls that enqueue, cancel, repeat and decide runs. */
export function runActCalls({
  store,
  clock,
  enqueues,
  quotas,
}: RunActOptions): Some<"runTask" | "enqueueRuns" | "cancelRun" | "rerunRun" | "decideRun"> {
  const audits = new Gathered(async (entries: Parameters<Store["audit"]["record"]>[0]) => {
    await store.audit.record(entries);
    return entries;
  }, entriesPerStatement);
  const writeOf = (given: GivenRun, source: "enqueue" | "manual", { nowMs }: Call, runId: number | undefined) =>
    enqueues.writeOf({ ...given, source, runId }, optionsOf(given), nowMs);

  /** Counts the runs against the quotas. A repeated request (same idempotency key) is answered earlier and does not get here. */
  const take = ({ who }: Call, asked: { task: string; write: EnqueueWrite }[]) =>
    quotas.take(who?.user ?? "", async () =>
      asked.map(({ task, write }) => ({ task, payloadBytes: payloadBytes(write.payload) })),
    );

  return {
    async runTask({ task, reason, ifKeyTaken, uniqueFor, maxWait, ...given }, call) {
      checkIfKeyTaken(ifKeyTaken, given.key);
      const over = keyOverTime({ uniqueFor, maxWait, ifKeyTaken, key: given.key } as EnqueueOptions);
      const write = await writeOf({ task, ...given }, "manual", call, call.runIds[0]);
      await take(call, [{ task, write }]);
      const keyed = { ...replacing(ifKeyTaken), ...over };
      const { runId, created, replaced, again } = await enqueues.one(
        task,
        { ...write, ...keyed },
        call.traceparent,
        call.nowMs,
      );
      const { author, reason: why } = changeOf(call, reason);
      // The run's own record says that it was requested manually; this audit entry adds the caller. A crash between the two writes loses
      // only the audit entry.
      if (created || again) {
        await audits.ask({
          atMs: call.nowMs,
          who: author,
          act: "run",
          about: "run",
          named: String(runId),
          before: null,
          after: { task, dueMs: write.dueMs, key: write.key },
          why,
        });
      }
      return { run: runId, created, ...(replaced === undefined ? {} : { replaced }), ...(again ? { again } : {}) };
    },

    async enqueueRuns({ runs }, call) {
      for (const { task } of runs) call.reach.check(task);
      const writes: EnqueueWrite[] = [];
      for (const [at, given] of runs.entries()) writes.push(await writeOf(given, "enqueue", call, call.runIds[at]));
      const asked = writes.map((write, at) => ({ task: runs[at]?.task ?? "", write }));
      await take(call, asked);
      const task = runs.every((one) => one.task === runs[0]?.task) ? (runs[0]?.task ?? null) : null;
      const made = await enqueues.traced(task, call.traceparent, (context) =>
        store.runs.enqueue(withContext(writes, context), call.nowMs),
      );
      return { runs: made.map(({ runId, created }) => ({ run: runId, created })) };
    },

    async cancelRun({ run, reason }, call) {
      const { author, reason: why } = changeOf(call, reason);
      const outcome = await store.runs.cancel(run, why === "" ? `cancelled by ${author}` : why, call.nowMs, author);
      if (outcome === "cancelled") return { run, outcome };
      const [started] = await awaitRecall(store.runs, clock, [run]);
      return { run, outcome: started === undefined ? "cancelled" : "stopping" };
    },

    async rerunRun({ run, reason }, call) {
      await quotas.take(call.who?.user ?? "", async () => {
        const { task, payload } = await store.runs.find(run);
        return [{ task, payloadBytes: payloadBytes(JSON.stringify(payload)) }];
      });
      const made = await store.operations.rerun(run, changeOf(call, reason), call.runIds[0]);
      return { run: made.runId, created: made.created };
    },

    async decideRun({ run, how, reason }, call) {
      const { author, reason: why } = changeOf(call, reason);
      await store.flow.decide(run, how, why, call.nowMs, author);
      return undefined;
    },
  };
}
