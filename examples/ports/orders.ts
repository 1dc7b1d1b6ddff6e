/** The orders of a shop on Carillon: orders.pg-boss.mjs, ported. */
import { carillon, cron } from "carillon";
import type pg from "pg";

interface Given {
  pool: pg.Pool;
  charge(order: string, signal: AbortSignal): Promise<string>;
  ship(order: string): Promise<void>;
  report(country: string): Promise<void>;
  alarm(order: string): Promise<void>;
}
type Order = { order: string };

export async function open(store: string, { pool, charge, ship, report, alarm }: Given) {
  const tower = carillon({ store });
  const retry = { attempts: 5, delay: "2s" } as const;

  const charged = tower.task("charge", { retry, timeout: "1m" }, async (run, { order }: Order) => {
    const receipt = await charge(order, run.signal);
    await run.spawn("ship", { order });
    return { receipt };
  });
  tower.task("ship", { retry: 10, overlap: "queue" }, (_run, { order }: Order) => ship(order));
  const reports = tower.task("report", {}, (_run, country: string) => report(country));
  for (const dead of ["charge", "ship"])
    tower.task(`${dead}-dead`, { after: { tasks: dead, on: "failure" } }, async (run) => {
      const [failed] = await run.inputs();
      const { payload } = await tower.runs.get(failed?.runId as number);
      await alarm((payload as Order).order);
    });
  await tower.start();
  await reports.schedule("de", cron("30 6 * * 1-5", { zone: "Europe/Berlin" }), { payload: "de" });
  await reports.schedule("us", cron("30 6 * * 1-5", { zone: "America/New_York" }), { payload: "us" });

  return {
    /** Inserts the order and enqueues the run in one transaction. */
    async place(order: string, amount: number) {
      const tx = await pool.connect();
      try {
        await tx.query("begin");
        await tx.query("insert into orders (id, amount) values ($1, $2)", [order, amount]);
        const run = await charged.enqueue({ order }, { key: order, tx });
        await tx.query("commit");
        return run;
      } catch (error) {
        await tx.query("rollback");
        throw error;
      } finally {
        tx.release();
      }
    },
    later: (order: string, seconds: number) => charged.enqueue({ order }, { in: seconds * 1_000 }),
    many: (orders: string[]) => charged.enqueueMany(orders.map((order) => ({ order }))),
    cancel: (id: number) => tower.runs.cancel(id),
    state: async (id: number) => (await tower.runs.get(id)).state,
    close: () => tower.stop(),
  };
}
