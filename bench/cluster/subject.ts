/** A node under test: scheduler and worker with the session timeout of the order. Its handlers only log their starts. */
import { openSync, writeSync } from "node:fs";
import { carillon, cron, every } from "carillon";
import type { Order, Told } from "./order.ts";

const order = JSON.parse(process.argv[2] ?? "{}") as Order;
const file = openSync(order.log, "a");
const tell = (told: Told, then: () => void = () => undefined) => process.send?.(told, then);

const tower = carillon({
  store: order.store,
  coordination: order.coordination,
  schema: order.schema,
  name: order.name,
  sessionTimeout: order.sessionTimeoutMs,
  handleSignals: false,
  log: {
    debug: () => undefined,
    info: (fields, text) => say("info", fields, text),
    warn: (fields, text) => say("warn", fields, text),
    error: (fields, text) => say("error", fields, text),
  },
});
order.tasks.forEach(({ name, misfire }, task) => {
  const schedule = task % 2 === 0 ? every("1s") : cron("* * * * * *");
  tower.task(name, { schedule, ...(misfire ? { misfire } : {}) }, async (run) => {
    writeSync(file, `${task} ${run.slot?.getTime()} ${run.attempt} ${Date.now()}\n`);
  });
});
process.on("message", () => {
  tower.stop().then(
    () => tell({ kind: "stopped" }, () => process.exit(0)),
    (error) => {
      console.error(error);
      process.exit(1);
    },
  );
});
// The parent process measures; when it has gone, this process exits too.
process.on("disconnect", () => process.exit(1));
await tower.start();
tell({ kind: "started" });

/** Logs to stderr if CARILLON_BENCH_VERBOSE is set, so that a failed round can be examined. */
function say(level: string, fields: object, text: string): void {
  if (process.env.CARILLON_BENCH_VERBOSE)
    console.error(`${new Date().toISOString()} ${order.name} ${level} ${text} ${JSON.stringify(fields)}`);
}
