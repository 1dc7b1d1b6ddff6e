/**
 * pg-boss (https://pgboss.io/api/queues): a job that has been active for longer than `expireInSeconds` (default 15 minutes) is retried at
 * the next check (default each minute). Here the values are 5 s and 1 s. Its heartbeat is not used, because the minimum of 10 s is longer.
 * A schedule that missed its time is caught up once.
 */
import { createHash } from "node:crypto";
import { concurrency, lockMs, peer, recurring, type Subject } from "../subject.ts";

interface Boss {
  on(event: "error", listener: (error: unknown) => void): void;
  start(): Promise<unknown>;
  stop(options: object): Promise<unknown>;
  createQueue(name: string, options: object): Promise<unknown>;
  insert(name: string, jobs: object[]): Promise<unknown>;
  work(name: string, options: object, handler: (jobs: Job[]) => Promise<unknown>): Promise<unknown>;
  schedule(name: string, cron: string, data: object, options: object): Promise<unknown>;
}
interface Job {
  readonly data: { key?: string };
  readonly createdOn: Date;
}

const queueName = "slots";
const queue = { expireInSeconds: lockMs / 1_000, retryLimit: 25, retryDelay: 0, notify: true };
const minuteMs = 60_000;

async function bossOf(store: string): Promise<Boss> {
  const { PgBoss } = (await peer("pg-boss")) as { PgBoss: new (options: object) => Boss };
  const boss = new PgBoss({
    connectionString: store,
    useListenNotify: true,
    superviseIntervalSeconds: 1,
    monitorIntervalSeconds: 1,
    cronWorkerIntervalSeconds: 1,
    cronMonitorIntervalSeconds: 1,
  });
  // Errors are ignored, because they only report the connections that the harness cuts; the log of executions shows the consequences.
  boss.on("error", () => undefined);
  await boss.start();
  return boss;
}

export const subject: Subject = {
  async add(store, slots) {
    const boss = await bossOf(store);
    await boss.createQueue(queueName, queue);
    await boss.insert(
      queueName,
      slots.map(({ key, dueMs }) => ({ id: uuidOf(key), data: { key }, startAfter: new Date(dueMs) })),
    );
    await boss.schedule(queueName, "* * * * *", {}, { missed: "once" });
    await boss.stop({ graceful: true });
  },
  async work({ store }, handle) {
    const boss = await bossOf(store);
    const options = { localConcurrency: concurrency, pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 0.5 };
    await boss.work(queueName, { ...options, includeMetadata: true }, async (jobs) => {
      // A scheduled job does not contain its slot's time, but it is created within the slot's minute.
      for (const { data, createdOn } of jobs)
        await handle(data.key ?? recurring(Math.floor(createdOn.getTime() / minuteMs) * minuteMs));
    });
  },
};

/** Returns a UUID that is equal for equal keys, so that a key is added only once. */
function uuidOf(key: string): string {
  const hex = createHash("sha256").update(key).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
