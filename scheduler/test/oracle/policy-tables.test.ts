import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Calendar } from "../../src/schedule/calendar.ts";
import { cron, every } from "../../src/schedule/schedule.ts";
import { plannedSchedule } from "../../src/schedule/slot-rules.ts";
import { planTask } from "../../src/slots/plan.ts";
import { defineTask, type TaskOptions } from "../../src/task/task.ts";
import {
  blackoutEvents,
  blackoutPolicies,
  blackoutTable,
  dayEvents,
  dayPolicies,
  dayTable,
  followEnds,
  followEvents,
  followTable,
  lossEvents,
  lossPolicies,
  lossTable,
  misfireEvents,
  misfirePolicies,
  misfireTable,
  overlapEvents,
  overlapPolicies,
  overlapTable,
  tryColumns,
  tryEvents,
  tryTable,
} from "./policy-tables.ts";

const page = readFileSync(new URL("../../../docs/tasks/policies.md", import.meta.url), "utf8");

describe("docs/tasks/policies.md", () => {
  const tables: [string, readonly string[], readonly string[], (event: string, policy: string) => string][] = [
    [
      ...(["overlap", overlapEvents, overlapPolicies] as const),
      (event, policy) => {
        const cell = overlapTable[event as (typeof overlapEvents)[number]][policy as (typeof overlapPolicies)[number]];
        return cell.filter((part) => part !== null).join("; ");
      },
    ],
    ["misfire", misfireEvents, misfirePolicies, of(misfireTable, (fates) => fates.join(", "))],
    ["onWorkerLost", lossEvents, lossPolicies, of(lossTable, String)],
    ["retry", tryEvents, tryColumns, of(tryTable, String)],
    ["after", followEvents, followEnds, of(followTable, (begins) => (begins ? "begins one" : "–"))],
    ["calendar", dayEvents, dayPolicies, of(dayTable, String)],
    ["blackout", blackoutEvents, blackoutPolicies, of(blackoutTable, String)],
  ];
  function of<Cell>(table: Record<string, Record<string, Cell>>, words: (cell: Cell) => string) {
    return (event: string, policy: string) => words(table[event]?.[policy] as Cell);
  }

  it.each(tables)("%s: every policy × every event, and no other rows", (policy, events, policies, cell) => {
    const section = page.split(`\n## ${policy}\n`)[1]?.split("\n## ")[0] ?? "";
    const rows = section.split("\n").filter((line) => line.startsWith("|"));
    expect(rows[0]?.split(" | ").slice(1).join(" | ")).toBe(`${policies.join(" | ")} |`);
    expect(rows.slice(2)).toEqual(
      events.map((event) => `| ${[event, ...policies.map((one) => cell(event, one))].join(" | ")} |`),
    );
  });
});

const nowMs = Date.UTC(2030, 0, 1, 12);

describe("the misfire policy for slots not planned in time", () => {
  const late = { "one slot, unplanned, late by less": [4_000], "one slot, unplanned, later": [6_000] };
  const three = [26_000, 16_000, 6_000];
  const lateBy: Record<string, number[]> = {
    ...late,
    "three slots, unplanned, later": three,
    "three slots, unplanned, the first two later than `within`": three,
  };
  for (const [event, lates] of Object.entries(lateBy)) {
    const within = event.includes("within") ? { within: "10s" } : {};
    it.each(misfirePolicies)(`${event}: %s`, (policy) => {
      const slots = lates.map((ms) => nowMs - ms);
      const definition = defineTask("t", {
        schedule: every("10s", { anchor: slots[0] as number }),
        misfire: { policy, after: "5s", ...within },
      });
      const step = planTask(definition, plannedSchedule(definition, undefined), 1, {
        nextSlotMs: slots[0] as number,
        nowMs,
        untilMs: nowMs,
      });
      const fates = slots.map((slot) => {
        const runs = step.slots.some(({ slotMs }) => slotMs === slot);
        const missed = step.missed.some(({ fromMs, toMs }) => slot >= fromMs && slot <= toMs);
        expect([runs, missed].filter(Boolean), "accounted for once").toHaveLength(1);
        return runs ? "run" : "missed";
      });
      expect(fates).toEqual(misfireTable[event as (typeof misfireEvents)[number]][policy]);
    });
  }
});

describe("calendar", () => {
  const calendars: Record<(typeof dayEvents)[number], Calendar> = {
    "on a day that it runs on": { name: "c", version: 1, zone: "UTC", weekend: [], holidays: ["2029-12-31"] },
    "on another day": { name: "c", version: 1, zone: "UTC", weekend: [], holidays: ["2030-01-01"] },
    "with no such day within 400 days": {
      name: "c",
      version: 1,
      zone: "UTC",
      weekend: [0, 1, 2, 3, 4, 5, 6],
      holidays: [],
    },
  };
  it.each(dayEvents.flatMap((event) => dayPolicies.map((policy) => [event, policy] as const)))(
    "%s: %s",
    (event, policy) => {
      const definition = defineTask("t", { schedule: cron("0 12 * * *"), calendar: { name: "c", otherwise: policy } });
      const schedule = plannedSchedule(definition, calendars[event]);
      // Whether the slot of this noon still exists after the calendar was applied; if not, the calendar has moved it.
      const there = schedule.next(nowMs - 1) === nowMs;
      const skipped = there && schedule.judge?.(nowMs, nowMs)?.skipped !== undefined;
      expect(there ? (skipped ? "skipped" : "runs") : "moved").toBe(dayTable[event][policy]);
    },
  );
});

describe("blackout", () => {
  const window = (from: string, to: string, how: "skip" | "delay") =>
    // biome-ignore lint/suspicious/noThenProperty: never awaited.
    ({ from, to, then: how });
  const windows: Record<
    (typeof blackoutEvents)[number],
    (how: "skip" | "delay") => NonNullable<TaskOptions["blackout"]>
  > = {
    "due outside": (how) => [window("13:00", "14:00", how)],
    "due in it": (how) => [window("11:00", "14:00", how)],
    "due at its last instant": (how) => [window("11:00", "12:00", how)],
    "due in it and in one that skips": (how) => [
      window("11:00", "14:00", how),
      window("13:00", "15:00", "skip"),
      window("10:00", "12:30", "skip"),
    ],
    "due in it, where it has no end within a year": (how) => [
      window("2029-12-01T00:00:00Z", "2031-12-01T00:00:00Z", how),
    ],
  };
  it.each(blackoutEvents.flatMap((event) => blackoutPolicies.map((policy) => [event, policy] as const)))(
    "%s: %s",
    (event, policy) => {
      const definition = defineTask("t", { schedule: cron("0 12 * * *"), blackout: windows[event](policy) });
      const judged = plannedSchedule(definition, undefined).judge?.(nowMs, nowMs);
      const fate = judged?.skipped !== undefined ? "skipped" : (judged?.dueMs ?? nowMs) > nowMs ? "delayed" : "runs";
      expect(fate).toBe(blackoutTable[event][policy]);
    },
  );
});
