import { expect, it } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import { Definitions } from "../definitions.ts";
import { silentLog } from "../log.ts";
import { cron, every } from "../schedule.ts";
import type { PlanWrite, TaskRecord } from "../store.ts";
import { StoreClock } from "../store-clock.ts";
import { defineTask } from "../task.ts";
import { Planner, type PlannerOptions } from "./planner.ts";

it("plans the others where one has a schedule that this process cannot read, and says so once", async () => {
  const clock = new VirtualClock(1_000_000);
  const storeClock = new StoreClock(clock);
  const told: object[] = [];
  const log = { ...silentLog, error: (fields: object) => void told.push(fields) };
  const unknown = defineTask("of-a-newer-zone", { schedule: cron("* * * * *", { zone: "Asia/Shanghai" }) });
  Object.assign(unknown.schedule, { zone: "Mars/Olympus" });
  const definitions = [unknown, defineTask("plain", { schedule: every("1s") })];
  const records = definitions.map(
    (definition, at) => ({ taskId: at + 1, version: 1, name: definition.name, definition }) as TaskRecord,
  );
  const due = records.map(({ taskId }) => ({ taskId, version: 1, nextSlotMs: clock.wall() }));
  const written: PlanWrite[] = [];
  const planner = new Planner({
    store: {
      plans: {
        due: async () => due,
        accept: async (_: unknown, writes: PlanWrite[]) => {
          written.push(...writes);
          return { taken: new Set(), accepted: 0 };
        },
      },
    },
    membership: { sessionId: 1, term: () => null },
    definitions: new Definitions({ byIds: async () => records }),
    ...{ storeClock, log, horizonMs: 15_000, onAccepted: () => undefined },
  } as unknown as PlannerOptions);
  for (let i = 0; i < 2; i++) await planner.plan(clock.wall() + 2_000, null);
  expect(written.map(({ taskId, slots }) => [taskId, slots.length])).toEqual([
    [2, 3],
    [2, 3],
  ]);
  expect(told).toMatchObject([{ task: "of-a-newer-zone" }]);
});
