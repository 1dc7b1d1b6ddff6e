import { expect, test } from "vitest";
import { systemClock } from "../../base/clock.ts";
import { cron } from "../../schedule/schedule.ts";
import type { AlikeTasks } from "../../slots/alike-tasks.ts";
import type { Store } from "../../store/store.ts";
import { defineTask } from "../../task/task.ts";
import type { Call } from "../call.ts";
import { timelineCalls } from "./timeline-calls.ts";

const builtMs = Date.parse("2026-10-24T21:30:00Z");

/** The calls about a cluster with one task that fires at night. */
function calls() {
  const changes: object[] = [];
  let mono = 0;
  const backup: AlikeTasks = {
    task: {
      taskId: 1,
      name: "backup",
      version: 1,
      definition: defineTask("backup", { schedule: cron("0 3 * * *") }),
      groupId: 1,
      paused: null,
      changedMs: 0,
      nextSlotMs: null,
    },
    count: 1,
    names: "backup",
  };
  const store = {
    browse: { alikeTasks: async () => [backup] },
    tasks: { changedSince: async () => changes },
    sessions: { cluster: async () => ({ clusterId: "c" }) },
  } as unknown as Store;
  const { getCalendarFeed } = timelineCalls(store, { ...systemClock, monotonic: () => mono });
  const call = (nowMs: number) => ({ reach: { namespaces: null, check: () => undefined }, nowMs }) as unknown as Call;
  const stampOf = async (given: { perDay?: number; namespace?: string }, nowMs: number) =>
    /DTSTAMP:(\w+)/.exec(await getCalendarFeed({ days: 3, perDay: 24, ...given }, call(nowMs)))?.[1];
  return { stampOf, changes, pass: (ms: number) => (mono += ms), feed: getCalendarFeed, call };
}

test("a calendar is written once for all who read it, until a task changes or a minute has passed", async () => {
  const { stampOf, changes, pass } = calls();
  expect(await stampOf({}, builtMs)).toBe("20261024T213000Z");
  expect(await stampOf({}, builtMs + 10_000)).toBe("20261024T213000Z");
  expect(await stampOf({ perDay: 1 }, builtMs + 20_000), "another calendar of the same tasks").toBe("20261024T213020Z");
  expect(await stampOf({}, builtMs + 20_000)).toBe("20261024T213000Z");
  changes.push({ taskId: 1, version: 2, changedMs: builtMs + 25_000 });
  expect(await stampOf({}, builtMs + 30_000)).toBe("20261024T213030Z");
  pass(60_000);
  expect(await stampOf({}, builtMs + 90_000)).toBe("20261024T213130Z");
});

test("calendars of the same tasks have the names of what each was asked for", async () => {
  const { feed, call } = calls();
  const asked = { days: 3, perDay: 24, namespace: "default" };
  expect(await feed(asked, call(builtMs))).toContain("NAME:Carillon default\r\n");
  const reach = { namespaces: ["default"], check: () => undefined };
  const { namespace: _, ...every } = asked;
  expect(await feed(every, { ...call(builtMs), reach } as unknown as Call)).toContain("NAME:Carillon\r\n");
});
