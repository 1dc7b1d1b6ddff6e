/**
 * One process of a cluster under test, with handlers that a test ends, cuts off or lets misbehave. What they do is written
 * to a file by write(2), each line with the time. Configured by CARILLON_TEST_PROGRAM (JSON): { store, schema, name, log }
 */
import { openSync, writeSync } from "node:fs";
import { carillon } from "../../../dist/index.js";

const { store, schema, name, log } = JSON.parse(process.env.CARILLON_TEST_PROGRAM ?? "{}");
const file = openSync(log, "a");
const say = (kind, run, more = {}) =>
  writeSync(
    file,
    `${JSON.stringify({ kind, run: run.id, task: run.task, attempt: run.attempt, node: name, at: Date.now(), ...more })}\n`,
  );
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const tower = carillon({ store, schema, name, sessionTimeout: "1.5s", concurrency: 20, drain: "1s" });
/** Works until it is told to stop, and on a second attempt not at all. */
const work = async (run) => {
  say("start", run);
  run.signal.addEventListener("abort", () => say("abort", run, { why: run.signal.reason.code }));
  for (let step = 0; run.attempt === 1 && step < 1_000; step++) {
    await sleep(20);
    // The handler's own clock: whether it was told before it does its next step.
    if (run.signal.aborted) break;
    say("step", run);
  }
  return { by: name };
};
tower.task("long", { onWorkerLost: "retry" }, work);
tower.task("decided", { onWorkerLost: "ask" }, work);
tower.task("exits", { onWorkerLost: "fail" }, async (run) => {
  say("start", run);
  process.exit(7);
});
tower.task("blocks", {}, (run) => {
  say("start", run);
  if (run.attempt === 1) for (const end = Date.now() + 4_000; Date.now() < end; );
  return { by: name };
});
tower.task("throws", {}, (_run, payload) => {
  throw payload;
});
await tower.start();
process.stdout.write("ready\n");
