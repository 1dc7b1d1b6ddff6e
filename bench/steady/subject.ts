/** The process under test: Carillon with default settings; its handlers only record their start. */
import { carillon, cron, every, type ScheduleSpec } from "carillon";
import { StartNotes } from "../measure/starts.ts";
import { answerAsSubject } from "../measure/subject.ts";
import { type Kind, type Order, phaseMs, taskName } from "./order.ts";

const order = JSON.parse(process.argv[2] ?? "{}") as Order;

function scheduleOf(kind: Kind, task: number): ScheduleSpec {
  if (kind === "minute") return cron("* * * * *");
  if (kind === "spread") return every("1s", { anchor: phaseMs(kind, task) });
  return task % 2 === 0 ? every("1s") : cron("* * * * * *");
}

const tower = carillon({ store: order.url, schema: order.schema, handleSignals: false });
const tell = answerAsSubject(async () => {
  await tower.stop();
  notes.flush();
});
const notes = new StartNotes((batch) => tell({ kind: "starts", batch }));
for (let task = 0; task < order.tasks; task++) {
  tower.task(taskName(task), { schedule: scheduleOf(order.kind, task) }, async (run) => {
    notes.note(task, run.slot?.getTime() ?? Number.NaN);
  });
}
await tower.start();
tell({ kind: "started" });
