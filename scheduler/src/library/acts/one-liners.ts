import type { Duration } from "../../base/duration.ts";
import { CarillonError } from "../../base/errors.ts";
import type { Handler } from "../../run/handler.ts";
import { cron, every, type ScheduleSpec } from "../../schedule/schedule.ts";
import type { TaskOptions } from "../../task/task.ts";
import type { DefineTask, Task } from "../task-handle.ts";

/** A task's options other than its schedule, and the task's name; default: the name of its function. */
export type OneLinerOptions = Omit<TaskOptions, "schedule"> & { name?: string };

/** Defines a task with just its schedule and its function. @throws TASK_INVALID, and the errors of the schedule's own check */
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

/** Minifiers make names of one or two letters, which differ with each build, so shorter names are refused. */
const shortestName = 3;

export const oneLiners = (define: DefineTask): OneLiners => ({
  every: (period, handler, options = {}) => defined(define, every(period), handler, options),
  cron: (expression, handler, { zone, ...options } = {}) =>
    defined(define, cron(expression, zone === undefined ? {} : { zone }), handler, options),
});

/** The name identifies the task in the cluster, so it must be the same in each process and after each build. */
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
