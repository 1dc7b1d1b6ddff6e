/**
 * One process of a cluster under test: the built library, with tasks that append each start and end to a file by write(2), so that a kill
 * -9 loses no record. Configured by CARILLON_TEST_PROGRAM (JSON): { store?, directory?, schema?, name, tasks, manual?, periods?, log,
 * handlerMs, even?, stalls?, computing?, computesMs?, remote?, options?, settings? }.
 * - `even`: each handler takes handlerMs; otherwise a random part of it
 * - `manual`: names of tasks without a schedule
 * - `periods`: the periods of tasks with a schedule, by name
 * - `settings`: internal settings that `options` would refuse
 * - `stalls`: record when the machine, not this process's own work, delayed the timers of the process
 * - `computing`: options of a task "computing" whose handler blocks the event loop for the ms in its payload, or until the file
 * `${payload.until}-${attempt}` exists
 * - `computesMs`: [least, most], the ms for which the process blocks its event loop now and then
 * - `remote`: options of a remote worker, whose tasks are defined elsewhere
 */
import { existsSync, openSync, writeSync } from "node:fs";
import { carillon, every } from "carillon";
import { worker } from "carillon/worker";

const program = JSON.parse(process.env.CARILLON_TEST_PROGRAM ?? "{}");
const file = openSync(program.log, "a");
const say = (record) => writeSync(file, `${JSON.stringify({ ...record, node: program.name, at: Date.now() })}\n`);

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
/** With `even`, handlers wait in steps of this many ms, so that at most one step passes while the process is suspended. */
const stepMs = 100;

const tower = program.remote
  ? worker({ name: program.name, ...program.remote })
  : carillon({
      store: program.store,
      directory: program.directory,
      schema: program.schema,
      name: program.name,
      ...program.options,
    });
const task = (name, options, handler) =>
  program.remote ? tower.task(name, handler) : tower.task(name, options, handler);
Object.assign(tower.settings, program.settings);
const define = (name, options) =>
  task(name, options, async (run) => {
    const told = { task: name, slot: run.slot?.getTime() ?? null, attempt: run.attempt, fence: run.fence };
    say({ kind: "start", ...told });
    if (program.even) for (let step = 0; step < program.handlerMs / stepMs; step++) await sleep(stepMs);
    else await sleep(program.handlerMs * Math.random());
    say({ kind: "end", ...told, aborted: run.signal.aborted });
  });
for (let i = 0; i < program.tasks; i++) {
  const again = i % 2 === 0;
  define(`${again ? "again" : "once"}-${i}`, { schedule: every("1s"), onWorkerLost: again ? "retry" : "fail" });
}
for (const name of program.manual ?? []) define(name, {});
for (const [name, period] of Object.entries(program.periods ?? {}))
  define(name, { schedule: every(period), onWorkerLost: "fail" });
/** Blocks the event loop like a long computation, but without using the processor, which other processes of the test need. */
const compute = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
if (program.computing)
  task("computing", { group: "computing", ...program.computing }, (run, long) => {
    const told = { task: "computing", slot: null, attempt: run.attempt, fence: run.fence };
    say({ kind: "start", ...told });
    if (typeof long === "number") compute(long);
    else while (!existsSync(`${long.until}-${run.attempt}`)) compute(stepMs);
    say({ kind: "end", ...told, aborted: run.signal.aborted });
  });
if (program.computesMs) {
  const [least, most] = program.computesMs;
  const soon = () =>
    setTimeout(() => {
      compute(least + Math.random() * (most - least));
      soon();
    }, Math.random() * 1_500);
  soon();
}
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
