/**
 * graphile-worker (https://worker.graphile.org/docs/error-handling): jobs of a killed worker "remain locked for at least 4 hours", which
 * cannot be configured; only its Pro version has a heartbeat. Its cron items catch up the slots that they missed.
 */
import { concurrency, peer, recurring, type Subject } from "../subject.ts";

interface Worker {
  makeWorkerUtils(options: object): Promise<{
    migrate(): Promise<void>;
    addJobs(specs: object[]): Promise<unknown>;
    release(): Promise<void>;
  }>;
  run(
    options: object,
    tasks: Record<string, (payload: { key?: string; _cron?: { ts: string } }) => Promise<void>>,
    crons: unknown[],
  ): Promise<{ promise: Promise<void> }>;
  parseCronItems(items: object[]): unknown[];
  Logger: new (factory: () => () => void) => unknown;
}

const task = "slots";

export const subject: Subject = {
  async add(store, slots) {
    const { makeWorkerUtils } = (await peer("graphile-worker")) as Worker;
    const utils = await makeWorkerUtils({ connectionString: store });
    await utils.migrate();
    await utils.addJobs(
      slots.map(({ key, dueMs }) => ({
        identifier: task,
        payload: { key },
        jobKey: key,
        runAt: new Date(dueMs),
      })),
    );
    await utils.release();
  },
  async work({ store }, handle) {
    const { run, parseCronItems, Logger } = (await peer("graphile-worker")) as Worker;
    // Errors are ignored, because they only report the connections that the harness cuts; the log of executions shows the consequences.
    const logger = new Logger(() => () => undefined);
    const worker = {
      // A delay of 0 batches completions. Without batches a failed completion is an unhandled rejection, which ends the process.
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
      connectionString: store,
      concurrentJobs: concurrency,
      maxPoolSize: concurrency + 1,
      pollInterval: 500,
    };
    const crons = [{ task, match: "* * * * *", identifier: "every", options: { backfillPeriod: 600_000 } }];
    const { promise } = await run(
      { preset: { worker: { ...worker, logger } }, noHandleSignals: true, logger },
      { [task]: ({ key, _cron }) => handle(key ?? recurring(Date.parse(_cron?.ts ?? ""))) },
      parseCronItems(crons),
    );
    // As its docs recommend, the process exits when the runner ends, which has by then released its jobs; the supervisor restarts it.
    promise.then(
      () => process.exit(1),
      () => process.exit(1),
    );
  },
};
