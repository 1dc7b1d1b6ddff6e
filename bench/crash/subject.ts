/** A worker under test: scheduler and worker with default settings except those in the order. Its handlers log each start and end. */
import { openSync, writeSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { carillon } from "carillon";
import { type Order, taskName } from "./order.ts";

const order = JSON.parse(process.argv[2] ?? "{}") as Order;
const file = openSync(order.log, "a");
const note = (kind: string, run: { id: number; attempt: number }) =>
  writeSync(file, `${kind} ${run.id} ${run.attempt} ${order.name} ${Date.now()}\n`);

const tower = carillon({
  store: order.store,
  schema: order.schema,
  name: order.name,
  concurrency: 500,
  handleSignals: false,
  ...(order.sessionTimeoutMs === undefined ? {} : { sessionTimeout: order.sessionTimeoutMs }),
});
tower.task(taskName, order.graceMs === undefined ? {} : { grace: order.graceMs }, async (run) => {
  note("start", run);
  if (run.attempt === 1) await pause(order.workMs);
  note("end", run);
});
process.on("message", () => {
  tower.stop().then(
    () => process.exit(0),
    (error) => {
      console.error(error);
      process.exit(1);
    },
  );
});
// The parent process measures; when it has gone, this process exits too.
process.on("disconnect", () => process.exit(1));
await tower.start();
process.send?.("started");
