/**
 * pg-boss with the settings that its docs recommend for speed (https://pgboss.io/api/workers): batches, no pause while batches are full, a
 * queue with its own table. For low latency it uses LISTEN/NOTIFY and the shortest polling interval that pg-boss accepts, 0.5 s. pg-boss
 * keeps finished runs in the same table for at least a second and deletes them in maintenance rounds; this cannot be turned off.
 */
import { type Books, type Contender, type Order, peer, type Query, taskName } from "./contender.ts";

interface Boss {
  on(event: "error", listener: (error: unknown) => void): void;
  start(): Promise<unknown>;
  stop(options: object): Promise<unknown>;
  createQueue(name: string, options: object): Promise<unknown>;
  insert(name: string, jobs: object[]): Promise<unknown>;
  send(name: string, data: object, options: object): Promise<unknown>;
  work(
    name: string,
    options: object,
    handler: (jobs: { data: { id: number } }[]) => Promise<unknown>,
  ): Promise<unknown>;
  schedule(name: string, cron: string, data: object, options: object): Promise<unknown>;
}

const batchSize = 2_000;

export async function open(order: Order): Promise<Contender> {
  const { PgBoss } = (await peer("pg-boss")) as { PgBoss: new (options: object) => Boss };
  const prompt = order.profile === "prompt";
  const boss = new PgBoss({
    connectionString: order.postgres,
    useListenNotify: prompt,
    registerInstance: false,
    // pg-boss checks for due schedules at this interval in seconds; 1 is the shortest that it accepts.
    ...(prompt ? { cronWorkerIntervalSeconds: 1, cronMonitorIntervalSeconds: 1 } : { schedule: false }),
  });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  await boss.createQueue(taskName, { partition: true, notify: prompt });
  const work = (handle: (id: number) => void | Promise<void>) =>
    boss.work(
      taskName,
      {
        batchSize,
        burstWhenBatchFull: true,
        pollingIntervalSeconds: 0.5,
        notifyPollingIntervalSeconds: 0.5,
      },
      async (jobs) => {
        const working = jobs.flatMap(({ data }) => handle(data.id) ?? []);
        if (working.length > 0) await Promise.all(working);
      },
    );
  return {
    async add(added) {
      const [only] = added;
      const options = ({ dueMs }: { dueMs?: number }) => (dueMs === undefined ? {} : { startAfter: new Date(dueMs) });
      if (only && added.length === 1) await boss.send(taskName, { id: only.id }, options(only));
      else
        await boss.insert(
          taskName,
          added.map((one) => ({ data: { id: one.id }, ...options(one) })),
        );
    },
    work,
    async everyMinute(tasks, handle) {
      for (let id = 0; id < tasks; id++) await boss.schedule(taskName, "* * * * *", { id }, { key: String(id) });
      await work(handle);
    },
    stop: () => boss.stop({ graceful: true, timeout: 30_000 }),
  };
}

export function books(_order: unknown, query: Query): Books {
  const count = async (condition: string) =>
    (
      await query<{ n: number }>(
        `select count(*)::int as n from pgboss.job where name = '${taskName}' and state ${condition}`,
      )
    )[0]?.n ?? Number.NaN;
  return { left: () => count("<> 'completed'"), ended: () => count("= 'completed'") };
}
