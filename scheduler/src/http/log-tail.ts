import type { Clock } from "../base/clock.ts";
import { followed, isEnd } from "../store/followed-run.ts";
import type { Store } from "../store/store.ts";
import type { StreamHandler } from "./call.ts";
import { logObject } from "./calls/run-calls.ts";
import { logReadText, readLogRead } from "./log-places.ts";

/** Streams the lines of a run's log as they are written; the stream ends with the run. */
export const tailOf = (store: Store, clock: Clock): StreamHandler<"tailLogs"> => {
  return async ({ run: runId, after }, { signal, lastEventId }) => {
    const from = after ?? lastEventId;
    const read = from === undefined ? { seen: null, reading: null, place: null } : readLogRead(from);
    return events(followed({ store, clock }, await store.runs.find(runId), read, signal));
  };
};

async function* events(steps: ReturnType<typeof followed>) {
  for await (const step of steps) {
    if ("line" in step) {
      const id = logReadText(step.read);
      yield { data: { type: "line" as const, line: logObject(step.line), after: id }, id };
    } else if (isEnd(step.run.state)) yield { data: { type: "end" as const, state: step.run.state } };
  }
}
