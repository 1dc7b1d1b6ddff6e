/**
 * One process of a cluster under test: the built library, tasks that write each start and end to a file by write(2),
 * so that a kill -9 loses nothing of what was seen. Configured by CARILLON_TEST_PROGRAM (JSON):
 * { store?, directory?, schema?, name, tasks, log, handlerMs, even?, options? }; `even`: each handler takes all of handlerMs
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
for (let i = 0; i < program.tasks; i++) {
  const again = i % 2 === 0;
  const name = `${again ? "again" : "once"}-${i}`;
  tower.task(name, { schedule: every("1s"), onWorkerLost: again ? "retry" : "fail" }, async (run) => {
    const told = { task: name, slot: run.slot?.getTime() ?? null, attempt: run.attempt, fence: run.fence };
    say({ kind: "start", ...told });
    await new Promise((resolve) => setTimeout(resolve, program.handlerMs * (program.even ? 1 : Math.random())));
    say({ kind: "end", ...told, aborted: run.signal.aborted });
  });
}
await tower.start();
process.stdout.write("ready\n");
