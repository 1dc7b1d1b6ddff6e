/**
 * graphile-worker with the settings that https://worker.graphile.org/docs/performance recommends for speed: concurrency 24, 25 connections,
 * completions batched without delay. The local queue holds 500 runs, for a backlog 5,000. Finished runs leave no row. With the profile
 * "prompt" it polls for due runs every 50 ms instead of every 2 s.
 */
import { type Books, type Contender, type Order, peer, type Query, taskName } from "./contender.ts";

interface Worker {
  makeWorkerUtils(options: object): Promise<{
    migrate(): Promise<void>;
    addJobs(specs: object[]): Promise<unknown>;
    addJob(task: string, payload: unknown, spec?: object): Promise<unknown>;
    release(): Promise<void>;
  }>;
  run(
    options: object,
    tasks: Record<string, (payload: { id: number }) => void>,
    crons?: unknown[],
  ): Promise<{ stop(): Promise<void>; promise: Promise<void> }>;
  parseCronItems(items: object[]): unknown[];
  Logger: new (factory: () => () => void) => unknown;
}

const concurrentJobs = 24;

export async function open(order: Order): Promise<Contender> {
  const worker = (await peer("graphile-worker")) as Worker;
  const logger = new worker.Logger(() => () => undefined);
  const utils = await worker.makeWorkerUtils({ connectionString: order.postgres, logger });
  await utils.migrate();
  let running: Awaited<ReturnType<Worker["run"]>> | undefined;
  const preset = {
    worker: {
      connectionString: order.postgres,
      concurrentJobs,
      maxPoolSize: concurrentJobs + 1,
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
      localQueue: { size: order.profile === "many" ? 5_000 : 500 },
      ...(order.profile === "prompt" ? { pollInterval: 50 } : {}),
      logger,
    },
  };
  const start = async (tasks: Record<string, (payload: { id: number }) => void>, crons: unknown[] = []) => {
    running = await worker.run({ preset, noHandleSignals: true, logger }, tasks, crons);
  };
  return {
    async add(added) {
      const [only] = added;
      if (only && added.length === 1) {
        const { id, dueMs } = only;
        await utils.addJob(taskName, { id }, dueMs === undefined ? {} : { runAt: new Date(dueMs) });
        return;
      }
      await utils.addJobs(
        added.map(({ id, dueMs }) => ({
          identifier: taskName,
          payload: { id },
          ...(dueMs === undefined ? {} : { runAt: new Date(dueMs) }),
        })),
      );
    },
    work: (handle) => start({ [taskName]: ({ id }) => handle(id) }),
    everyMinute: (tasks, handle) =>
      start(
        { [taskName]: ({ id }) => handle(id) },
        worker.parseCronItems(
          Array.from({ length: tasks }, (_, id) => ({
            task: taskName,
            match: "* * * * *",
            identifier: `${taskName}-${id}`,
            payload: { id },
          })),
        ),
      ),
    async stop() {
      await running?.stop();
      await utils.release();
    },
  };
}

export function books(_order: unknown, query: Query): Books {
  return {
    left: async () =>
      (await query<{ n: number }>("select count(*)::int as n from graphile_worker._private_jobs"))[0]?.n ?? Number.NaN,
    ended: async () => null,
  };
}
