/**
 * A process with two instances that stop by signals: one is idle, the other runs a task for `handlerMs`. Prints its actions on its standard
 * output. Configured by CARILLON_TEST_PROGRAM (JSON): { store, schema, drain, handlerMs, cleanup, command, pidFile }. With `command`, an
 * argv, this command runs in place of the handler; it has started once it has written `pidFile`.
 */
import { existsSync, writeSync } from "node:fs";
import { carillon } from "carillon";

const { store, schema, drain, handlerMs, cleanup, command, pidFile } = JSON.parse(
  process.env.CARILLON_TEST_PROGRAM ?? "{}",
);
const say = (word) => writeSync(1, `${word}\n`);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const log = (_fields, message) => writeSync(2, `${message}\n`);
const quiet = () => undefined;
/** Logs only the line that reports a received signal, for which a test waits. */
const heard = (fields, message) => message.startsWith("stopping") && log(fields, message);

const busy = carillon({
  store,
  schema,
  ...(drain && { drain }),
  commands: { allow: command?.slice(0, 1) ?? [] },
  log: { debug: quiet, info: heard, warn: log, error: log },
});
if (command) busy.task("long", { command: { argv: command } });
else
  busy.task("long", {}, async () => {
    say("begun");
    await sleep(handlerMs);
    say("done");
  });
const idle = carillon({ store, schema, worker: false, ...(drain && { drain }) });
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
// The promise rejects if the test cuts off the store before the run ends. The start of the run is printed separately.
await busy.run("long").catch((error) => log({}, error.message));
if (pidFile) {
  while (!existsSync(pidFile)) await sleep(20);
  say("begun");
}
// Keeps the process alive, as other work of a program would.
setInterval(() => undefined, 1_000);
