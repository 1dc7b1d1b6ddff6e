import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { mix, seeded } from "../../src/base/random.ts";
import { carillon } from "../../src/library/carillon.ts";
import { cron, every } from "../../src/schedule/schedule.ts";
import { plannedSchedule } from "../../src/schedule/slot-rules.ts";
import { compareCalendar } from "../../src/slots/calendar-changes.ts";
import { plannedSlots } from "../../src/slots/upcoming-slots.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { EditSequence, notToldOnce, sequenceDays } from "../support/edit-sequence.ts";
import { rounds, seed } from "../support/long.ts";
import { postgres } from "../support/servers.ts";
import { asCode, change, dayMs, openStage, type Stage, until } from "../support/store-stage.ts";

const hourMs = 3_600_000;
// biome-ignore lint/suspicious/noThenProperty: never awaited.
const delay = { then: "delay" } as const;

describe("calendars", () => {
  let stage: Stage;
  let session: number;
  /** Midnight UTC of tomorrow, in ms. */
  let tomorrowMs: number;
  beforeAll(async () => {
    stage = await openStage(postgres());
    session = await stage.session();
    tomorrowMs = Math.ceil(stage.nowMs / dayMs) * dayMs;
  });
  afterAll(() => stage.close());

  const day = (days: number) => new Date(tomorrowMs + days * dayMs).toISOString().slice(0, 10);
  const set = (name: string, holidays: string[], store = stage.store) =>
    store.calendars.set(name, { zone: "UTC", weekend: [], holidays }, change(stage.nowMs));
  const ledger = async ({ taskId }: TaskRecord) => {
    const { slots } = await stage.store.history.slots(taskId, 0, stage.nowMs * 2, 100);
    return slots.reverse().map(({ slotMs, outcome, reason }) => [(slotMs - tomorrowMs) / hourMs, outcome, reason]);
  };
  const due = async ({ taskId }: TaskRecord) =>
    (await stage.rows("select due_ms from $s.run where task_id = $1 order by 1", [taskId])).map(
      (row) => ((row.due_ms as number) - tomorrowMs) / hourMs,
    );
  const counters = async ({ taskId }: TaskRecord) => (await stage.store.tasks.counters([taskId])).get(taskId);

  it("task.next() in code returns the slots that will run, once the calendar has been read", async () => {
    await set("next", [day(1)]);
    const tower = carillon({ store: postgres().url, schema: stage.schema, handleSignals: false, worker: false });
    try {
      const schedule = cron("0 12 * * *", { zone: "UTC" });
      const task = tower.task("nexts", { schedule, calendar: { name: "next" } }, () => 1);
      const plain = tower.task("nexts-2", { schedule, blackout: [{ from: "11:00", to: "13:00" }] }, () => 1);
      const days = (dates: Date[]) => dates.map((date) => date.toISOString().slice(0, 10));
      expect(() => task.next()).toThrow(expect.objectContaining({ code: "CALENDAR_UNKNOWN" }));
      expect(plain.next(3), "all of them in its blackout").toEqual([]);
      await tower.start();
      const [first] = days(task.next(1)) as [string];
      const coming = [day(-1), day(0), day(1), day(2)].filter((one) => one >= first && one !== day(1));
      expect(days(task.next(coming.length))).toEqual(coming);
      await set("next", [day(1), day(2)]);
      await until("it reads the calendar anew", () => !days(task.next(4)).includes(day(2)));
    } finally {
      await tower.stop();
    }
  });

  it("have versions, and saving equal content changes nothing", async () => {
    expect(await set("plain", [day(1), day(0)])).toMatchObject({
      changed: true,
      calendar: { version: 1, holidays: [day(0), day(1)] },
    });
    expect(await set("plain", [day(0), day(1)])).toMatchObject({ changed: false, calendar: { version: 1 } });
    expect(await set("plain", [day(0)])).toMatchObject({ changed: true, calendar: { version: 2 } });
    expect(await stage.store.calendars.find("plain")).toMatchObject({
      version: 2,
      holidays: [day(0)],
      author: "test",
      tasks: [],
    });
    expect(await stage.store.calendars.find("plain", 1)).toMatchObject({ version: 1, holidays: [day(0), day(1)] });
    expect((await stage.store.calendars.list()).map(({ name }) => name)).toContain("plain");
    await stage.store.calendars.remove("plain", change(stage.nowMs));
    await expect(stage.store.calendars.find("plain")).rejects.toMatchObject({ code: "CALENDAR_UNKNOWN" });
    await expect(stage.store.calendars.remove("plain", change(stage.nowMs))).rejects.toMatchObject({
      code: "CALENDAR_UNKNOWN",
    });
    expect(await set("plain", [day(0)])).toMatchObject({ changed: true, calendar: { version: 3 } });
    await expect(set("../x", [])).rejects.toMatchObject({ code: "CALENDAR_INVALID" });
  });

  it("skip slots on free days, which are recorded in the ledger and counted, without a run", async () => {
    // The slot is at midnight, so today's slot is over at any time of day, and the first planned slot is tomorrow's.
    await set("skips", [day(0)]);
    const task = await stage.task("skips", { schedule: cron("0 0 * * *"), calendar: { name: "skips" } });
    expect(task.calendar).toMatchObject({ name: "skips", version: 1 });
    await stage.plan([task], session, tomorrowMs + dayMs + hourMs);
    expect(await ledger(task)).toEqual([
      [0, "skipped", `calendar skips: ${day(0)} is a holiday`],
      [24, "run", null],
    ]);
    expect(await due(task)).toEqual([24]);
    expect(await counters(task)).toMatchObject({ skipped: 1, missed: 0 });
  });

  it("move slots, recording the original time in the ledger, and delay them out of blackouts", async () => {
    await set("moves", [day(0)]);
    const options = { schedule: cron("0 9,23 * * *"), calendar: { name: "moves", otherwise: "next" as const } };
    const task = await stage.task("moves", { ...options, blackout: [{ from: "22:00", to: "06:00", ...delay }] });
    // Planning starts at tomorrow, so that the result does not depend on today's slots.
    await stage.rows("update $s.plan set next_slot_ms = $2 where task_id = $1", [
      task.taskId,
      tomorrowMs + 33 * hourMs,
    ]);
    await stage.plan([task], session, tomorrowMs + 2 * dayMs);
    const moved = `calendar moves: moved from ${day(0)}`;
    expect(await ledger(task)).toEqual([
      [33, "run", moved],
      [47, "run", `${moved}; blackout 22:00 to 06:00 UTC: delayed`],
    ]);
    expect(await due(task)).toEqual([33, 54]);
  });

  it("replan unclaimed slots when they change, and restore the slots they had skipped", async () => {
    await set("changes", [day(0)]);
    const task = await stage.task("changes", { schedule: cron("0 0 * * *"), calendar: { name: "changes" } });
    await stage.plan([task], session, tomorrowMs + dayMs + hourMs);
    const { changed, tasks } = await set("changes", [day(1)]);
    expect([changed, tasks]).toEqual([true, ["changes"]]);
    const after = await stage.store.tasks.byName("changes");
    expect(after).toMatchObject({ version: 2, calendar: { version: 2 } });
    const [version] = await stage.store.tasks.versions("changes");
    expect(version).toMatchObject({ version: 2, reason: "calendar changes is at version 2", author: "test" });
    expect(await ledger(task)).toEqual([]);
    expect(await counters(task)).toMatchObject({ skipped: 0 });
    await stage.plan([after], session, tomorrowMs + dayMs + hourMs);
    expect(await ledger(task)).toEqual([
      [0, "run", null],
      [24, "skipped", `calendar changes: ${day(1)} is a holiday`],
    ]);
  });

  it("refuse a step of a planner that has the old version", async () => {
    await set("stale", []);
    const task = await stage.task("stale", { schedule: every("1h"), calendar: { name: "stale" } });
    const steps = await stage.steps([task], stage.nowMs + 2 * hourMs);
    const other = await stage.another();
    await Promise.all([set("stale", [day(0)], other), set("stale", [day(0)])]);
    const { taken } = await stage.store.plans.accept({ sessionId: session, term: null }, steps, stage.nowMs);
    expect(taken).toEqual(new Set());
    const known = await other.tasks.byName("stale");
    expect(known).toMatchObject({ version: 2, calendar: { version: 2, holidays: [day(0)] } });
    expect(plannedSchedule(known.definition, known.calendar).judge?.(tomorrowMs, tomorrowMs)?.skipped).toBeDefined();
  });

  it("record a slot that a change moves into the past", async () => {
    const name = "passed";
    await set(name, []);
    const at = new Date(stage.nowMs - hourMs).toISOString();
    const cronText = `${Number(at.slice(14, 16))} ${Number(at.slice(11, 13))} * * *`;
    const task = await stage.task(name, { schedule: cron(cronText), calendar: { name, otherwise: "previous" } });
    // Tomorrow's slot moves to the previous working day at the same time of day, which was an hour ago.
    const tomorrow = new Date(stage.nowMs + dayMs - hourMs).toISOString().slice(0, 10);
    await set(name, [tomorrow]);
    expect((await ledger(task)).map(([, outcome, reason]) => [outcome, reason])).toEqual([
      ["skipped", "calendar: moved to a time that had passed"],
    ]);
    expect(await counters(task)).toMatchObject({ skipped: 1 });
  });

  it("account for every slot when a day is made free by mistake and corrected, in any order of edits", async () => {
    const name = "mistake";
    const noonMs = tomorrowMs + 12 * hourMs;
    const edit = (holidays: string[], nowMs: number) =>
      stage.store.calendars.set(name, { zone: "UTC", weekend: [], holidays }, change(nowMs));
    await edit([], stage.nowMs);
    const options = { schedule: cron("*/5 * * * * *"), calendar: { name, otherwise: "next" as const } };
    const { taskId } = await stage.task(name, options, noonMs - 1);
    const plan = async (nowMs: number) => {
      const [task] = await stage.store.tasks.byIds([taskId]);
      await stage.plan([task as TaskRecord], session, nowMs + 2_000, nowMs);
    };
    /** Returns, for each slot time from noon on, the number of ledger rows and ranges that contain it. */
    const told = async (toMs: number) => {
      const rows = await stage.rows<{ slot: number }>("select slot_ms as slot from $s.slot where task_id = $1", [
        taskId,
      ]);
      const ranges = await stage.rows<{ from: number; to: number; slots: number }>(
        "select from_ms as from, to_ms as to, slots from $s.slot_range where task_id = $1 and outcome = 3",
        [taskId],
      );
      const counts: number[] = [];
      for (let at = noonMs; at <= toMs; at += 5_000)
        counts.push(
          rows.filter(({ slot }) => slot === at).length +
            ranges.filter(({ from, to }) => from <= at && at <= to).length,
        );
      return counts;
    };
    await plan(noonMs);
    // The edit moves the slots from 12:00:05 on, which are not planned yet, to the next day.
    await edit([day(0)], noonMs + 4_000);
    await plan(noonMs + 4_000);
    await edit([], noonMs + 19_000);
    expect(await told(noonMs + 15_000)).toEqual([1, 1, 1, 1]);
    expect(await counters({ taskId } as TaskRecord)).toMatchObject({ missed: 3 });
    await plan(noonMs + 20_000);
    // Repeats the edits above, but with a second holiday in between, and with an edit of the task in place of the last edit of the
    // calendar.
    await edit([day(0)], noonMs + 24_000);
    await edit([day(0), day(1)], noonMs + 32_000);
    await stage.task(name, { ...options, calendar: { name, otherwise: "skip" } }, noonMs + 38_000);
    expect(await told(noonMs + 35_000)).toEqual([1, 1, 1, 1, 1, 1, 1, 1]);
    expect(await counters({ taskId } as TaskRecord)).toMatchObject({ missed: 6 });
  });

  it.each([
    { otherwise: "next" as const, ofDay: 0, before: [], after: [0] },
    { otherwise: "previous" as const, ofDay: 1, before: [1], after: [] },
  ])("do not repeat a run whose slot a change moves to a later time by $otherwise", async (row) => {
    const name = `again-${row.otherwise}`;
    const edit = (days: number[], nowMs: number) =>
      stage.store.calendars.set(name, { zone: "UTC", weekend: [], holidays: days.map(day) }, change(nowMs));
    await edit(row.before, stage.nowMs);
    const [, month, dayOfMonth] = day(row.ofDay).split("-").map(Number);
    const schedule = cron(`0 12 ${dayOfMonth} ${month} *`);
    const task = await stage.task(name, { schedule, calendar: { name, otherwise: row.otherwise } });
    const content = { zone: "UTC", weekend: [], holidays: row.after.map(day) };
    const moves = async (nowMs: number) =>
      (await compareCalendar(stage.store, name, content, { nowMs, clock: systemClock })).tasks.map(
        ({ total }) => total,
      );
    await stage.plan([task], session, tomorrowMs + 12 * hourMs, tomorrowMs + 12 * hourMs - 10_000);
    expect(await due(task)).toEqual([12]);
    expect(await moves(tomorrowMs + 12 * hourMs - 10_000), "what is planned and not claimed would move").toEqual([1]);
    expect(await moves(tomorrowMs + 13 * hourMs), "a comparison says no more than will be").toEqual([]);
    await edit(row.after, tomorrowMs + 13 * hourMs);
    const edited = await stage.store.tasks.byName(name);
    await stage.plan([edited], session, tomorrowMs + 36 * hourMs, tomorrowMs + 36 * hourMs);
    expect(await due(task)).toEqual([12]);
    const { slots } = await stage.store.history.slots(task.taskId, 0, stage.nowMs * 2, 10);
    const nominalMs = row.ofDay === 0 ? null : [tomorrowMs + 36 * hourMs];
    expect(slots).toMatchObject([{ slotMs: tomorrowMs + 12 * hourMs, outcome: "run", nominalMs }]);
    const [next] = plannedSlots(edited, tomorrowMs + 13 * hourMs, 1);
    expect(next, "nor is it shown as coming").toBeGreaterThan(tomorrowMs + 300 * dayMs);
  });

  it(`record each slot once through random edits of calendar, rules, schedule and pause, seed ${seed}`, async () => {
    await stage.store.history.rotate(stage.nowMs, null, sequenceDays + 1);
    const worker = await stage.session("worker");
    const play = async (round: number) => {
      const name = `edits-${round}`;
      const named = { name, session, worker, beginMs: tomorrowMs - dayMs };
      const sequence = new EditSequence(stage, seeded(mix(seed, round)), named);
      const endMs = await sequence.play();
      expect(await notToldOnce(stage, named, endMs), sequence.story.join("\n")).toEqual([]);
      await stage.store.tasks.remove(name, change(endMs));
    };
    const last = rounds(30, 2_000);
    let next = 0;
    const playSome = async () => {
      while (next < last) await play(next++);
    };
    await Promise.all(Array.from({ length: 4 }, playSome));
  }, 3_600_000);

  it("must exist for a task that uses them, and cannot be removed while used", async () => {
    await expect(stage.task("none", { calendar: { name: "nowhere" } })).rejects.toMatchObject({
      code: "CALENDAR_UNKNOWN",
    });
    await set("used", []);
    const task = await stage.task("user", { calendar: { name: "used" } });
    await expect(stage.store.calendars.remove("used", change(stage.nowMs))).rejects.toMatchObject({
      code: "CALENDAR_USED",
      message: expect.stringContaining("user"),
    });
    const [saved] = await stage.store.tasks.saveAll([task.definition], change(stage.nowMs), asCode);
    expect(saved).toMatchObject({ version: 1, calendar: { name: "used" } });
    const [fresh] = await stage.store.tasks.saveAll(
      [{ ...task.definition, name: "fresh" }],
      change(stage.nowMs),
      asCode,
    );
    expect(fresh).toMatchObject({ version: 1, calendar: { name: "used", version: 1 } });
    for (const name of ["user", "fresh"]) await stage.store.tasks.remove(name, change(stage.nowMs));
    await stage.store.calendars.remove("used", change(stage.nowMs));
  });
});
