import { expect, it } from "vitest";
import { calendarContent } from "../schedule/calendar.ts";
import { checkNotShrunk } from "../schedule/calendar-days.ts";
import { cron, every } from "../schedule/schedule.ts";
import { defineTask, type TaskOptions } from "../task/task.ts";
import { slotChanges } from "./calendar-changes.ts";

const nowMs = Date.parse("2027-03-03T12:00:00Z");
const calendar = (holidays: string[], more: { zone?: string; weekend?: number[] } = {}) => ({
  name: "de",
  version: 1,
  ...calendarContent({ zone: "UTC", weekend: [], holidays, ...more }),
});
const of = (options: TaskOptions) => ({ taskId: 7, definition: defineTask("settle", options) });
const told = (options: TaskOptions, was: string[], is: string[]) =>
  slotChanges(of(options), calendar(was), calendar(is), nowMs).changes.map((change) => {
    const [old, fresh] = [change.was, change.is].map(({ slotMs, dueMs, note }) =>
      dueMs === null ? note : new Date(slotMs).toISOString().slice(0, 13),
    );
    return [new Date(change.nominalMs).toISOString().slice(0, 13), old, fresh];
  });
const daily = cron("0 9 * * *", { zone: "UTC" });

it("shows where a slot goes when its day becomes or stops being a holiday", () => {
  const holiday = "skipped: calendar de: 2027-03-10 is a holiday";
  expect(told({ schedule: daily, calendar: { name: "de" } }, [], ["2027-03-10"])).toEqual([
    ["2027-03-10T09", "2027-03-10T09", holiday],
  ]);
  const next = { schedule: daily, calendar: { name: "de", otherwise: "next" } } as const;
  expect(told(next, ["2027-03-10"], ["2027-03-11"])).toEqual([
    ["2027-03-10T09", "2027-03-11T09", "2027-03-10T09"],
    ["2027-03-11T09", "2027-03-11T09", "2027-03-12T09"],
  ]);
  expect(told(next, ["2027-03-10"], ["2027-03-10"])).toEqual([]);
});

it("shows slots whose new time has already passed", () => {
  const next = { schedule: daily, calendar: { name: "de", otherwise: "next" } } as const;
  expect(told(next, ["2027-03-03", "2027-03-02"], [])).toEqual([
    ["2027-03-02T09", "2027-03-04T09", "missed: its own time has passed"],
    ["2027-03-03T09", "2027-03-04T09", "missed: its own time has passed"],
  ]);
  const previous = { schedule: daily, calendar: { name: "de", otherwise: "previous" } } as const;
  expect(told(previous, [], ["2027-03-04"])).toEqual([
    ["2027-03-04T09", "2027-03-04T09", "skipped: moved to a time that has passed"],
  ]);
});

it("leaves out slots that are already recorded, because neither version runs them", () => {
  const task = of({ schedule: daily, calendar: { name: "de", otherwise: "next" } });
  const [second, third] = [Date.parse("2027-03-02T09:00:00Z"), Date.parse("2027-03-03T09:00:00Z")];
  const changes = (accounted: number[]) =>
    slotChanges(task, calendar([]), calendar(["2027-03-02", "2027-03-03"]), nowMs, new Set(accounted));
  expect(changes([])).toMatchObject({ total: 2, nominalMs: [second, third] });
  expect(changes([third])).toMatchObject({ total: 1, nominalMs: [second], changes: [{ nominalMs: second }] });
});

it("includes a blackout into which a slot is moved, and leaves out slots that cannot change", () => {
  const options: TaskOptions = {
    schedule: daily,
    calendar: { name: "de", otherwise: "next" },
    blackout: [{ from: "2027-03-11T00:00:00Z", to: "2027-03-12T00:00:00Z" }],
  };
  const [only, ...more] = told(options, [], ["2027-03-10"]);
  expect([only?.[2], more]).toEqual([expect.stringMatching(/^skipped: blackout /), []]);
  expect(told({ schedule: daily }, [], ["2027-03-10"]), "it has no calendar").toEqual([]);
});

it("limits the slots examined per task, and reports that there are more", () => {
  const all = Array.from({ length: 28 }, (_, at) => `2027-04-${String(at + 1).padStart(2, "0")}`);
  const often = of({ schedule: every("1m"), calendar: { name: "de" } });
  const { changes, total, isCut } = slotChanges(often, calendar([]), calendar(all), nowMs);
  expect([changes.length, total, isCut]).toEqual([50, 2_000, true]);
});

it("compares each slot if the zone changes, and counts weekends as days", () => {
  const task = of({ schedule: cron("30 23 * * *", { zone: "UTC" }), calendar: { name: "de" } });
  const was = calendar(["2027-03-10"]);
  const { total, changes } = slotChanges(task, was, calendar(["2027-03-10"], { zone: "Europe/Berlin" }), nowMs);
  expect([total, changes.map(({ nominalMs }) => new Date(nominalMs).getUTCDate())]).toEqual([2, [9, 10]]);
  const weekend = slotChanges(task, was, calendar(["2027-03-10"], { weekend: [0] }), nowMs);
  expect([weekend.total, weekend.changes[0]?.is.note]).toEqual([52, expect.stringContaining("weekend (Sunday)")]);
});

it("a version with fewer than half of the coming holidays is refused; past holidays do not count", () => {
  const was = calendar(["2020-01-01", "2027-03-03", "2027-05-01", "2027-12-25"]);
  const check = (...holidays: string[]) => checkNotShrunk("de", was, calendar(holidays), nowMs);
  expect(() => check("2027-05-01")).toThrow(
    expect.objectContaining({ code: "CALENDAR_SHRINKS", message: expect.stringContaining("3 coming holidays") }),
  );
  expect(() => check("2020-01-01", "2027-03-02")).toThrow(expect.objectContaining({ code: "CALENDAR_SHRINKS" }));
  check("2027-03-03", "2027-06-01");
  checkNotShrunk("de", calendar([]), calendar([]), nowMs);
});
