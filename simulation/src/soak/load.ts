/** The soak test's steady load: tasks with several kinds of schedules and without one, each with few runs at a time. */
import { cron, every, manual } from "../../../scheduler/src/schedule/schedule.ts";
import { defineTask, type TaskDefinition } from "../../../scheduler/src/task/task.ts";

export interface LoadTask {
  readonly definition: TaskDefinition;
  /** Minimum and maximum duration of the task's handler, in ms. */
  readonly worksMs: readonly [number, number];
  /** Mean interval between enqueued runs, and the longest time until they are due; undefined if the task has a schedule instead. */
  readonly enqueued?: { readonly everyMs: number; readonly aheadMs: number };
}

export const remoteGroup = "remote";

export const load: readonly LoadTask[] = [
  { definition: defineTask("tick", { schedule: every("1s") }), worksMs: [0, 5] },
  { definition: defineTask("cron", { schedule: cron("*/2 * * * * *") }), worksMs: [0, 1_500] },
  { definition: defineTask("serial", { schedule: every("3s"), overlap: "queue" }), worksMs: [100, 900] },
  { definition: defineTask("all", { schedule: every("5s"), misfire: "all" }), worksMs: [0, 100] },
  { definition: defineTask("far", { schedule: cron("*/3 * * * * *"), group: remoteGroup }), worksMs: [0, 1_000] },
  {
    definition: defineTask("asked", { schedule: manual }),
    worksMs: [0, 3_000],
    enqueued: { everyMs: 1_000, aheadMs: 0 },
  },
  {
    definition: defineTask("later", { schedule: manual }),
    worksMs: [0, 50],
    enqueued: { everyMs: 2_000, aheadMs: 60_000 },
  },
  {
    definition: defineTask("far-asked", { schedule: manual, group: remoteGroup }),
    worksMs: [0, 2_000],
    enqueued: { everyMs: 3_000, aheadMs: 5_000 },
  },
];

/** Returns a run's handler duration in ms. It depends only on task and run number, so every attempt takes the same time. */
export function worksFor(task: string, run: number): number {
  const [least, most] = load.find(({ definition }) => definition.name === task)?.worksMs ?? [0, 0];
  return least + ((Math.imul(run, 2_654_435_761) >>> 0) / 2 ** 32) * (most - least);
}
