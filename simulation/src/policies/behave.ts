import { isCarillonError } from "../../../scheduler/src/base/errors.ts";
import type { Run } from "../../../scheduler/src/run/handler.ts";
import type { Notice } from "./notices.ts";
import type { Behaviour } from "./scenario.ts";

/** What a handler needs from its surroundings: a clock, and a place for its records. */
export interface Place {
  /** Returns the present time in epoch ms. */
  now(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  record(notice: Notice): void;
  taskName(task: number): string;
  /** Duration in ms of a handler that runs until it is aborted: longer than any timeout and pause. */
  readonly endlessMs: number;
}

/** A handler that does what its payload says, and records what happens to it. @param task the index of its task in the scenario */
export async function behave(
  { now, sleep, record, taskName, endlessMs }: Place,
  task: number,
  run: Run,
  given: Behaviour | null,
): Promise<unknown> {
  const does = given ?? { ms: 0, fails: 0 };
  const { signal, id: runId, attempt, fence } = run;
  record({ kind: "began", runId, task, attempt, fence, does, atMs: now() });
  signal.addEventListener("abort", () => {
    const { reason } = signal;
    record({ kind: "aborted", fence, atMs: now(), code: isCarillonError(reason) ? reason.code : "" });
  });
  const end = (how: "returned" | "threw") => record({ kind: "ended", fence, atMs: now(), how });
  try {
    const ms = does.endless ? endlessMs : does.ms;
    if (ms > 0) await sleep(ms, does.deaf ? undefined : signal);
    if (!does.deaf) signal.throwIfAborted();
    if (attempt <= does.fails) throw new Error(`try ${attempt} is to fail`);
    const { spawns } = does;
    const children = Array.from({ length: spawns?.children ?? 0 }, () => ({ task: taskName(spawns?.task ?? 0) }));
    const onward = spawns ? await run.fanOut(children, { join: taskName(spawns.join) }) : undefined;
    end("returned");
    return onward ?? { attempt };
  } catch (error) {
    end("threw");
    throw error;
  }
}
