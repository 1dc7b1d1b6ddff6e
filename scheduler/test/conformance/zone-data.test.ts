/** Tests a cluster whose processes have time zone databases of several versions: see docs/tasks/time-zones.md. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mix, seeded } from "../../src/base/random.ts";
import { cron } from "../../src/schedule/schedule.ts";
import { plannedSlots } from "../../src/slots/upcoming-slots.ts";
import type { Store } from "../../src/store/store.ts";
import type { TaskOptions } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { EditSequence, localTimesNotToldOnce, sequenceDays } from "../support/edit-sequence.ts";
import { rounds, seed } from "../support/long.ts";
import { postgres } from "../support/servers.ts";
import { asCode, change, dayMs, openStage, type Stage, until } from "../support/store-stage.ts";
import { newerData, olderData, plantRules } from "../support/zone-data.ts";

const hourMs = 3_600_000;
const minuteMs = 60_000;

/** Zones with the same offset all year, so that the effect of changed rules is predictable. Each test uses a different zone. */
const zones = [
  "Asia/Tokyo", // UTC+9
  "Asia/Dubai",
  "Asia/Kolkata",
  "Asia/Bangkok",
  "Asia/Manila",
  "Africa/Lagos",
  "Africa/Nairobi",
  "Africa/Johannesburg",
  "America/Bogota",
  "America/Lima",
  "America/Panama",
  "Pacific/Honolulu",
];

