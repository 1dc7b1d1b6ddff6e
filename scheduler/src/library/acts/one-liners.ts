import type { Duration } from "../../base/duration.ts";
import { CarillonError } from "../../base/errors.ts";
import type { Handler } from "../../run/handler.ts";
import { cron, every, type ScheduleSpec } from "../../schedule/schedule.ts";
import type { TaskOptions } from "../../task/task.ts";
import type { DefineTask, Task } from "../task-handle.ts";

/** A task's options beside its schedule, and its name; default: that of its function. */
export type OneLinerOptions = Omit<TaskOptions, "schedule"> & { name?: string };

/** Defines a task by its schedule and its function alone. @throws TASK_INVALID, and what the schedule's own check throws */
export type OneLiner<When, More = unknown> = <Result>(
  when: When,
  handler: Handler<undefined, Result>,
  options?: OneLinerOptions & More,
) => Task<undefined, Result>;

/** `tower.every("10s", poll)` and `tower.cron("0 9 * * MON-FRI", digest, { zone: "Europe/Berlin" })`. */
export interface OneLiners {
  readonly every: OneLiner<Duration>;
  readonly cron: OneLiner<string, { zone?: string }>;
}

/** Minifiers give names of a letter or two, and others with each build. */
const shortestName = 3;

export const oneLiners = (define: DefineTask): OneLiners => ({
  every: (period, handler, options = {}) => defined(define, every(period), handler, options),
  cron: (expression, handler, { zone, ...options } = {}) =>
    defined(define, cron(expression, zone === undefined ? {} : { zone }), handler, options),
});

/** The cluster knows the task by its name, so the name must be the same in each process and after each build. */
function defined<Result>(
  define: DefineTask,
  schedule: ScheduleSpec,
  handler: Handler<undefined, Result>,
  { name, ...options }: OneLinerOptions,
): Task<undefined, Result> {
  if (name === undefined && handler.name.length < shortestName)
    throw new CarillonError("TASK_INVALID", `the task has no name: its function's is ${JSON.stringify(handler.name)}`, {
      path: "name",
      hint: 'Give a function with a name of 3 letters or more that the build keeps, or { name: "…" }.',
    });
  return define<undefined, Result>(name ?? handler.name, { ...options, schedule }, handler) as Task<undefined, Result>;
}
