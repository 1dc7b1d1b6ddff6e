import { expect, it } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import { silentLog } from "../base/log.ts";
import type { Pulse } from "../cluster/session-store.ts";
import { cron, every } from "../schedule/schedule.ts";
import type { DuePlan, PlanWrite, SetAside } from "../slots/plan-store.ts";
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

it("begins to plan a crowd of slots before the horizon, and plans up to the horizon otherwise", async () => {
  const clock = new VirtualClock(1_000_000);
  const storeClock = new StoreClock(clock);
  const crowdMs = clock.wall() + 500_000;
  const planned: number[] = [];
  let crowd = 40_000;
  const planner = new Planner({
    store: {
      plans: {
        due: async (untilMs: number) => {
          planned.push(untilMs - clock.wall());
          return [];
        },
        nth: async (untilMs: number, n: number) => (crowdMs <= untilMs && n <= crowd ? crowdMs : null),
      },
    },
    membership: { node: "here", sessionId: 1, term: () => 1 },
    clock,
    storeClock,
    log: silentLog,
    horizonMs: 15_000,
  } as unknown as PlannerOptions);
  /** All answers of the store are given by then. */
  const settled = async () => {
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  };
  const pulse = async (inMs: number) => {
    planner.onPulse({ nextSlotMs: clock.wall() + inMs } as Pulse);
    await settled();
  };
  await pulse(700_000);
  expect(planned, "nothing is due for longer than it looks ahead").toEqual([]);
  await pulse(500_000);
  expect(planned, "the crowd is far").toEqual([15_000]);
  await pulse(500_000);
  expect(planned, "nor does each heartbeat look for it").toEqual([15_000]);
  clock.advance(460_000);
  await settled();
  expect(planned, "its time is nearer than the planning takes").toEqual([15_000, 15_000, expect.any(Number)]);
  expect(planned[2]).toBeGreaterThan(40_000 * 0.3 + 15_000);
  crowd = 0;
  clock.advance(15_000);
  await settled();
  expect(planned, "another crowd might have followed").toHaveLength(4);
  await planner.stop();
});

it("does not keep the catch-up planner from other tasks while a statement of its own waits for a lock", async () => {
  const clock = new VirtualClock(1_000_000);
  let answer: () => void = () => undefined;
  const planner = new Planner({
    store: {
      plans: {
        due: () =>
          new Promise<DuePlan[]>((resolve) => {
            answer = () => resolve([]);
          }),
        nth: async () => null,
      },
    },
    membership: { node: "here", sessionId: 1, term: () => 1 },
    clock,
    storeClock: new StoreClock(clock),
    log: silentLog,
    horizonMs: 15_000,
  } as unknown as PlannerOptions);
  expect(planner.plans).toBe(false);
  const run = planner.run();
  expect(planner.plans).toBe(true);
  clock.advance(1_000);
  expect(planner.plans).toBe(false);
  answer();
  await run;
  await planner.stop();
});
