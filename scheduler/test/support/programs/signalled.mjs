/**
 * A process with two instances that stop by signals: one is idle, the other runs a task for `handlerMs`. What it does is told
 * on its standard output. Configured by CARILLON_TEST_PROGRAM (JSON): { store, schema, handlerMs, cleanup }
 */
import { writeSync } from "node:fs";
import { carillon } from "../../../dist/index.js";

const { store, schema, handlerMs, cleanup } = JSON.parse(process.env.CARILLON_TEST_PROGRAM ?? "{}");
const say = (word) => writeSync(1, `${word}\n`);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const busy = carillon({ store, schema });
busy.task("long", {}, async () => {
  say("begun");
  await sleep(handlerMs);
  say("done");
});
const idle = carillon({ store, schema, worker: false });
await busy.start();
await idle.start();
if (cleanup) {
  process.once("SIGTERM", async () => {
    await idle.stop();
    await busy.stop();
    await sleep(500);
    say("cleaned");
    process.exit(0);
  });
}
await busy.run("long");
// As a program has it that does more than this.
setInterval(() => undefined, 1_000);
