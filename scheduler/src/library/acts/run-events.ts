import { isDeepStrictEqual } from "node:util";
import type { Json } from "../../base/json.ts";
import type { LiveState, Outcome } from "../../run/run.ts";
import type { LogLine } from "../../run/run-record.ts";
import { type Followed, isEnd } from "../../store/followed-run.ts";

/** The events of a run, in order. Changes between two reads of the store, half a second apart, are reported as one. */
export type RunEvent =
  /** The state or the attempt of the run has changed; the first event has the initial values. */
  | { kind: "state"; state: LiveState; attempt: number }
  | { kind: "progress"; progress: Json }
  | { kind: "log"; line: LogLine }
  /** The last event. */
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
