import { type Clock, pause } from "../base/clock.ts";
import type { RunRecord } from "../run/run-record.ts";
import type { LogRead } from "../store/browse-store.ts";
import type { Store } from "../store/store.ts";
import type { StreamHandler } from "./call.ts";
import { isEnd, logObject } from "./calls/run-calls.ts";
import { logReadText, readLogRead } from "./log-places.ts";

const lookMs = 500;
const linesPerLook = 1_000;

/**
 * Streams a run's log as it is written; the stream ends with the run. Lines are sent in the order in which they arrive in the
 * store, which is not the order of their times. Each look sends the lines that no earlier look could see, and a stream resumes
 * from where the last look stopped.
 */
export const tailOf = (store: Store, clock: Clock): StreamHandler<"tailLogs"> => {
  return async ({ run: runId, after }, { signal, lastEventId }) => {
    const from = after ?? lastEventId;
    const read = from === undefined ? { seen: null, reading: null, place: null } : readLogRead(from);
    const { state } = await store.runs.find(runId);
    return written(runId, state, read, signal);
  };

  async function* written(runId: number, first: RunRecord["state"], from: LogRead, signal: AbortSignal) {
    let [state, { seen, reading, place }] = [first, from];
    /** The snapshot that was begun before the stream broke off: there is a later one. */
    let resumed = reading !== null;
    while (!signal.aborted) {
      // Read before the log: a run's lines are stored before its end is.
      const ended = isEnd(state);
      for (let whole = false; !whole; ) {
        const found = await store.browse.arrived(runId, { seen, reading, place }, linesPerLook);
        ({ reading } = found);
        for (const line of found.lines) {
          place = { atMs: line.atMs, lies: line.lies };
          const id = logReadText({ seen, reading, place });
          yield { data: { type: "line" as const, line: logObject(line), after: id }, id };
        }
        whole = found.lines.length < linesPerLook;
      }
      [seen, reading, place] = [reading, null, null];
      if (resumed) {
        resumed = false;
        continue;
      }
      if (ended) {
        yield { data: { type: "end" as const, state } };
        return;
      }
      await pause(clock, lookMs, signal);
      if (!signal.aborted) ({ state } = await store.runs.find(runId));
    }
  }
};
