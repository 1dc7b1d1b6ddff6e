import { openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { silentLog } from "../../../scheduler/src/base/log.ts";
import { Carillon } from "../../../scheduler/src/library/carillon.ts";
import type { TaskOptions } from "../../../scheduler/src/task/task.ts";
import { behave, type Place } from "./behave.ts";
import type { Notice } from "./notices.ts";
import type { Behaviour } from "./scenario.ts";

/** The configuration of a worker process, passed as JSON. */
export interface WorkerOptions {
  readonly store: string;
  readonly schema: string;
  readonly name: string;
  readonly concurrency: number;
  readonly groups: readonly string[];
  /** Options of the tasks that this process defines; the index is the task's index in the scenario. */
  readonly tasks: readonly TaskOptions[];
  /** The file to which its handlers append notices. */
  readonly log: string;
  readonly endlessMs: number;
}

/** A line of the notices file. `mono` is a reading of the machine's monotonic clock in ms; it orders the notices of several processes. */
export type Line = Notice & { readonly mono: number };

export const taskName = (task: number) => `t${task}`;
export const monotonicMs = () => Number(process.hrtime.bigint() / 1_000n) / 1_000;

/** Runs the scenario's handlers in this process, until it is killed or its parent ends. */
export async function work(options: WorkerOptions): Promise<void> {
  const { store, schema, name, concurrency, groups, log, endlessMs } = options;
  process.stdin.resume().once("close", () => process.exit(1));
  const file = openSync(log, "a");
  const place: Place = {
    now: () => Date.now(),
    sleep: (ms, signal) => sleep(ms, undefined, signal ? { signal } : {}),
    // Written synchronously to the file, so that a SIGKILL loses no line that was recorded.
    record: (notice) => void writeSync(file, `${JSON.stringify({ ...notice, mono: monotonicMs() })}\n`),
    taskName,
    endlessMs,
  };
  const worker = new Carillon({
    store,
    schema,
    name,
    concurrency,
    groups: [...groups],
    handleSignals: false,
    log: silentLog,
  });
  for (const [task, definition] of options.tasks.entries())
    worker.task<Behaviour | null>(taskName(task), definition, (run, does) => behave(place, task, run, does));
  await worker.start();
  process.stdout.write("ready\n");
}
