/**
 * Carillon as a user would run it: default settings, one task without options, one `enqueue` call for each run, and the full run history.
 * The task option `history: "failures"` is set only for comparison with peers that keep no successful runs, and `durability: "relaxed"`
 * only for comparison with BullMQ, whose Redis syncs its file once a second.
 */
import { carillon, cron, every, type ScheduleSpec } from "carillon";
import { phaseOf } from "./calls.ts";
import { type Books, type Contender, type Order, type Query, taskName } from "./contender.ts";

export async function open(order: Order): Promise<Contender> {
  const runs = order.role === "runs";
  const tower = carillon({
    store: order.postgres,
    scheduler: runs,
    worker: runs,
    handleSignals: false,
    // These options matter only to `workStored`, whose tasks have no handler: the worker logs the command instead of running it.
    groups: ["default"],
    commands: { allow: ["true"], rehearse: true },
    // Nothing fails, so the channel is never used.
    ...(order.alarms && { alarms: { channels: { ops: { webhook: "http://127.0.0.1:9/" } } } }),
  });
  let handle: (id: number) => void = () => undefined;
  const define = (tasks: number, schedule: (task: number) => ScheduleSpec, given: (id: number) => void) => {
    handle = given;
    for (let task = 0; task < tasks; task++)
      tower.task(`${taskName}-${task}`, { schedule: schedule(task) }, () => handle(task));
  };
  const { history, durability } = order;
  const options = { ...(history && { history }), ...(durability && { durability }) };
  const task = tower.task<number>(taskName, options, (_run, id) => handle(id));
  // Only a process that adds runs opens the store here. In a process that executes runs, `start` opens it and stores the definitions.
  if (!runs) await tower.open();
  return {
    add: (added) =>
      Promise.all(added.map(({ id, dueMs }) => task.enqueue(id, dueMs === undefined ? {} : { at: dueMs }))),
    addAndWait: async (id) => (await task.enqueue(id)).result(),
    async work(given) {
      handle = given;
      await tower.start();
    },
    async everyMinute(tasks, given) {
      define(tasks, () => cron("* * * * *"), given);
      await tower.start();
    },
    async everyPeriod(tasks, periodMs, given) {
      define(tasks, (task) => every(periodMs, { anchor: phaseOf(task, tasks, periodMs) }), given);
      await tower.start();
    },
    async workStored(given) {
      tower.onRun(({ kind, slotMs }) => {
        if (kind === "started" && slotMs !== null) given(slotMs);
      });
      await tower.start();
    },
    stop: () => tower.stop(),
  };
}

export function books(_order: unknown, query: Query): Books {
  const number = async (text: string) => (await query<{ n: number }>(text))[0]?.n ?? Number.NaN;
  return {
    left: () => number("select count(*)::int as n from carillon.run"),
    ended: () =>
      number(
        "select sum(succeeded)::int as n from (select succeeded from carillon.tally union all select succeeded from carillon.tally_delta) x",
      ),
  };
}
