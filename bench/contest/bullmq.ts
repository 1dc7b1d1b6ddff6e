/**
 * BullMQ on Redis, with the settings that its docs recommend for speed: high concurrency in one worker, finished jobs removed, bulk adds
 * (https://docs.bullmq.io/guide/going-to-production, …/workers/concurrency). Redis writes an append-only file and syncs it each second, as
 * those docs advise: a crash of the machine can lose a second of acknowledged work, while PostgreSQL loses none. Redis checks its timers
 * 100 times a second (`hz` 100) instead of 10, because with the default, delayed jobs start later.
 */
import { type Books, type Contender, type Order, peer, taskName } from "./contender.ts";
import { redisNumber, tellRedis } from "./redis.ts";

interface Closable {
  waitUntilReady(): Promise<unknown>;
  close(): Promise<unknown>;
}

interface Queue {
  waitUntilReady(): Promise<unknown>;
  add(name: string, data: object, options: object): Promise<{ waitUntilFinished(events: Closable): Promise<unknown> }>;
  addBulk(jobs: object[]): Promise<unknown>;
  upsertJobScheduler(id: string, repeat: object, template: object): Promise<unknown>;
  close(): Promise<unknown>;
}

interface BullMQ {
  Queue: new (name: string, options: object) => Queue;
  QueueEvents: new (name: string, options: object) => Closable;
  Worker: new (
    name: string,
    handler: (job: { data: { id: number } }) => Promise<unknown>,
    options: object,
  ) => {
    on(event: "error", listener: (error: unknown) => void): void;
    waitUntilReady(): Promise<unknown>;
    close(): Promise<unknown>;
  };
}

const concurrency = 300;
const schedulersAtOnce = 500;

export async function open(order: Order): Promise<Contender> {
  const { Queue, QueueEvents, Worker } = (await peer("bullmq")) as BullMQ;
  const { hostname: host, port } = new URL(order.redis);
  const connection = { host, port: Number(port), maxRetriesPerRequest: null };
  await tellRedis(order.redis, "CONFIG SET hz 100");
  const queue = new Queue(taskName, { connection });
  await queue.waitUntilReady();
  let worker: InstanceType<BullMQ["Worker"]> | undefined;
  let events: Closable | undefined;
  const opts = { removeOnComplete: true, removeOnFail: false };
  const delay = (dueMs: number | undefined) => (dueMs === undefined ? {} : { delay: Math.max(0, dueMs - Date.now()) });
  const work = async (handle: (id: number) => void | Promise<void>) => {
    worker = new Worker(taskName, async ({ data }) => handle(data.id), { connection, concurrency });
    worker.on("error", (error) => console.error(error));
    await worker.waitUntilReady();
  };
  return {
    async add(added) {
      const [only] = added;
      if (only && added.length === 1) await queue.add(taskName, { id: only.id }, { ...opts, ...delay(only.dueMs) });
      else
        await queue.addBulk(
          added.map(({ id, dueMs }) => ({ name: taskName, data: { id }, opts: { ...opts, ...delay(dueMs) } })),
        );
    },
    async addAndWait(id) {
      if (!events) {
        events = new QueueEvents(taskName, { connection });
        await events.waitUntilReady();
      }
      // BullMQ deletes the result together with the job, so the last 1,000 jobs are kept.
      const job = await queue.add(taskName, { id }, { ...opts, removeOnComplete: 1_000 });
      await job.waitUntilFinished(events);
    },
    work,
    async everyMinute(tasks, handle) {
      for (let from = 0; from < tasks; from += schedulersAtOnce) {
        const ids = Array.from({ length: Math.min(schedulersAtOnce, tasks - from) }, (_, i) => from + i);
        await Promise.all(
          ids.map((id) =>
            queue.upsertJobScheduler(
              `${taskName}-${id}`,
              { pattern: "* * * * *" },
              { name: taskName, data: { id }, opts },
            ),
          ),
        );
      }
      await work(handle);
    },
    async stop() {
      await worker?.close();
      await events?.close();
      await queue.close();
    },
  };
}

export function books({ redis }: Pick<Order, "redis">): Books {
  return {
    async left() {
      let left = 0;
      for (const list of ["wait", "active", "paused"])
        left += await redisNumber(redis, `LLEN bull:${taskName}:${list}`);
      for (const set of ["delayed", "prioritized", "failed"])
        left += await redisNumber(redis, `ZCARD bull:${taskName}:${set}`);
      return left;
    },
    ended: async () => null,
  };
}
