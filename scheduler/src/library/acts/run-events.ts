import { isDeepStrictEqual } from "node:util";
import type { Json } from "../../base/json.ts";
import type { LiveState, Outcome } from "../../run/run.ts";
import type { LogLine } from "../../run/run-record.ts";
import { type Followed, isEnd } from "../../store/followed-run.ts";

/** An event of one run; events come in order. The store is polled every 500 ms, so several changes between two polls give one event. */
export type RunEvent =
  /** The run's state or attempt number has changed. The first event contains the values at the start. */
  | { kind: "state"; state: LiveState; attempt: number }
  | { kind: "progress"; progress: Json }
  | { kind: "log"; line: LogLine }
  /** The run has ended; no events follow. */
  | { kind: "ended"; outcome: Outcome; attempt: number; result: Json; error: Json };

export async function* eventsOf(steps: AsyncIterable<Followed>): AsyncGenerator<RunEvent> {
  let [told, progress]: [string, Json] = ["", null];
  for await (const step of steps) {
    if ("line" in step) {
      const { atMs, runId, attempt, level, message, fields } = step.line;
      yield { kind: "log", line: { atMs, runId, attempt, level, message, fields } };
      continue;
    }
    const { state, attempt, result, error } = step.run;
    if (isEnd(state)) {
      yield { kind: "ended", outcome: state, attempt, result, error };
      return;
    }
    if (told !== `${state} ${attempt}`) yield { kind: "state", state, attempt };
    told = `${state} ${attempt}`;
    if (step.run.progress !== null && !isDeepStrictEqual(progress, step.run.progress))
      yield { kind: "progress", progress: step.run.progress };
    ({ progress } = step.run);
  }
}
