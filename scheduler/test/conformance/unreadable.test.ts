import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { Planner, type PlannerOptions } from "../../src/engine/planner.ts";
import { type Carillon, carillon } from "../../src/index.ts";
import { cron, every } from "../../src/schedule/schedule.ts";
import { Definitions } from "../../src/store/definitions.ts";
import { StoreClock } from "../../src/store/store-clock.ts";
import { defineTask } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { everyPostgres } from "../support/servers.ts";
import { asCode, change, openStage, recordingLog, type Stage, until } from "../support/store-stage.ts";
import { WebhookReceiver } from "../support/webhook-receiver.ts";

const many = 2_001;
const zone = "Mars/Olympus_Mons";

/** Tests definitions that a newer node has stored and this node cannot read, because they name a time zone of a newer tzdata. */
describe.each(everyPostgres())("tasks that a node cannot read, on $title", (server) => {
  let stage: Stage;
  let tower: Carillon | undefined;
  const receiver = new WebhookReceiver();
  const intl = Intl.DateTimeFormat;
  /** How many times the code under test has asked for the unknown time zone. */
  let lookups = 0;

  beforeAll(async () => {
    stage = await openStage(server);
    const counting: ProxyHandler<typeof intl> = {
      construct(target, [locales, options]) {
        if (options?.timeZone === zone) lookups++;
        return new target(locales, options);
      },
    };
    Intl.DateTimeFormat = new Proxy(intl, counting);
  });
  afterEach(async () => {
    await tower?.stop();
    tower = undefined;
  });
  afterAll(async () => {
    Intl.DateTimeFormat = intl;
    await receiver.close();
    await stage.close();
  });

  /** Stores tasks in a form that only another version can read, all due before any other task. */
  async function store(prefix: string, count: number, schedule: object): Promise<TaskRecord[]> {
    const tasks = Array.from({ length: count }, (_, at) =>
      defineTask(`${prefix}-${String(at).padStart(4, "0")}`, { schedule: cron("0 0 1 1 *"), group: "newer" }),
    );
    const records = await stage.store.tasks.saveAll(tasks, change(stage.nowMs), asCode);
    const ids = records.map(({ taskId }) => taskId);
    await stage.rows(
      `with made as (update $s.task set definition = jsonb_set(definition, '{schedule}', (definition->'schedule') || $2::jsonb)
         where id = any($1) returning id)
       update $s.plan set next_slot_ms = $3 from made where task_id = made.id`,
      [ids, JSON.stringify(schedule), stage.nowMs - 60_000],
    );
    return records;
  }

  /** Stores a new version of the definitions, as an edit by a newer node does. */
  const edit = (taskIds: number[], schedule: object) =>
    stage.rows(
      `with made as (
         update $s.task set version = version + 1, changed_ms = $3,
                definition = jsonb_set(definition, '{schedule}', (definition->'schedule') || $2::jsonb)
         where id = any($1) returning id, version, definition),
       kept as (insert into $s.task_version (task_id, version, definition, author, reason, changed_ms)
                select id, version, definition, 'newer', '', $3 from made)
       update $s.plan p set version = made.version from made where p.task_id = made.id`,
      [taskIds, JSON.stringify(schedule), Date.now()],
    );

  it(`${many} of them are tried once, delay no other task, and raise an alarm until they can be read`, async () => {
    const unread = await store("olympus", many, { zone });
    const ids = unread.map(({ taskId }) => taskId);
    const { log, lines } = recordingLog();
    const channels = { ops: { webhook: await receiver.listen(), allow: ["127.0.0.0/8"] } };
    const rules = { unfired: [], late: [] };
    tower = carillon({
      store: server.url,
      schema: stage.schema,
      handleSignals: false,
      sessionTimeout: 6_000,
      metrics: true,
      log,
      alarms: { channels, rules, summary: "2s" },
    });
    const fired: number[] = [];
    tower.task("good", { schedule: every("200ms") }, ({ due }) => void fired.push(due.getTime()));
    lookups = 0;
    await tower.start();
    await until("it fires", () => fired.length >= 25);

    // The planner and the catch-up planner have retried these tasks many times, but may look up the zone only once for each task. The start may
    // look it up once more.
    expect([many, many + 1]).toContain(lookups);
    const looked = lookups;
    const slots = [...fired].sort((a, b) => a - b);
    expect(slots).toEqual(slots.map((_, at) => (slots[0] as number) + at * 200));
    const { missed } = await stage.one(
      "select coalesce(sum(missed), 0)::int as missed from (select missed from $s.tally union all select missed from $s.tally_delta) x",
    );
    expect(missed).toBe(0);
    const told = lines.filter(({ message }) => message.includes("cannot plan"));
    expect(told.reduce((sum, { fields }) => sum + Number(fields.tasks), 0)).toBe(many);
    expect(told.length).toBeLessThan(100);
    expect((await tower.metrics()).text).toContain(`carillon_tasks_unreadable ${many}\n`);

    // The failure is not recorded in the store, because another node may be able to read these tasks.
    const [untouched] = await stage.rows(
      `select count(*)::int as count from $s.plan p join $s.task t on t.id = p.task_id
       where t.id = any($1) and p.next_slot_ms = $2 and not p.paused and t.version = 1 and t.paused_ms is null`,
      [ids, stage.nowMs - 60_000],
    );
    expect(untouched?.count).toBe(many);

    await until("the alarm", () => receiver.kinds("unreadable").length > 0);
    const [alarm] = receiver.posted.filter(({ body }) => body.rule === "unreadable");
    expect(alarm?.body).toMatchObject({ kind: "raised", total: many });
    const open = (await stage.store.alarms.open()).filter(({ rule }) => rule === "unreadable");
    expect(open).toHaveLength(101);
    expect(open.find(({ subject }) => subject === "olympus-0000")?.text).toMatch(/cannot plan it: .*Mars/);
    expect(open.find(({ subject }) => subject === "")?.text).toContain(`cannot plan ${many} tasks`);

    // After an edit the planner retries a task at once, and catches up on the slots of the last minute by the task's misfire policy.
    await edit(ids.slice(0, 1), { zone: "UTC", expression: "* * * * * *" });
    const planned = () => stage.one("select count(*)::int as count from $s.slot where task_id = $1", [ids[0]]);
    await until("its slots are planned", async () => Number((await planned()).count) > 0);
    await edit(ids.slice(1), { zone: "UTC" });
    await until("all clear", () => receiver.kinds("unreadable").includes("cleared"));
    expect((await tower.metrics()).text).toContain("carillon_tasks_unreadable 0\n");
    expect(lookups).toBe(looked);
  });

  it("a node that can read them plans them, and one that cannot plans all other tasks", async () => {
    const [record] = (await store("elysium", 1, { zone, expression: "* * * * * *" })) as [TaskRecord];
    await stage.rows("update $s.plan set next_slot_ms = null where task_id <> $1", [record.taskId]);
    const plain = await stage.task("plain", { schedule: every("1s") });
    const storeClock = new StoreClock(systemClock);
    storeClock.sample(systemClock.monotonic(), stage.nowMs, systemClock.monotonic());
    const sessionId = await stage.session();
    const plannerOf = (definitions: Definitions) =>
      new Planner({
        store: stage.store,
        membership: { sessionId, term: () => null, node: "here" },
        definitions,
        clock: systemClock,
        storeClock,
        log: silentLog,
        horizonMs: 15_000,
        onAccepted: () => undefined,
      } as unknown as PlannerOptions);
    const older = plannerOf(new Definitions(stage.store.tasks));
    const newer = plannerOf(
      new Definitions({
        byIds: async (ids) => {
          const text = JSON.stringify(await stage.store.tasks.byIds(ids));
          return JSON.parse(text.replaceAll(zone, "UTC")) as TaskRecord[];
        },
      }),
    );
    const slots = async ({ taskId }: TaskRecord) =>
      Number((await stage.one("select count(*)::int as count from $s.slot where task_id = $1", [taskId])).count);
    const untilMs = stage.nowMs + 60_000;
    await older.plan(untilMs, null);
    expect([await slots(record), (await slots(plain)) > 0]).toEqual([0, true]);
    expect(older.setAside()).toContainEqual({ taskId: record.taskId, version: 1 });
    await newer.plan(untilMs, null);
    expect(await slots(record)).toBeGreaterThan(0);
    expect(newer.setAside()).toEqual([]);
  });

  it("an unknown kind of schedule is not mistaken for another kind", async () => {
    const [record] = (await store("lunar", 1, { type: "lunar" })) as [TaskRecord];
    await stage.rows("update $s.plan set next_slot_ms = null where task_id <> $1", [record.taskId]);
    const storeClock = new StoreClock(systemClock);
    storeClock.sample(systemClock.monotonic(), stage.nowMs, systemClock.monotonic());
    const planner = new Planner({
      store: stage.store,
      membership: { sessionId: await stage.session(), term: () => null, node: "here" },
      definitions: new Definitions(stage.store.tasks),
      clock: systemClock,
      storeClock,
      log: silentLog,
      onAccepted: () => undefined,
    } as unknown as PlannerOptions);
    await planner.plan(stage.nowMs, null);
    expect(planner.unreadableFound()).toMatchObject([
      { subject: "lunar-0000", text: expect.stringContaining('no schedule of the kind "lunar"') },
    ]);
    const plan = await stage.one("select next_slot_ms from $s.plan where task_id = $1", [record.taskId]);
    expect(plan).toEqual({ next_slot_ms: stage.nowMs - 60_000 });
  });
});
