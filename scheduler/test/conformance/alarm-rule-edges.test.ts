import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { releaseOf } from "../../src/task/release.ts";
import { defineTask } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { Rules, summaryMs } from "../support/alarm-rules-stage.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, until } from "../support/store-stage.ts";

const minute = 60_000;

describe.each(everyPostgres())("stored alarm rules at their edges, on $title", (server) => {
  const rules = new Rules();
  beforeAll(() => rules.open(server));
  afterEach(() => rules.clean());
  afterAll(() => rules.stage.close());

  it.each(["maintenance", "quiet"])("events in a time without messages are told when it ends: %s", async (by) => {
    const task = await rules.stage.task(`planned-${by}`, { group: "planned" });
    const [from, to] = [rules.t, rules.t + 60 * minute].map((ms) => new Date(ms).toISOString()) as [string, string];
    const held =
      by === "quiet"
        ? { quiet: { from: from.slice(11, 16), to: to.slice(11, 16), zone: "UTC" } }
        : { maintenance: [{ from, to }] };
    await rules.create(by, { kind: "changed", channels: ["ops"], ...held });
    await rules.look(rules.t + 1);
    const edited = defineTask(`planned-${by}`, { description: "another", group: "planned" });
    await rules.stage.store.tasks.save(edited, null, change(rules.t + 2));
    const endMs = Date.parse(to) - (by === "quiet" ? Date.parse(to) % minute : 0);
    for (const atMs of [rules.t + 3, rules.t + 10 * minute, endMs - 1]) await rules.look(atMs);
    expect([await rules.open_(), await rules.sent(by)]).toEqual([[`${by} planned-${by}`], []]);
    await rules.look(endMs);
    await rules.look(endMs + 1);
    expect([await rules.open_(), await rules.sent(by)]).toEqual([[`${by} planned-${by}`], ["ops raised"]]);
    const [message] = await rules.alarms.outbox(1);
    const { message: body } = await rules.alarms.message(message?.id as number);
    expect(body.subjects.map(({ task: name }) => name)).toEqual([task.definition.name]);
    await rules.look(endMs + summaryMs + 1);
    expect(await rules.open_(), "it is over").toEqual([]);
    await rules.look(endMs + 3 * summaryMs);
    expect(await rules.sent(by)).toEqual(["ops raised", "ops cleared"]);
  });

  /** Creates more tasks than a rule finds at a time, whose names come before those of other tasks. */
  const many = () => {
    const tasks = Array.from({ length: 1_001 }, (_, n) => defineTask(`many-a-${n}`, { group: "many" }));
    return rules.stage.store.tasks.saveAll(tasks, change(rules.t), { release: releaseOf("1", []), graceMs: minute });
  };
  const scope = { tasks: ["many-*"] };

  it.each([true, false])(
    "a task that misses its deadline is found behind many that do not: forecast %s",
    async (forecast) => {
      await many();
      const name = `many-z-${forecast}`;
      const late = await rules.stage.task(name, { group: "many" }, rules.t - 2 * 86_400_000);
      const by = forecast ? "12:05" : "11:59";
      await rules.create("deadline", {
        kind: "deadline",
        by,
        zone: "UTC",
        forecast,
        scope: { tasks: ["many-a-*", name] },
      });
      if (forecast) {
        await rules.ended(late, "succeeded", rules.t - 100_000);
        await rules.stage.rows("update $s.run_history set due_ms = $1, ended_ms = $1 where task_id = $2", [
          rules.t - 86_400_000,
          late.taskId,
        ]);
        await rules.stage.enqueue(late, { dueMs: rules.t + 10 * minute });
      }
      await rules.look(rules.t);
      expect(await rules.open_()).toEqual([`deadline ${name}`]);
      const [{ text } = { text: "" }] = await rules.alarms.open();
      expect(text).toContain(forecast ? "will probably not be done" : "not done by");
    },
  );

  it("a slow run is found behind many runs that are not slow", async () => {
    await many();
    const slow = await rules.stage.task("many-z", { group: "many" });
    await rules.create("slow", { kind: "slow", longer: "10m", times: 3, scope });
    await rules.claimed(slow, rules.t - 11 * minute);
    await rules.stage.rows(
      `insert into $s.run select (jsonb_populate_record(r, jsonb_build_object(
         'id', 1e6 + t.id, 'task_id', t.id, 'started_ms', r.started_ms + $2::bigint))).*
       from $s.run r, $s.task t where r.task_id = $1 and t.name like 'many-a-%' and t.deleted_ms is null`,
      [slow.taskId, 9 * minute],
    );
    await rules.look(rules.t);
    expect(await rules.open_()).toEqual(["slow many-z"]);
  });

  it("a queue that grows within a time shorter than that between two looks is found", async () => {
    const task = await rules.stage.task("grows");
    await rules.create("grows", { kind: "queue", grows: 2, within: "1s" });
    for (const [atMs, count] of [
      [0, 1],
      [2_500, 3],
    ] as const) {
      for (let n = 0; n < count; n++) await rules.stage.enqueue(task, { dueMs: rules.t });
      await rules.look(rules.t + atMs);
    }
    expect(await rules.open_()).toEqual(["grows grows"]);
    expect((await rules.alarms.open())[0]?.text).toBe("4 due runs wait, 3 more than 3s ago");
    for (const atMs of [5_000, 7_500]) await rules.look(rules.t + atMs);
    expect(await rules.open_(), "it grows no more").toEqual([]);
  });

  it("a queue that grows is found although the time between two counts is longer than that of the rule", async () => {
    const task = await rules.stage.task("grows");
    await rules.create("grows", { kind: "queue", grows: 2, within: "1m" });
    for (const [atMs, count] of [
      [0, 1],
      [30 * minute, 3],
      [60 * minute, 3],
    ] as const) {
      for (let n = 0; n < count; n++) await rules.stage.enqueue(task, { dueMs: rules.t });
      await rules.look(rules.t + atMs);
      expect(await rules.open_()).toEqual(atMs === 0 ? [] : ["grows grows"]);
    }
    expect((await rules.alarms.open())[0]?.text).toBe("7 due runs wait, 3 more than 30m ago");
    const counts = await rules.stage.rows("select distinct at_ms from $s.alarm_queue order by 1");
    expect(counts, "earlier counts are deleted").toEqual([
      { at_ms: rules.t + 30 * minute },
      { at_ms: rules.t + 60 * minute },
    ]);
  });

  it("a task that stores no successes is not found as quick by those that it stored before", async () => {
    const [keeps, kept] = [await rules.stage.task("keeps"), await rules.stage.task("kept")];
    await rules.create("quick", { kind: "quick", shorter: "5s" });
    for (const task of [keeps, kept]) await rules.ended(task, "succeeded", rules.t, 1_000);
    await rules.stage.task("kept", { history: "failures" });
    await rules.look(rules.t);
    expect(await rules.open_()).toEqual(["quick keeps"]);
  });

  it("a quick run is found if it ended since the evaluation before, however long that is ago", async () => {
    const [slept, before] = [await rules.stage.task("slept"), await rules.stage.task("before")];
    await rules.create("quick", { kind: "quick", shorter: "5s" });
    await rules.ended(before, "succeeded", rules.t - 20_000, 1_000);
    await rules.ended(before, "succeeded", rules.t - 10_000, 5_000);
    await rules.look(rules.t);
    await rules.ended(slept, "succeeded", rules.t + 1_000, 1_000);
    for (const atMs of [2_000, 15_000]) await rules.ended(slept, "succeeded", rules.t + atMs, 5_000);
    await rules.look(rules.t + 15_000);
    expect(await rules.open_(), "nine seconds apart, of which the first was examined already").toEqual(["quick slept"]);
    await rules.look(rules.t + 30_000);
    expect(await rules.open_()).toEqual([]);
  });

  it("a change whose time is before that of a change that was found is found, once", async () => {
    const save = (description: string, atMs: number) =>
      rules.stage.store.tasks.save(defineTask("stamped", { description }), null, change(rules.t + atMs));
    await rules.stage.task("stamped");
    await rules.create("changed", { kind: "changed" });
    await save("by a node whose clock is ahead", 900);
    await rules.look(rules.t + 1_000);
    await save("committed after the evaluation", 300);
    for (const atMs of [1_500, 2_000]) await rules.look(rules.t + atMs);
    expect(await rules.alarms.open()).toMatchObject([{ subject: "stamped", count: 2 }]);
    for (const atMs of [7_200_000, 7_300_000]) await rules.look(rules.t + atMs);
    expect(await rules.stage.rows("select from $s.alarm_version"), "none is kept for longer than it matters").toEqual(
      [],
    );
    expect(await rules.open_()).toEqual([]);
  });

  it("a change that an older version of Carillon found, which kept no versions, is not found again", async () => {
    const save = (description: string, atMs: number) =>
      rules.stage.store.tasks.save(defineTask("upgraded", { description }), null, change(rules.t + atMs));
    await rules.stage.task("upgraded");
    await rules.create("changed", { kind: "changed" });
    await save("before the upgrade", 100);
    await rules.look(rules.t + 200);
    await rules.stage.rows("delete from $s.alarm_version");
    await rules.look(rules.t + 300);
    expect(await rules.alarms.open()).toMatchObject([{ subject: "upgraded", count: 1 }]);
    await save("after the upgrade", 400);
    for (const atMs of [500, 600]) await rules.look(rules.t + atMs);
    expect(await rules.alarms.open()).toMatchObject([{ subject: "upgraded", count: 2 }]);
  });

  it("queues are counted while no rule is locked; a rule that is changed meanwhile keeps its alarms", async () => {
    const task = await rules.stage.task("counted");
    const content = { kind: "queue", more: 0 } as const;
    await rules.create("counted", content);
    await rules.stage.enqueue(task, { dueMs: rules.t });
    await rules.look(rules.t);
    const [other, client] = [await rules.stage.another(), await rules.stage.sql.connect()];
    try {
      await client.query(`begin; lock table ${rules.stage.schema}.run in access exclusive mode`);
      const looking = other.alarms.follow(summaryMs, rules.t + 1);
      await until("the count waits for the table", async () => {
        const waiting = await rules.stage.rows(
          "select from pg_locks where relation = '$s.run'::regclass and not granted",
        );
        return waiting.length === 1;
      });
      await rules.alarms.replaceRule("counted", { ...content, more: 1 }, change(rules.t), 1);
      await client.query("commit");
      await looking;
    } finally {
      client.release(true);
    }
    expect(await rules.open_()).toEqual(["counted counted"]);
    await rules.look(rules.t + 2);
    expect(await rules.open_(), "by the rule as it is now").toEqual([]);
  });

  it("an overdue run is found behind a hundred older ones of its group", async () => {
    const others = await rules.stage.task("older", { group: "many" });
    const late = await rules.stage.task("many-z", { group: "many" });
    await rules.create("overdue", { kind: "overdue", after: "1m", scope: { tasks: ["many-z"] } });
    await rules.stage.rows("update $s.task set changed_ms = 0 where deleted_ms is null");
    for (let n = 0; n < 101; n++) await rules.stage.enqueue(others, { dueMs: rules.t - 2_000 });
    await rules.stage.enqueue(late, { dueMs: rules.t - 1_000 });
    await rules.look(rules.t + 2 * minute);
    expect(await rules.open_()).toEqual(["overdue many-z"]);
    await rules.gone(late);
    await rules.look(rules.t + 3 * minute);
    expect(await rules.open_(), "the runs of others are not in the scope").toEqual([]);
  });

  /** Inserts copies of a task with the numbers -1, -2 …, because the store's own statements would add them one by one. */
  const copies = async ({ taskId }: TaskRecord, count: number) => {
    const { stage } = rules;
    const [{ columns } = { columns: "" }] = await stage.rows<{ columns: string }>(
      `select string_agg(quote_ident(attname), ', ') as columns from pg_attribute
       where attrelid = '$s.task'::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
    );
    await stage.rows(
      `insert into $s.task (${columns}) overriding system value select ${columns} from (
         select (jsonb_populate_record(t, jsonb_build_object('id', -n, 'name', 'others-' || n))).*
         from $s.task t, generate_series(1, $2) n where t.id = $1) x`,
      [taskId, count],
    );
    await stage.rows("analyze $s.task");
  };

  it("overdue runs are found although thousands of tasks with lower numbers are in the scope", async () => {
    const { stage } = rules;
    const late = await stage.task("late", { group: "many" });
    await copies(late, 6_000);
    await rules.create("overdue", { kind: "overdue", after: "1m" });
    await stage.rows("update $s.task set changed_ms = 0 where deleted_ms is null");
    for (let n = 0; n < 101; n++) await stage.enqueue(late, { dueMs: rules.t - 1_000 });
    await rules.look(rules.t + 2 * minute);
    expect(await rules.alarms.open(), "for a worker").toMatchObject([{ subject: "late", count: 100 }]);
    await stage.rows(
      `insert into $s.run select (jsonb_populate_record(r, jsonb_build_object('id', 1000000 - t.id, 'task_id', t.id))).*
       from $s.run r, $s.task t where r.id = (select min(id) from $s.run) and t.id between -1000 and -1`,
    );
    await rules.gone(late);
    await stage.rows("update $s.run set state = 0, gate = 1");
    await rules.look(rules.t + 3 * minute);
    const open = await stage.rows<{ subject: string }>("select subject from $s.alarm where cleared_ms is null");
    expect(open, "for their tasks' own limits").toHaveLength(1_000);
    for (const table of ["run", "task"])
      await stage.rows(`delete from $s.${table} where ${table === "run" ? "true" : "id < 0"}`);
  });

  it("a run that waits for its task's own limit is found behind those of a thousand other tasks", async () => {
    const { stage } = rules;
    const first = await stage.task("first", { group: "many" });
    await copies(first, 1_001);
    const late = await stage.task("last", { group: "many" });
    await rules.create("overdue", { kind: "overdue", after: "1m", scope: { tasks: ["last"] } });
    await stage.rows("update $s.task set changed_ms = 0 where deleted_ms is null");
    await stage.enqueue(late, { dueMs: rules.t - 1_000 });
    await stage.rows(
      `insert into $s.run select (jsonb_populate_record(r, jsonb_build_object('id', 1000000 - t.id, 'task_id', t.id))).*
       from $s.run r, $s.task t where r.task_id = $1 and t.id < 0`,
      [late.taskId],
    );
    await stage.rows("update $s.run set state = 0, gate = 1");
    await rules.look(rules.t + 2 * minute);
    expect(await rules.open_()).toEqual(["overdue last"]);
    await rules.gone(late);
    await rules.look(rules.t + 3 * minute);
    expect(await rules.open_()).toEqual([]);
    for (const table of ["run", "task"])
      await stage.rows(`delete from $s.${table} where ${table === "run" ? "true" : "id < 0"}`);
  });
});