describe("time zone data", () => {
  let stage: Stage;
  let session: number;
  let worker: number;
  /** 00:00 UTC of tomorrow, which is 09:00 in Tokyo, in ms. */
  let nineMs: number;
  beforeAll(async () => {
    stage = await openStage(postgres(), { hour: 20 });
    [session, worker] = [await stage.session(), await stage.session("worker")];
    nineMs = Math.ceil(stage.nowMs / dayMs) * dayMs;
  });
  afterAll(() => stage.close());

  const daily = (zone: string, options: TaskOptions = {}): TaskOptions => ({
    schedule: cron("0 9 * * *", { zone }),
    ...options,
  });
  const follow = (nowMs: number, store: Store = stage.store) => store.tasks.followZones(change(nowMs));
  const slots = async ({ taskId }: TaskRecord) => {
    const { slots: rows, ranges } = await stage.store.history.slots(taskId, 0, nineMs * 2, 100);
    return {
      rows: rows
        .reverse()
        .map(({ slotMs, nominalMs }) => [(slotMs - nineMs) / hourMs, nominalMs?.map((at) => (at - nineMs) / hourMs)]),
      ranges: ranges.map(({ fromMs, toMs, outcome }) => [
        (fromMs - nineMs) / hourMs,
        (toMs - nineMs) / hourMs,
        outcome,
      ]),
    };
  };
  const next = async ({ name }: TaskRecord) => {
    const { nextSlotMs } = await stage.store.tasks.byName(name);
    return nextSlotMs === null ? null : (nextSlotMs - nineMs) / hourMs;
  };
  const plan = (task: TaskRecord, nowMs: number) => stage.plan([task], session, nowMs + 15_000, nowMs);
  const run = async (task: TaskRecord, nowMs: number) => {
    await plan(task, nowMs - 10_000);
    expect(await stage.claim(worker, [task], nowMs)).toHaveLength(1);
  };

  it("a store has the rules of each zone that a task or a calendar uses, and replans nothing if they are equal", async () => {
    const change_ = change(stage.nowMs);
    await stage.store.calendars.set("days", { zone: "Asia/Seoul", weekend: [], holidays: [] }, change_);
    await stage.task("blackout", {
      schedule: cron("0 9 * * *"),
      blackout: [{ from: "01:00", to: "02:00", zone: "Asia/Taipei" }],
    });
    const [task] = await stage.store.tasks.saveAll(
      [(await stage.task("one", daily("Asia/Jakarta"))).definition],
      change_,
      asCode,
    );
    const names = ["Asia/Jakarta", "Asia/Seoul", "Asia/Taipei"];
    const rows = await stage.rows<{ name: string; data: string }>(
      "select name, data from $s.zone_rules where name = any($1) order by 1",
      [names],
    );
    expect(rows).toEqual(names.map((name) => ({ name, data: process.versions.tz })));
    // Marks the stored rules as those of an older database version; their content stays the same.
    await stage.rows("update $s.zone_rules set data = $1", [olderData]);
    expect(await follow(stage.nowMs, await stage.another())).toEqual({ changed: [], replanned: 0, left: [] });
    expect(await stage.rows("select distinct data from $s.zone_rules")).toEqual([{ data: process.versions.tz }]);
    expect((await stage.store.tasks.byName("one")).version).toBe(task?.version);
  });

  it("a newer database without other rules is brought once; later looks do not lock the cluster's row", async () => {
    const task = await stage.task("equal", daily("Asia/Singapore"));
    // This zone is in no database, so no process can bring it.
    await stage.rows(
      `with next as (update $s.cluster set zones_version = zones_version + 1 returning zones_version)
       insert into $s.zone_rules (name, version, data, starts_ms, offsets_ms, to_ms)
       select 'Mars/Phobos', zones_version, $1, '{0}', '{0}', 4000000000000 from next`,
      [olderData],
    );
    await stage.rows("update $s.zone_rules set data = $1", [olderData]);
    const [bringing, other] = [await stage.another(), await stage.another()];
    await other.tasks.byName(task.name); // caches the rules of the older database
    for (const store of [bringing, other]) await follow(stage.nowMs, store);
    const blocker = await stage.sql.connect();
    await blocker.query(`begin; select from ${stage.schema}.cluster for update`);
    try {
      for (const store of [bringing, other])
        expect(await follow(stage.nowMs, store)).toEqual({ changed: [], replanned: 0, left: [] });
    } finally {
      await blocker.query("rollback");
      blocker.release();
      await stage.rows("delete from $s.zone_rules where name = 'Mars/Phobos'");
    }
  });

  it("an older process plans by the newer rules that another process stored", async () => {
    const zone = "Asia/Tokyo";
    const other = await stage.another();
    const before = await stage.task("older", daily(zone));
    expect(await next(before)).toBe(0);
    await plantRules(stage, zone, hourMs, stage.nowMs);
    expect(plannedSlots(await other.tasks.byName("older"), stage.nowMs, 1), "not before it is planned anew").toEqual([
      nineMs,
    ]);
    expect(await follow(stage.nowMs)).toEqual({ changed: [], replanned: 1, left: [] });
    const after = await other.tasks.byName("older");
    expect(plannedSlots(after, stage.nowMs, 2)).toEqual([nineMs - hourMs, nineMs + 23 * hourMs]);
    expect(await next(after)).toBe(-1);
    const [version] = await stage.store.tasks.versions("older");
    expect(version?.reason).toBe("its time zone has other rules");
    // Tasks that are stored from now on are planned by the newer rules at once.
    const made = await other.tasks.saveAll([{ ...before.definition, name: "younger" }], change(stage.nowMs), asCode);
    expect(await next(made[0] as TaskRecord)).toBe(-1);
    expect(await next(await stage.task("youngest", daily(zone)))).toBe(-1);
    expect(await follow(stage.nowMs)).toEqual({ changed: [], replanned: 0, left: [] });
  });

  it("a newer process stores its rules, which is logged and in the audit log", async () => {
    const zone = "Asia/Manila"; // UTC+8
    const task = await stage.task("newer", daily(zone));
    expect(await next(task)).toBe(1);
    await plantRules(stage, zone, hourMs, stage.nowMs, olderData);
    const own = process.versions.tz as string;
    expect(await follow(stage.nowMs)).toEqual({
      changed: [{ zone, from: olderData, to: own }],
      replanned: 1,
      left: [],
    });
    expect(await next(task)).toBe(1);
    const [entry] = await stage.store.audit.list({ about: "cluster" }, Number.MAX_SAFE_INTEGER, 1);
    expect(entry).toMatchObject({ named: zone, before: { zoneData: olderData }, after: { zoneData: own } });
  });

  it("a local time that has run does not run again at its later instant", async () => {
    const zone = "Africa/Nairobi"; // UTC+3: 09:00 is six hours after midnight UTC
    const task = await stage.task("again", daily(zone));
    const ranMs = nineMs + 6 * hourMs;
    await run(task, ranMs);
    await plantRules(stage, zone, -hourMs, ranMs);
    expect(await follow(ranMs + 30 * minuteMs)).toMatchObject({ replanned: 1 });
    expect(await next(task)).toBe(24 + 7);
    expect((await slots(task)).rows, "it is the account of the new instant").toEqual([[6, [7]]]);
    // The rules change back, as after a correction of the time zone database.
    await plantRules(stage, zone, 0, ranMs);
    await follow(ranMs + 40 * minuteMs);
    expect(await next(task)).toBe(24 + 6);
    expect((await slots(task)).rows).toEqual([[6, [6]]]);
  });

  it("a slot that a worker claimed ahead counts as the one of its local time", async () => {
    const zone = "Africa/Lagos"; // UTC+1: 09:00 is eight hours after midnight UTC
    const task = await stage.task("claimed", daily(zone));
    await plan(task, nineMs + 8 * hourMs - 10_000);
    expect(await stage.claim(worker, [task], nineMs + 8 * hourMs)).toHaveLength(1);
    await plantRules(stage, zone, -hourMs, nineMs);
    await follow(nineMs + 8 * hourMs - 500);
    expect(await next(task)).toBe(24 + 9);
  });

  it.each([
    ["a little", 2 * minuteMs, {}, [[5, undefined]], []],
    ["long, and skips", 40 * minuteMs, { misfire: "skip" as const }, [], [[5, 5, "missed"]]],
    ["long, and fires once", 40 * minuteMs, { misfire: "fire_once" as const }, [[5, undefined]], []],
  ])("a local time that is in the past by the new rules is late: %s", async (what, lateMs, options, rows, ranges) => {
    const zone = ["Asia/Dubai", "Asia/Kolkata", "Asia/Bangkok"][
      ["a little", "long, and skips", "long, and fires once"].indexOf(what)
    ] as string;
    const hour = { "Asia/Dubai": "10", "Asia/Kolkata": "11:30", "Asia/Bangkok": "13" }[zone] as string; // each is 06:00 UTC
    const [hours, minutes = "0"] = hour.split(":");
    const task = await stage.task(`late-${what.replaceAll(/\W+/g, "-")}`, {
      schedule: cron(`${minutes} ${hours} * * *`, { zone }),
      ...options,
    });
    expect(await next(task)).toBe(6);
    await plantRules(stage, zone, hourMs, nineMs);
    const nowMs = nineMs + 5 * hourMs + lateMs;
    await follow(nowMs);
    expect(await next(task)).toBe(5);
    await plan(task, nowMs);
    expect(await next(task)).toBe(24 + 5);
    expect(await slots(task)).toEqual({ rows, ranges });
  });

  it("a five-minute schedule continues: an instant is one slot, whatever its local time", async () => {
    const zone = "Africa/Johannesburg";
    const task = await stage.task("often", { schedule: cron("*/5 * * * *", { zone }) });
    const fire = async (fromMs: number, toMs: number) => {
      for (let atMs = fromMs; atMs <= toMs; atMs += 5 * minuteMs) await plan(task, atMs - 10_000);
    };
    await fire(nineMs, nineMs + 20 * minuteMs);
    const from = (await slots(task)).rows.length;
    for (const shiftMs of [-hourMs, hourMs, 30 * minuteMs]) {
      await plantRules(stage, zone, shiftMs, nineMs);
      await follow(nineMs + 22 * minuteMs);
      expect((await next(task)) as number).toBeCloseTo(25 / 60);
    }
    await fire(nineMs + 25 * minuteMs, nineMs + hourMs);
    const { rows, ranges } = await slots(task);
    expect(rows).toHaveLength(from + 8);
    expect(rows.filter(([, nominal]) => nominal !== undefined)).toEqual([]);
    expect(ranges.filter(([fromHour]) => (fromHour as number) >= 0)).toEqual([]);
  });

  it("a paused task stays paused, and continues by the rules in force", async () => {
    const zone = "America/Bogota"; // UTC-5: 09:00 is 14 h after midnight UTC
    const task = await stage.task("paused", daily(zone));
    await stage.store.tasks.pause("paused", change(stage.nowMs));
    await plantRules(stage, zone, hourMs, stage.nowMs);
    await follow(stage.nowMs);
    expect(await next(task)).toBeNull();
    await stage.store.tasks.resume("paused", change(nineMs));
    expect(await next(task)).toBe(13);
  });

  it("an edit keeps the rules it has planned by, whatever its process reads meanwhile", async () => {
    const zone = "America/Lima"; // UTC-5: 09:00 is 14 h after midnight UTC
    const task = await stage.task("meanwhile", daily(zone));
    await plan(task, nineMs + 14 * hourMs - 10_000);
    // This lock on the run stops the edit after the edit has read the rules, because the edit withdraws the run.
    const blocker = await stage.sql.connect();
    await blocker.query("begin");
    await blocker.query(`select from ${stage.schema}.run where task_id = $1 for update`, [task.taskId]);
    const edited = stage.task("meanwhile", daily(zone, { description: "edited" }), nineMs);
    const waits =
      "select count(*)::int as waiting from pg_stat_activity where wait_event_type = 'Lock' and query like $1";
    await until("the edit waits", async () => (await stage.one(waits, [`%${stage.schema}%`])).waiting === 1);
    await plantRules(stage, zone, hourMs, nineMs);
    expect(await next(await stage.task("since", daily(zone), nineMs))).toBe(13);
    await blocker.query("commit");
    blocker.release();
    await edited;
    expect(await next(task)).toBe(14);
    expect(await follow(nineMs)).toMatchObject({ replanned: 1 });
    expect(await next(task)).toBe(13);
  });

  it("a task whose zone this process does not have is listed, and delays no other task", async () => {
    const zone = "America/Panama";
    const task = await stage.task("unreadable", daily(zone));
    const other = await stage.task("readable", daily(zone));
    const stranger = { ...task.definition, schedule: { ...task.definition.schedule, zone: "Mars/Olympus" } };
    await stage.rows("update $s.task set definition = $2 where id = $1", [task.taskId, JSON.stringify(stranger)]);
    for (const data of [olderData, newerData])
      await stage.rows(
        `with next as (update $s.cluster set zones_version = zones_version + 1 returning zones_version)
         insert into $s.zone_rules (name, version, data, starts_ms, offsets_ms, to_ms)
         select 'Mars/Olympus', zones_version, $1, '{0}', array[$2::int], 4000000000000 from next`,
        [data, data === newerData ? hourMs : 0],
      );
    await plantRules(stage, zone, hourMs, stage.nowMs);
    const { replanned, left } = await follow(stage.nowMs);
    expect(replanned).toBe(1);
    expect(left).toEqual([{ task: "unreadable", error: expect.stringContaining("Mars/Olympus") }]);
    expect(await next(other)).toBe(13);
    const names = (await stage.store.tasks.list()).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["unreadable", "readable"]));
    await stage.store.tasks.remove("readable", change(stage.nowMs));
    await stage.rows("delete from $s.zone_rules where name = 'Mars/Olympus'");
    await stage.rows("update $s.task set deleted_ms = 1 where id = $1", [task.taskId]);
  });

  it("a store from before rules were stored gets those that its tasks use", async () => {
    const old = await openStage(postgres());
    try {
      await old.task("there", daily("America/Lima"));
      await old.rows("delete from $s.zone_rules");
      await old.rows("update $s.cluster set zones_version = 0");
      await old.rows("update $s.plan set zones_version = 0");
      const store = await old.another();
      expect(await follow(old.nowMs, store)).toEqual({ changed: [], replanned: 0, left: [] });
      expect(await old.rows("select name from $s.zone_rules")).toEqual([{ name: "America/Lima" }]);
      await plantRules(old, "America/Lima", hourMs, old.nowMs);
      expect(await follow(old.nowMs, store)).toEqual({ changed: [], replanned: 1, left: [] });
    } finally {
      await old.close();
    }
  });

  it(`each local time is recorded once through random changes of rules, calendar and pause, seed ${seed}`, async () => {
    await stage.store.history.rotate(stage.nowMs, null, sequenceDays + 1);
    for (let round = 0; round < rounds(12, 2_000); round++) {
      const zone = zones[round % zones.length] as string;
      const named = { name: `rules-${round}`, session, worker, beginMs: nineMs - dayMs, zone };
      await plantRules(stage, zone, 0, named.beginMs);
      const sequence = new EditSequence(stage, seeded(mix(seed, round)), named);
      const endMs = await sequence.play();
      const wrong = await localTimesNotToldOnce(stage, named, sequence.hours, endMs);
      expect(wrong, sequence.story.join("\n")).toEqual([]);
      await stage.store.tasks.remove(named.name, change(endMs));
    }
  }, 3_600_000);
});
