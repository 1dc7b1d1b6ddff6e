/** A node under test, with default settings except those in the order. Its handlers record their starts. */
import { carillon, every } from "carillon";
import { StartNotes } from "../measure/starts.ts";
import { answerAsSubject } from "../measure/subject.ts";
import handle from "./handler.ts";
import { kinds, type Order, phaseMs, taskName } from "./order.ts";

const order = JSON.parse(process.argv[2] ?? "{}") as Order;
const { url, schema, name, tasks, computes, rounds } = order;
const file = new URL("./handler.js", import.meta.url);
const tower = carillon({ store: url, schema, name, handleSignals: false });
const tell = answerAsSubject(async () => {
  await tower.stop();
  notes.flush();
});
const notes = new StartNotes((batch) => tell({ kind: "starts", batch }));

for (let task = 0; task < tasks; task++)
  tower.task(taskName(task), { schedule: every("1s", { anchor: phaseMs(task, tasks) }) }, (run) => {
    notes.note(task, run.slot?.getTime() ?? Number.NaN);
  });
const computing = { group: "computing" };
if (computes === "plain") tower.task("computing", computing, handle);
else if (computes !== null) tower.task("computing", { ...computing, isolate: computes }, file);

/** Runs the kinds of handler in turn, one run at a time, and records the time from the handler's call until the worker has its result. */
async function noteDurations(): Promise<void> {
  let beganMono = 0;
  let ended: (ms: number) => void = () => undefined;
  tower.onRun(({ kind, outcome }) => {
    if (kind === "started") beganMono = performance.now();
    else if (outcome === "succeeded") ended(performance.now() - beganMono);
  });
  for (let round = 0; round < rounds; round++)
    for (const [place, kind] of kinds.entries()) {
      const took = new Promise<number>((resolve) => {
        ended = resolve;
      });
      await tower.enqueue(`no-op-${kind}`, null);
      notes.note(place, await took);
    }
}

if (rounds > 0) {
  tower.task("no-op-plain", {}, handle);
  tower.task("no-op-thread", { isolate: "thread" }, file);
  tower.task("no-op-process", { isolate: "process" }, file);
}
await tower.start();
tell({ kind: "started" });
if (rounds > 0) await noteDurations();
