import ICAL from "ical.js";
import { describe, expect, test } from "vitest";
import { writeIcs } from "../schedule/ics/written.ts";
import { cron, every } from "../schedule/schedule.ts";
import { defineTask, type TaskOptions } from "../task/task.ts";
import { type FeedBounds, feedOf } from "./calendar-feed.ts";
import { foretell } from "./timeline.ts";

const fromMs = Date.parse("2026-10-24T21:30:00Z");
const bounds = { perDay: 24, most: 2_000, clusterId: "cluster" };

interface Asked extends Partial<FeedBounds> {
  days?: number;
  since?: number;
}

async function feed(tasks: Record<string, TaskOptions>, { days = 3, since = fromMs, ...more }: Asked = {}) {
  const alike = Object.entries(tasks).map(([names, options], at) => ({
    task: {
      taskId: at + 1,
      name: names.split(" ")[0] as string,
      version: 1,
      definition: defineTask("t", options),
      groupId: 1,
      paused: null,
      changedMs: 0,
      nextSlotMs: null,
    },
    count: names.split(" ").length,
    names,
  }));
  const line = await foretell(alike, since, days * 1_440, async () => undefined);
  const { events, cut } = feedOf(line, { ...bounds, ...more });
  const text = writeIcs({
    name: "Carillon, all; of it",
    stampMs: since,
    refresh: "PT1H",
    notes: { "X-CUT": cut },
    events,
  });
  const calendar = new ICAL.Component(ICAL.parse(text));
  return { text, cut, calendar, events: calendar.getAllSubcomponents("vevent").map((one) => new ICAL.Event(one)) };
}
const told = ({ startDate, summary }: ICAL.Event) => `${startDate} ${summary}`;

describe("a calendar feed, read by ical.js", () => {
  test("has one event for each slot of a task that fires seldom, in order, and no busy time", async () => {
    const { text, calendar, events } = await feed({
      "backup team/backup": { schedule: cron("0 3 * * *", { zone: "Europe/Berlin" }) },
      weekly: { schedule: cron("15 22 * * SAT") },
    });
    expect(events.map(told)).toEqual([
      "2026-10-24T22:15:00Z weekly",
      // Berlin's clocks go back in this night.
      "2026-10-25T02:00:00Z backup",
      "2026-10-25T02:00:00Z team/backup",
      "2026-10-26T02:00:00Z backup",
      "2026-10-26T02:00:00Z team/backup",
      "2026-10-27T02:00:00Z backup",
      "2026-10-27T02:00:00Z team/backup",
    ]);
    expect(events[1]?.description).toMatch(/03:00.*Berlin/i);
    expect(text).toContain("\r\nNAME:Carillon\\, all\\; of it\r\n");
    expect(calendar.getFirstPropertyValue("version")).toBe("2.0");
    for (const { component } of events) {
      expect(component.getFirstPropertyValue("transp")).toBe("TRANSPARENT");
      expect(String(component.getFirstPropertyValue("dtstamp"))).toBe("2026-10-24T21:30:00Z");
    }
    expect(new Set(events.map(({ uid }) => uid)).size).toBe(events.length);
  });

  test("gives a slot the same UID in each reading, and another one in another cluster", async () => {
    const tasks = { backup: { schedule: cron("0 3 * * *") }, often: { schedule: every("10s") } };
    const uids = async (more: Asked) =>
      new Map((await feed(tasks, more)).events.map((event) => [told(event).replace(/ of .*/, ""), event.uid]));
    const [first, later, other] = [
      await uids({}),
      await uids({ since: fromMs + 3_600_000 }),
      await uids({ clusterId: "b" }),
    ];
    for (const [event, uid] of first) {
      if (later.has(event)) expect([event, later.get(event)]).toEqual([event, uid]);
      expect([event, other.get(event)]).not.toEqual([event, uid]);
    }
    expect([...first.keys()].filter((event) => later.has(event)).length).toBeGreaterThan(2);
  });

  test("tells of tasks that fire often by one event a day", async () => {
    const { events } = await feed(
      {
        "a b": { schedule: every("1m") },
        half: { schedule: cron("*/30 * * * *") },
        hourly: { schedule: cron("0 * * * *") },
        mondays: { schedule: cron("* 9 * * MON") },
      },
      { days: 2 },
    );
    const days = events.filter(({ startDate }) => startDate.isDate);
    expect(days.map(told)).toEqual([
      `2026-10-24 Often: ${2 * 150 + 5} runs of 3 tasks`,
      "2026-10-25 Often: 2,928 runs of 3 tasks",
      `2026-10-26 Often: ${(2 * 1_290 + 43 + 60).toLocaleString("en")} runs of 4 tasks`,
    ]);
    expect(days[1]?.description).toBe("a: 1,440 runs\nb: 1,440 runs\nhalf: 48 runs");
    expect(new Set(events.filter((event) => !days.includes(event)).map(({ summary }) => summary))).toEqual(
      new Set(["hourly"]),
    );
    expect(events.length - days.length).toBe(48);
  });

  test("says when it is cut, and that it is empty", async () => {
    const tasks = { "a b": { schedule: cron("0 3 * * *") } };
    const { cut, events, calendar } = await feed(tasks, { most: 3 });
    expect([cut, calendar.getFirstPropertyValue("x-cut")]).toEqual([3, "3"]);
    expect(events.map(told)).toEqual([
      "2026-10-25T03:00:00Z a",
      "2026-10-25T03:00:00Z b",
      "2026-10-26 Cut: 3 more events from here on",
      "2026-10-26T03:00:00Z a",
    ]);
    const none = await feed({ yearly: { schedule: cron("0 3 1 5 *") } }, { days: 1 });
    expect(none.events.map(told)).toEqual(["2026-10-24 No task fires in the next 1 day"]);
  });

  test("escapes texts, and breaks lines at 75 bytes between characters, with CRLF", async () => {
    const summary = `${"钟".repeat(60)}, a; b\\c\r\nd\u0007e`;
    const text = writeIcs({
      name: "n",
      stampMs: fromMs,
      refresh: "PT1H",
      notes: {},
      events: [{ uid: "u", startMs: fromMs, isDay: false, summary, description: "x".repeat(300) }],
    });
    const lines = text.split("\r\n");
    expect(lines.pop()).toBe("");
    expect(text.replaceAll("\r\n", "")).not.toMatch(/[\r\n]/);
    for (const line of lines) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(75);
    const [event] = new ICAL.Component(ICAL.parse(text)).getAllSubcomponents("vevent");
    expect(event?.getFirstPropertyValue("summary")).toBe(`${"钟".repeat(60)}, a; b\\c\nd e`);
    expect(event?.getFirstPropertyValue("description")).toBe("x".repeat(300));
  });
});

test("a calendar takes the names of tasks once, not for each day or fire", async () => {
  let reads = 0;
  const schedules = { often: every("1h"), seldom: cron("0 3 * * *") };
  const alike = Object.entries(schedules).map(([name, schedule], at) => ({
    task: {
      taskId: at + 1,
      name,
      version: 1,
      definition: defineTask(name, { schedule }),
      groupId: 1,
      paused: null,
      changedMs: 0,
      nextSlotMs: null,
    },
    count: 1,
    get names() {
      reads++;
      return name;
    },
  }));
  const line = await foretell(alike, fromMs, 30 * 1_440, async () => undefined);
  reads = 0;
  expect(feedOf(line, { ...bounds, perDay: 1 }).events).toHaveLength(31 + 30);
  expect(reads).toBe(2);
});
