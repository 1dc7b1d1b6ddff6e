/** A process under test: Carillon with default settings except its concurrency. Every handler waits for the same instant. */
import { carillon } from "carillon";
import pg from "pg";
import { answerAsSubject } from "../measure/subject.ts";
import { theInstant } from "./instant.ts";
import { type Order, parallel, serial } from "./order.ts";

const order = JSON.parse(process.argv[2] ?? "{}") as Order;
const alarms: string[] = [];
const alarm = (fields: object, message: string) => void alarms.push(`${message} ${JSON.stringify(fields)}`);
const tower = carillon({
  store: order.url,
  schema: order.schema,
  handleSignals: false,
  scheduler: order.scheduler,
  concurrency: 10_000,
  log: { debug: () => undefined, info: () => undefined, warn: alarm, error: alarm },
});
const instant = await theInstant(order.url, order.schema);
tower.task(parallel, order.kind === "free" ? {} : { overlap: { allow: order.runs } }, async () => instant.come);
tower.task(serial, { overlap: "queue" }, async () => undefined);
const tell = answerAsSubject(async () => {
  await tower.stop();
  await instant.close();
  const client = new pg.Client({ connectionString: order.url });
  await client.connect();
  for (const text of alarms) await client.query(`insert into "${order.schema}".bench_alarm values ($1)`, [text]);
  await client.end();
});
await tower.start();
tell({ kind: "started" });
