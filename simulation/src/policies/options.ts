import { every } from "../../../scheduler/src/schedule/schedule.ts";
import type { TaskOptions } from "../../../scheduler/src/task/task.ts";
import type { TaskPlan } from "./scenario.ts";

/** The values that a plan needs to become task options: the names in the store, and the time of the scenario's beginning. */
export interface Naming {
  readonly group: (group: number) => string;
  /** Returns the store's name of the scenario's task with this index. */
  readonly task: (task: number) => string;
  readonly calendar: string;
  /** The scenario's beginning, epoch ms. */
  readonly beganMs: number;
}

/** Converts a plan to the options that a user's program would pass to `task()`. */
export function optionsOf(plan: TaskPlan, { group: groupOf, task: nameOf, calendar, beganMs }: Naming): TaskOptions {
  const { every: rhythm, after, blackout, group, history, misfire, overlap, priority, rate, retry } = plan;
  const { perKey, perWorker, route } = plan;
  const limit = { ...(perKey === undefined ? {} : { perKey }), ...(perWorker === undefined ? {} : { perWorker }) };
  const iso = (ms: number) => new Date(beganMs + ms).toISOString();
  return {
    ...(rhythm ? { schedule: scheduleOf(rhythm) } : {}),
    ...(after ? { after: { tasks: nameOf(after.task), on: after.on } } : {}),
    ...(blackout
      ? // biome-ignore lint/suspicious/noThenProperty: an option of a blackout; nothing awaits it.
        { blackout: [{ from: iso(blackout.fromMs), to: iso(blackout.toMs), then: blackout.then }] }
      : {}),
    ...(plan.calendar ? { calendar: { name: calendar, ...plan.calendar } } : {}),
    ...(group === undefined ? {} : { group: groupOf(group) }),
    ...(history ? { history } : {}),
    ...(plan.onWorkerLost ? { onWorkerLost: plan.onWorkerLost } : {}),
    ...(plan.workerLosses === undefined ? {} : { workerLosses: plan.workerLosses }),
    ...(misfire ? { misfire } : {}),
    ...(overlap ? { overlap } : {}),
    ...(Object.keys(limit).length > 0 ? { limit } : {}),
    ...(route ? { route } : {}),
    ...(priority === undefined ? {} : { priority }),
    ...(rate ? { rate } : {}),
    ...(retry ? { retry } : {}),
    ...(plan.timeout === undefined ? {} : { timeout: plan.timeout }),
    ...(plan.slots ? { slotPayload: plan.slots as never } : {}),
  };
}

function scheduleOf({ ms, jitterMs, delay }: NonNullable<TaskPlan["every"]>) {
  return every(ms, { ...(jitterMs ? { jitter: jitterMs } : {}), ...(delay ? { mode: "delay" as const } : {}) });
}
