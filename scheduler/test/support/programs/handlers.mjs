/**
 * A process of a cluster under test with handlers that a test ends, cuts off or lets misbehave. Each of their actions is appended to a file
 * by write(2), with its time. Configured by CARILLON_TEST_PROGRAM (JSON): { store, schema, name, log }
 */
import { appendFileSync, existsSync, openSync, readFileSync, writeSync } from "node:fs";
import { carillon } from "carillon";

const { store, schema, name, log } = JSON.parse(process.env.CARILLON_TEST_PROGRAM ?? "{}");
const file = openSync(log, "a");
const say = (kind, run, more = {}) =>
  writeSync(
    file,
    `${JSON.stringify({ kind, run: run.id, task: run.task, attempt: run.attempt, node: name, at: Date.now(), ...more })}\n`,
  );
/** Writes a line of the node's own log, which explains a failed test. */
const note = (level) => (fields, message) =>
  appendFileSync(`${log}.${name}`, `${new Date().toISOString()} ${level} ${message} ${JSON.stringify(fields)}\n`);
const nodeLog = { debug: note("debug"), info: note("info"), warn: note("warn"), error: note("error") };
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const compute = () => {
  for (const end = Date.now() + 50; Date.now() < end; );
};
/**
 * True if the run's next attempt has started, or if the test has created the file that says that there will be none. Text after the last
 * newline is ignored, because the other process may be writing a line.
 */
const isTakenBack = ({ id, attempt }) =>
  existsSync(`${log}.over.${id}`) ||
  readFileSync(log, "utf8")
    .split("\n")
    .slice(0, -1)
    .some((line) => line.startsWith(`{"kind":"start","run":${id},`) && JSON.parse(line).attempt > attempt);

// A handler that blocks the event loop for longer than the allowed time ends the process's session.
const tower = carillon({
  store,
  schema,
  name,
  sessionTimeout: "5s",
  standstill: "3s",
  concurrency: 20,
  drain: "1s",
  log: nodeLog,
});
/** A handler that works until its signal aborts, for at most 2,000 steps of 20 ms; on a later attempt it returns at once. */
const work = async (run) => {
  say("start", run);
  run.signal.addEventListener("abort", () => say("abort", run, { why: run.signal.reason.code }));
  for (let step = 0; run.attempt === 1 && step < 2_000; step++) {
    await sleep(20);
    // The handler reads the signal before each step, in its own time.
    if (run.signal.aborted) break;
    say("step", run);
  }
  say("end", run);
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
  if (run.attempt === 1) while (!isTakenBack(run)) compute();
  return { by: name };
});
/** Blocks until another node has the run, or the run was given up. With `looks`, the handler then checks its signal, as it should. */
tower.task("poison", { retry: 1 }, (run, { looks }) => {
  say("start", run);
  while (!isTakenBack(run)) compute();
  if (looks) run.signal.throwIfAborted();
  return { by: name };
});
tower.task("throws", {}, (_run, payload) => {
  throw payload;
});
await tower.start();
process.stdout.write("ready\n");
