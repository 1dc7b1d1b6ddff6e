/**
 * BullMQ (https://docs.bullmq.io/guide/jobs/stalled, …/going-to-production). Its check for stalled jobs finds jobs whose worker no longer
 * renews their lock; the lock's duration and the check's interval are shortened from 30 s to 5 s. A job may stall 25 times before it fails
 * for good, and connections retry without limit.
 */
import { concurrency, lockMs, peer, recurring, type Subject } from "../subject.ts";

interface Queue {
  on(event: "error", listener: (error: unknown) => void): void;
  addBulk(jobs: object[]): Promise<unknown>;
  upsertJobScheduler(id: string, repeat: object, template: object): Promise<unknown>;
  close(): Promise<unknown>;
}
interface BullMQ {
  Queue: new (name: string, options: object) => Queue;
  Worker: new (
    name: string,
    handler: (job: { id: string; name: string; data: { key: string } }) => Promise<void>,
    options: object,
  ) => { on(event: "error", listener: (error: unknown) => void): void; waitUntilReady(): Promise<unknown> };
}

const queueName = "slots";
const again = { attempts: 25 };
// Errors are ignored, because they only report the connections that the harness cuts; the log of executions shows the consequences.
const unheard = () => undefined;

function connectionOf(store: string): object {
  const { hostname: host, port } = new URL(store);
  return { host, port: Number(port), maxRetriesPerRequest: null };
}

export const subject: Subject = {
  async add(store, slots) {
    const { Queue } = (await peer("bullmq")) as BullMQ;
    const queue = new Queue(queueName, { connection: connectionOf(store) });
    await queue.addBulk(
      slots.map(({ key, dueMs }) => ({
        name: "once",
        data: { key },
        opts: { jobId: key, delay: Math.max(0, dueMs - Date.now()), ...again },
      })),
    );
    // A cron pattern has known slots. With `every`, the slots would begin at an arbitrary moment, so that missing slots could not be
    // detected.
    await queue.upsertJobScheduler("every", { pattern: "* * * * * *" }, { name: "every", data: {}, opts: again });
    await queue.close();
  },
  async work({ store }, handle) {
    const { Worker } = (await peer("bullmq")) as BullMQ;
    const worker = new Worker(
      queueName,
      // The id of a scheduler's job contains the slot's time: repeat:every:1700000000000.
      ({ id, name, data }) =>
        handle(name === "every" ? recurring(Number(id.slice(id.lastIndexOf(":") + 1))) : data.key),
      {
        connection: connectionOf(store),
        concurrency,
        lockDuration: lockMs,
        stalledInterval: lockMs,
        maxStalledCount: 25,
      },
    );
    worker.on("error", unheard);
    await worker.waitUntilReady();
  },
};
