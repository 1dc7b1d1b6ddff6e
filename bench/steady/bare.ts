/** Measures the machine and the recording without a scheduler: one local timer a second starts all handlers at once. */
import { StartNotes } from "../measure/starts.ts";
import { answerAsSubject } from "../measure/subject.ts";
import type { Order } from "./order.ts";

const order = JSON.parse(process.argv[2] ?? "{}") as Order;
let timer: NodeJS.Timeout | undefined;
const tell = answerAsSubject(async () => {
  clearTimeout(timer);
  notes.flush();
});
const notes = new StartNotes((batch) => tell({ kind: "starts", batch }));

const handler = async (task: number, slotMs: number) => notes.note(task, slotMs);

function arm(slotMs: number): void {
  timer = setTimeout(() => {
    // A timer can fire slightly early by the wall clock; then wait again, because a scheduler must not start early either.
    if (Date.now() < slotMs) return arm(slotMs);
    for (let task = 0; task < order.tasks; task++) void handler(task, slotMs);
    arm(slotMs + 1_000);
  }, slotMs - Date.now());
}

arm(Math.ceil(Date.now() / 1_000) * 1_000 + 1_000);
tell({ kind: "started" });
