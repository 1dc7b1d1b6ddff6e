/** Tests the events about slots and changes: each is recorded in its case, and only while a consumer wants its type. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventOf } from "../../src/library/events/event.ts";
import { cloudEvent } from "../../src/library/events/outgoing.ts";
import type { ClaimedRun } from "../../src/run/claim-store.ts";
import { cron, every } from "../../src/schedule/schedule.ts";
import { isMatch } from "../../src/store/event-feed.ts";
import {
  type ChangeContent,
  changeEventTypes,
  type EventPlace,
  eventTypes,
  type SlotContent,
  type StoredEvent,
  slotEventTypes,
} from "../../src/store/event-store.ts";
import { defineTask } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { everyPostgres } from "../support/servers.ts";
import { asCode, change, openStage, type Stage, settlement, succeededVerdict } from "../support/store-stage.ts";

const hourMs = 3_600_000;

describe.each(everyPostgres())("events of slots and changes in the store, $title", (server) => {
  let stage: Stage;
  let session: number;
  let from: EventPlace;
  beforeAll(async () => {
    stage = await openStage(server, { hour: 12 });
    session = await stage.session();
  });
  afterAll(() => stage.close());

  const begin = async () => {
    ({ place: from } = await stage.store.events.want(eventTypes, stage.nowMs + hourMs, null, stage.nowMs));
  };
  const read = async (): Promise<StoredEvent[]> =>
    (await stage.store.events.read(from, { types: eventTypes, tasks: null }, 1_000, stage.nowMs)).events;
  const slotsOf = async (task: TaskRecord) =>
    (await read())
      .filter(({ type, task: name }) => type.startsWith("slot.") && name === task.name)
      .map(({ type, runId, told }) => ({ type, hasRun: runId > 0, ...(told as SlotContent) }))
      .sort((a, b) => a.slot - b.slot);
  const changes = async () =>
    (await read())
      .filter(({ type }) => !type.startsWith("slot.") && !type.startsWith("run."))
      .map(({ type, told }) => [type, (told as ChangeContent).act, (told as ChangeContent).named]);
  const at = (hours: number) => stage.nowMs + hours * hourMs;

  it("are not recorded while nothing wants them", async () => {
    await stage.rows("delete from $s.event_kind");
    const task = await stage.task("unwanted", { schedule: every("1h"), group: "unwanted" });
    await stage.plan([task], session, at(2));
    await stage.store.tasks.pause("unwanted", change(stage.nowMs));
    await stage.store.groups.limit("unwanted", 3, change(stage.nowMs));
    expect((await stage.one("select count(*)::int as n from $s.event")).n).toBe(0);
    // Only the wanted types are recorded afterwards.
    await stage.store.events.want(["slot.missed", "limit.changed"], stage.nowMs + hourMs, null, stage.nowMs);
    await stage.task("unwanted-other", { schedule: every("1h") });
    await stage.store.groups.limit("unwanted", 4, change(stage.nowMs));
    expect(await stage.rows("select kind::int from $s.event")).toEqual([{ kind: eventTypes.indexOf("limit.changed") }]);
  });

  it("record each slot as planned, caught up, skipped or missed", async () => {
    await begin();
    const hourly = { schedule: cron("0 * * * *") };
    const ahead = await stage.task("ahead", hourly);
    await stage.plan([ahead], session, at(1));
    expect(await slotsOf(ahead)).toEqual([{ type: "slot.planned", hasRun: true, slot: at(1) }]);

    // The planner was away from 12:00 to 17:00: one slot is caught up, and the four before it are missed.
    const late = await stage.task("late", hourly);
    await stage.plan([late], session, at(5.5), at(5.5));
    expect(await slotsOf(late)).toEqual([
      { type: "slot.missed", hasRun: false, slot: at(1), until: at(4), slots: 4, why: "misfire: fire_once" },
      { type: "slot.caught-up", hasRun: true, slot: at(5) },
    ]);

    const blocked = await stage.task("blocked", {
      ...hourly,
      blackout: [{ from: "13:00", to: "13:30", zone: "UTC" }],
    });
    await stage.plan([blocked], session, at(1));
    expect(await slotsOf(blocked)).toMatchObject([{ type: "slot.skipped", hasRun: false, slot: at(1) }]);

    // Its second run finds no slot of concurrency when it is due.
    const lone = await stage.task("lone", { ...hourly, overlap: "skip", group: "lone" });
    await stage.enqueue(lone);
    await stage.claim(session, [lone]);
    await stage.plan([lone], session, at(1));
    await stage.store.plans.admitHeld(at(1), at(1));
    expect((await slotsOf(lone)).map(({ type, hasRun }) => [type, hasRun])).toEqual([
      ["slot.planned", true],
      ["slot.skipped", true],
    ]);
    expect((await read()).filter(({ type, task }) => type === "run.skipped" && task === "lone")).toHaveLength(1);
  });

  it("record nothing for the slot of a finished run when a rerun of it is skipped", async () => {
    await begin();
    const task = await stage.task("again", { schedule: cron("0 * * * *"), overlap: "skip", group: "again" });
    await stage.plan([task], session, at(1));
    const [run] = (await stage.claim(session, [task], at(1))) as [ClaimedRun];
    await stage.store.claims.settle(session, [settlement(run, succeededVerdict, at(1))], at(1));
    await stage.enqueue(task, {}, at(1));
    expect(await stage.claim(session, [task], at(1))).toHaveLength(1);
    const { runId } = await stage.store.operations.rerun(run.runId, change(at(1)));
    await stage.store.plans.admitHeld(at(1), at(1));
    expect((await read()).filter(({ type }) => type === "run.skipped").map((event) => event.runId)).toEqual([runId]);
    expect((await slotsOf(task)).map(({ type }) => type)).toEqual(["slot.planned"]);
  });

  it("have an id as CloudEvents that is the same at each read, and differs if a slot is planned again", async () => {
    await begin();
    const task = await stage.task("edited", { schedule: cron("0 * * * *") });
    await stage.plan([task], session, at(1));
    await stage.plan([await stage.task("edited", { schedule: cron("*/30 * * * *") })], session, at(1));
    const idsOf = async () => {
      const events = (await read()).filter(({ type, told }) => type === "slot.planned" && told !== null);
      const ofSlot = events.filter((event) => event.task === "edited" && (event.told as SlotContent).slot === at(1));
      const all = await Promise.all(ofSlot.map((event) => eventOf(event, { opened: async (stored) => stored })));
      return all.map((event) => cloudEvent(event, "/carillon/test").id);
    };
    const ids = await idsOf();
    expect(new Set(ids).size).toBe(2);
    expect(ids).toHaveLength(2);
    expect(await idsOf()).toEqual(ids);
  });

  it("record slots that came due during a pause as skipped, and those that a backfill makes runs of as caught up", async () => {
    await begin();
    const task = await stage.task("stopped", { schedule: cron("0 * * * *"), group: "stopped" });
    await stage.store.tasks.pause("stopped", change(stage.nowMs));
    await stage.store.tasks.resume("stopped", change(at(3)));
    expect(await slotsOf(task)).toMatchObject([{ type: "slot.skipped", slot: at(1), until: at(3), slots: 3 }]);

    const range = { fromMs: at(-3), toMs: at(-2), perSecond: null, reverse: false, missed: false };
    const request = { kind: "backfill" as const, filter: { task: "stopped" }, author: "test", reason: "", range };
    const id = await stage.store.operations.begin(request, "token", stage.nowMs);
    for (let ms = 0; (await stage.store.operations.find(id)).endedMs === null; ms += 500)
      await stage.store.operations.step(at(3) + ms, id);
    expect((await slotsOf(task)).slice(0, 2)).toEqual([
      { type: "slot.caught-up", hasRun: true, slot: at(-3), why: `backfill ${id}` },
      { type: "slot.caught-up", hasRun: true, slot: at(-2), why: `backfill ${id}` },
    ]);
  });

  it("record what was changed, by whom, and both versions, but no definition", async () => {
    const { store, nowMs } = stage;
    const secret = "canary-definition";
    await stage.task("first-of-gpu", { group: "gpu" });
    await begin();
    await stage.task("billing/settle", { description: secret });
    await stage.task("billing/settle", { description: `${secret} 2` });
    await store.tasks.pause("billing/settle", { author: "ann", reason: "too many", nowMs });
    await store.tasks.remove("billing/settle", { author: "bob", reason: "", nowMs });
    await store.calendars.set("cn", { zone: "UTC", weekend: [], holidays: ["2026-10-01"] }, change(nowMs));
    await store.calendars.set("cn", { zone: "UTC", weekend: [], holidays: ["2026-10-02"] }, change(nowMs));
    await store.groups.limit("gpu", 5, change(nowMs));
    await store.groups.limit("gpu", null, change(nowMs));
    const rule = { kind: "ended" } as const;
    await store.alarms.createRule("billing/over", rule, change(nowMs));
    await store.alarms.replaceRule("billing/over", { ...rule, description: secret }, change(nowMs), null);
    await store.alarms.silence({ rule: "billing/over", task: null, untilMs: nowMs + hourMs }, change(nowMs));
    await store.alarms.removeRule("billing/over", change(nowMs), null);
    const told = (await read()).map(({ type, told }) => {
      const { act, named, by, why, before, after } = told as ChangeContent;
      return [type, act, named, by, why, before, after];
    });
    expect(told).toEqual([
      ["task.changed", "create", "billing/settle", "test", "", null, 1],
      ["task.changed", "edit", "billing/settle", "test", "", 1, 2],
      ["task.changed", "pause", "billing/settle", "ann", "too many", 2, 2],
      ["task.changed", "remove", "billing/settle", "bob", "", 2, null],
      ["calendar.changed", "create", "cn", "test", "", null, 1],
      ["calendar.changed", "edit", "cn", "test", "", 1, 2],
      ["limit.changed", "limit", "gpu", "test", "", null, 5],
      ["limit.changed", "limit", "gpu", "test", "", 5, null],
      ["alarm-rule.changed", "create", "billing/over", "test", "", null, 1],
      ["alarm-rule.changed", "edit", "billing/over", "test", "", 1, 2],
      ["alarm-rule.changed", "remove", "billing/over", "test", "", 2, null],
    ]);
    expect(JSON.stringify(await read())).not.toContain(secret);
    const audited = await store.audit.list({ about: "task", named: "billing/settle" }, 1e9, 10);
    const entries = (await read()).filter(({ type }) => type === "task.changed");
    expect(entries.map(({ told }) => (told as ChangeContent).entry)).toEqual(
      audited.map(({ entryId }) => entryId).reverse(),
    );
  });

  it("of many tasks that code defines at once, and of their schedules, name each", async () => {
    await begin();
    const schedule = defineTask("code/a:nightly", { of: "code/a", schedule: cron("0 0 * * *") });
    const definitions = ["code/a", "code/b"].map((name) => defineTask(name));
    await stage.store.tasks.saveAll(definitions, change(stage.nowMs), asCode);
    await stage.store.tasks.saveSchedules("code/a", [schedule], change(stage.nowMs));
    expect((await changes()).sort()).toEqual([
      ["schedule.changed", "create", schedule.name],
      ["task.changed", "create", "code/a"],
      ["task.changed", "create", "code/b"],
    ]);
  });

  it("match by type, task, namespace, group and labels", async () => {
    await begin();
    const task = await stage.task("pay/out", {
      group: "bank",
      runLabels: { owner: "ann" },
      schedule: cron("0 * * * *"),
    });
    await stage.plan([task], session, at(1));
    await stage.enqueue(await stage.task("plain"), { labels: { owner: "ann" } });
    await stage.store.groups.limit("bank", 2, change(stage.nowMs));
    await stage.store.alarms.createRule("pay/over", { kind: "ended" }, change(stage.nowMs));
    const events = await read();
    const matching = (filter: object) =>
      events.filter((event) => isMatch({ types: eventTypes, ...filter }, event)).map(({ type }) => type);
    expect(matching({ types: slotEventTypes })).toEqual(["slot.planned"]);
    expect(matching({ types: changeEventTypes, task: "pay/out" })).toEqual(["task.changed"]);
    expect(matching({ namespace: "pay" })).toEqual(["task.changed", "slot.planned", "alarm-rule.changed"]);
    expect(matching({ namespace: "default" })).toEqual(["task.changed"]);
    expect(matching({ group: "bank" })).toEqual(["task.changed", "slot.planned", "limit.changed"]);
    expect(matching({ labels: { owner: "ann" } })).toEqual(["task.changed", "slot.planned"]);
    expect(matching({ labels: { owner: "bob" } })).toEqual([]);
    expect(matching({ has: (name: string) => name.startsWith("pay/") })).toEqual(["task.changed", "slot.planned"]);
  });
});
