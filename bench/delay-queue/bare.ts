/** Measures the machine and the recording without a queue: starts each item by a local timer. */
import { StartNotes } from "../measure/starts.ts";
import { answerAsSubject } from "../measure/subject.ts";
import type { Schedule } from "./order.ts";

const { firstMs, everyMs, count } = JSON.parse(process.argv[2] ?? "{}") as Schedule;
const tell = answerAsSubject(async () => notes.flush());
const notes = new StartNotes((batch) => tell({ kind: "starts", batch }));

function arm(number: number): void {
  const dueMs = firstMs + number * everyMs;
  setTimeout(
    () => {
      // A timer can fire slightly early by the wall clock; then wait again.
      if (Date.now() < dueMs) return arm(number);
      notes.note(number, dueMs);
      if (number + 1 < count) arm(number + 1);
    },
    Math.max(1, dueMs - Date.now()),
  );
}

arm(0);
tell({ kind: "started" });
