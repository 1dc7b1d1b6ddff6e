/** The orders of a shop on pg-boss 12 and PostgreSQL: the original of orders.ts. */
import { PgBoss } from "pg-boss";

export async function open(url, { pool, charge, ship, report, alarm }) {
  const boss = new PgBoss(url);
  boss.on("error", (error) => console.error(error));
  await boss.start();
  await boss.createQueue("orders-dead");
  await boss.createQueue("charge", {
    retryLimit: 4,
    retryDelay: 2,
    retryBackoff: true,
    expireInSeconds: 60,
    deadLetter: "orders-dead",
  });
  await boss.createQueue("ship", { policy: "singleton", retryLimit: 9, deadLetter: "orders-dead" });
  await boss.createQueue("report");

  await boss.work("charge", async ([job]) => {
    const receipt = await charge(job.data.order, job.signal);
    await boss.send("ship", { order: job.data.order });
    return { receipt };
  });
  await boss.work("ship", async ([job]) => ship(job.data.order));
  await boss.work("report", async ([job]) => report(job.data.country));
  await boss.work("orders-dead", async ([job]) => alarm(job.data.order));
  await boss.schedule("report", "30 6 * * 1-5", { country: "de" }, { tz: "Europe/Berlin", key: "de" });
  await boss.schedule("report", "30 6 * * 1-5", { country: "us" }, { tz: "America/New_York", key: "us" });

  return {
    /** Inserts the order and enqueues the run in one transaction. */
    async place(order, amount) {
      const client = await pool.connect();
      const db = { executeSql: (text, values) => client.query(text, values) };
      try {
        await client.query("begin");
        await client.query("insert into orders (id, amount) values ($1, $2)", [order, amount]);
        const id = await boss.send("charge", { order }, { singletonKey: order, db });
        await client.query("commit");
        return id;
      } catch (error) {
        await client.query("rollback");
        throw error;
      } finally {
        client.release();
      }
    },
    later: (order, seconds) => boss.sendAfter("charge", { order }, {}, seconds),
    many: (orders) =>
      boss.insert(
        "charge",
        orders.map((order) => ({ data: { order } })),
      ),
    cancel: (id) => boss.cancel("charge", id),
    state: async (id) => (await boss.getJobById("charge", id))?.state,
    close: () => boss.stop({ graceful: true }),
  };
}
