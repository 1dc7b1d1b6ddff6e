/**
 * pg-boss (https://pgboss.io/api/queues): what has been active for longer than `expireInSeconds` (default 15 minutes) is tried
 * again, at the next look for such (default each minute); 5 s and each second here. Its heartbeat begins at 10 s, which is
 * longer. A schedule that missed its time is caught up.
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
  // Of lines that are cut on purpose it tells without end; what comes of them is in the notes.
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
      // Its job does not tell its time; it is made in that minute.
      for (const { data, createdOn } of jobs)
        await handle(data.key ?? recurring(Math.floor(createdOn.getTime() / minuteMs) * minuteMs));
    });
  },
};

/** The same for the same key, so that a key is added once. */
function uuidOf(key: string): string {
  const hex = createHash("sha256").update(key).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
