/**
 * One process of a cluster under test: the built library, tasks that write each start and end to a file by write(2),
 * so that a kill -9 loses nothing of what was seen. Configured by CARILLON_TEST_PROGRAM (JSON):
 * { store?, directory?, schema?, name, tasks, manual?, log, handlerMs, even?, stalls?, options?, settings? }; `even`: each
 * handler takes all of handlerMs; `manual`: names of tasks without a schedule; `settings`: what `options` would refuse;
 * `stalls`: record when the machine, not this process's own work, kept its timers waiting
 */
import { openSync, writeSync } from "node:fs";
import { carillon, every } from "../../../dist/index.js";

const program = JSON.parse(process.env.CARILLON_TEST_PROGRAM ?? "{}");
const file = openSync(program.log, "a");
const say = (record) => writeSync(file, `${JSON.stringify({ ...record, node: program.name, at: Date.now() })}\n`);

const tower = carillon({
  store: program.store,
  directory: program.directory,
  schema: program.schema,
  name: program.name,
  ...program.options,
});
Object.assign(tower.settings, program.settings);
const define = (name, options) =>
  tower.task(name, options, async (run) => {
    const told = { task: name, slot: run.slot?.getTime() ?? null, attempt: run.attempt, fence: run.fence };
    say({ kind: "start", ...told });
    await new Promise((resolve) => setTimeout(resolve, program.handlerMs * (program.even ? 1 : Math.random())));
    say({ kind: "end", ...told, aborted: run.signal.aborted });
  });
for (let i = 0; i < program.tasks; i++) {
  const again = i % 2 === 0;
  define(`${again ? "again" : "once"}-${i}`, { schedule: every("1s"), onWorkerLost: again ? "retry" : "fail" });
}
for (const name of program.manual ?? []) define(name, {});
if (program.stalls) {
  let last = { at: performance.now(), cpu: process.cpuUsage() };
  setInterval(() => {
    const ms = performance.now() - last.at;
    const { user, system } = process.cpuUsage(last.cpu);
    if (ms > 100 && (user + system) / 1_000 < ms / 2) say({ kind: "stalled", ms: Math.round(ms) });
    last = { at: performance.now(), cpu: process.cpuUsage() };
  }, 20);
}
await tower.start();
process.stdout.write("ready\n");
