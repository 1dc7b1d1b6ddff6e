import { expect, it } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import { silentLog } from "../base/log.ts";
import { cron, every } from "../schedule/schedule.ts";
import type { PlanWrite, SetAside } from "../slots/plan-store.ts";
import { Definitions } from "../store/definitions.ts";
import { StoreClock } from "../store/store-clock.ts";
import { defineTask } from "../task/task.ts";
import type { TaskRecord } from "../task/task-record.ts";
import { Planner, type PlannerOptions } from "./planner.ts";

it("plans the other tasks if one has an unreadable schedule, and logs that once", async () => {
  const clock = new VirtualClock(1_000_000);
  const storeClock = new StoreClock(clock);
  const told: object[] = [];
  let lookups = 0;
  const log = { ...silentLog, error: (fields: object) => void told.push(fields) };
  const unknown = defineTask("of-a-newer-zone", { schedule: cron("* * * * *", { zone: "Asia/Shanghai" }) });
  const zone = {
    get: () => {
      lookups++;
      return "Mars/Olympus";
    },
    enumerable: true,
  };
  Object.defineProperty(unknown.schedule, "zone", zone);
  const definitions = [unknown, defineTask("plain", { schedule: every("1s") })];
  const records = definitions.map(
    (definition, at) => ({ taskId: at + 1, version: 1, name: definition.name, definition }) as TaskRecord,
  );
  const due = records.map(({ taskId }) => ({ taskId, version: 1, nextSlotMs: clock.wall() }));
  const written: PlanWrite[] = [];
  const planner = new Planner({
    store: {
      plans: {
        due: async (_untilMs: number, _limit: number, setAside: SetAside[]) =>
          due.filter(
            ({ taskId, version }) => !setAside.some((one) => one.taskId === taskId && one.version === version),
          ),
        accept: async (_: unknown, writes: PlanWrite[]) => {
          written.push(...writes);
          return { taken: new Set(), accepted: 0 };
        },
      },
    },
    membership: { node: "here", sessionId: 1, term: () => null },
    definitions: new Definitions({ byIds: async () => records }),
    clock,
    storeClock,
    log,
    horizonMs: 15_000,
    onAccepted: () => undefined,
  } as unknown as PlannerOptions);
  for (let i = 0; i < 2; i++) await planner.plan(clock.wall() + 2_000, null);
  expect(written.map(({ taskId, slots }) => [taskId, slots.length])).toEqual([
    [2, 3],
    [2, 3],
  ]);
  expect(told).toMatchObject([{ task: "of-a-newer-zone", tasks: 1 }]);

  const tries = async () => {
    const before = lookups;
    await planner.plan(clock.wall() + 2_000, null);
    return lookups > before;
  };
  expect([await tries(), planner.unreadable], "set aside").toEqual([false, 1]);
  clock.advance(5 * 60_000 - 1);
  expect(await tries()).toBe(false);
  clock.advance(1);
  expect([await tries(), await tries()], "tried again when its time is over, once").toEqual([true, false]);
  expect(planner.unreadableFound()).toMatchObject([{ rule: "unreadable", subject: "of-a-newer-zone", count: 1 }]);
  expect(told, "and not told again").toHaveLength(1);
  due.splice(0, 1);
  clock.advance(5 * 60_000);
  await planner.plan(clock.wall() + 2_000, null);
  expect([planner.unreadable, planner.unreadableFound()], "paused or removed").toEqual([0, []]);
});
