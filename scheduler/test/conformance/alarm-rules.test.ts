import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { RuleContent } from "../../src/alarms/stored-rules.ts";
import { every } from "../../src/schedule/schedule.ts";
import { releaseOf } from "../../src/task/release.ts";
import { defineTask } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { Rules, summaryMs } from "../support/alarm-rules-stage.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, settlement } from "../support/store-stage.ts";

const minute = 60_000;

interface Case {
  title: string;
  content: RuleContent;
  /**
   * Makes the rule apply to the task `bad`, and only just not to `fine`.
   * @returns the time at which the rule is evaluated, in ms
   */
  begin: (stage: Rules, task: Record<"bad" | "fine", TaskRecord>) => Promise<number>;
  /** Makes the rule no longer apply to the task `bad`. */
  end: (stage: Rules, bad: TaskRecord, atMs: number) => Promise<unknown>;
  text: RegExp;
  options?: { bad?: object; fine?: object };
}

const cases: Case[] = [
  {
    title: "failed",
    content: { kind: "failed", failures: 2, of: 3 },
    async begin(rules, { bad, fine }) {
      for (const outcome of ["failed", "succeeded", "failed"] as const) await rules.ended(bad, outcome, rules.t);
      await rules.ended(fine, "failed", rules.t);
      return rules.t + 1;
    },
    async end(rules, bad, atMs) {
      await rules.ended(bad, "succeeded", atMs);
      await rules.ended(bad, "succeeded", atMs);
    },
    text: /^2 of the last 3 runs failed$/,
  },
  {
    title: "slow, by the task's own usual",
    content: { kind: "slow", times: 3 },
    async begin(rules, { bad, fine }) {
      for (const task of [bad, fine]) {
        for (let n = 5; n > 0; n--) await rules.ended(task, "succeeded", rules.t - n * 100_000, 30_000);
      }
      await rules.claimed(bad, rules.t - 91_000);
      await rules.claimed(fine, rules.t - 89_000);
      return rules.t;
    },
    end: (rules, bad) => rules.gone(bad),
    text: /^a run has been under way for 1m31s; 90 % of its runs take at most 30s$/,
  },
  {
    title: "slow, by a span",
    content: { kind: "slow", longer: "10s" },
    async begin(rules, { bad, fine }) {
      await rules.claimed(bad, rules.t - 10_001);
      await rules.claimed(fine, rules.t - 10_000);
      return rules.t;
    },
    end: (rules, bad) => rules.gone(bad),
    text: /^a run has been under way for 10s$/,
  },
  {
    // The stage's clock is at 12:00 UTC, which is 20:00 in Shanghai.
    title: "deadline",
    content: { kind: "deadline", by: "20:01", zone: "Asia/Shanghai", forecast: false },
    async begin(rules, { fine }) {
      await rules.ended(fine, "succeeded", rules.t + 1);
      return rules.t + minute;
    },
    end: (rules, bad, atMs) => rules.ended(bad, "succeeded", atMs),
    text: /^not done by 20:01 Asia\/Shanghai$/,
  },
  {
    title: "deadline, forecast by a run under way",
    content: { kind: "deadline", by: "14:00", zone: "Europe/Berlin" },
    async begin(rules, { bad, fine }) {
      const yesterday = rules.t - 86_400_000;
      for (const task of [bad, fine])
        for (let n = 5; n > 0; n--) await rules.ended(task, "succeeded", yesterday - n * 600_000, 600_000);
      // 14:00 in Berlin is 12:00 UTC, the stage's time, in summer, and 13:00 UTC in winter.
      const byMs = rules.t + (new Date(rules.t).toLocaleString("en", zoned).endsWith("+2") ? 0 : 3_600_000);
      await rules.claimed(bad, byMs - 9 * minute, byMs - 9 * minute);
      await rules.claimed(fine, byMs - 11 * minute, byMs - 11 * minute);
      return byMs - 5 * minute;
    },
    end: async (rules, bad, atMs) => {
      await rules.gone(bad);
      await rules.ended(bad, "succeeded", atMs);
    },
    text: /^will probably not be done by 14:00 Europe\/Berlin: it has been under way for 4m, and usually takes 10m$/,
  },
  {
    title: "unfired",
    content: { kind: "unfired", after: "2m" },
    options: { bad: { schedule: every("1h") }, fine: { schedule: every("1h") } },
    async begin(rules, { bad, fine }) {
      const at = (bad.nextSlotMs as number) + 2 * minute + 1;
      await rules.stage.rows("update $s.plan set next_slot_ms = $2 where task_id = $1", [fine.taskId, at - 2 * minute]);
      return at;
    },
    end: (rules, bad) => rules.stage.rows("update $s.plan set next_slot_ms = 9e12 where task_id = $1", [bad.taskId]),
    text: /^a slot came due and was not planned: /,
  },
  {
    title: "overdue",
    content: { kind: "overdue", after: "2m" },
    async begin(rules, { bad, fine }) {
      await rules.stage.rows("update $s.task set changed_ms = 0 where id = any($1)", [[bad.taskId, fine.taskId]]);
      await rules.stage.enqueue(bad, { dueMs: rules.t });
      await rules.stage.enqueue(fine, { dueMs: rules.t + 1_000 });
      return rules.t + 2 * minute + 1_000;
    },
    end: (rules, bad) => rules.gone(bad),
    text: /^the oldest is due since /,
  },
  {
    title: "stuck",
    content: { kind: "stuck", after: "2m" },
    async begin(rules, { bad, fine }) {
      await rules.claimed(bad, null);
      await rules.claimed(fine, null, rules.t + 1_000);
      return rules.t + 2 * minute + 1_000;
    },
    end: (rules, bad) => rules.gone(bad),
    text: /^claimed, and never started$/,
  },
  {
    title: "paused",
    content: { kind: "paused" },
    async begin(rules, { bad, fine }) {
      await rules.stage.rows(
        "update $s.task set paused_ms = 1, paused_failures = 3, paused_why = '3 failed' where id = $1",
        [bad.taskId],
      );
      await rules.stage.store.tasks.pause(fine.definition.name, change(rules.t));
      return rules.t;
    },
    end: (rules, bad) =>
      rules.stage.rows("update $s.task set paused_ms = null, paused_failures = null where id = $1", [bad.taskId]),
    text: /^3 failed: nothing of it starts/,
  },
  {
    title: "ended",
    content: { kind: "ended" },
    options: { bad: { schedule: every("1h") }, fine: { schedule: every("1h") } },
    async begin(rules, { bad }) {
      await rules.stage.rows("update $s.plan set next_slot_ms = null where task_id = $1", [bad.taskId]);
      return rules.t;
    },
    end: (rules, bad) => rules.stage.rows("update $s.plan set next_slot_ms = 9e12 where task_id = $1", [bad.taskId]),
    text: /^no slot is left/,
  },
  {
    title: "unserved",
    content: { kind: "unserved" },
    options: { bad: { group: "deserted" }, fine: { group: "served" } },
    async begin(rules) {
      await rules.serves("served");
      return rules.t;
    },
    end: (rules) => rules.serves("deserted"),
    text: /^no live worker of the group deserted takes its runs$/,
  },
  {
    title: "queue",
    content: { kind: "queue", more: 2 },
    async begin(rules, { bad, fine }) {
      for (const [task, dueMs] of [
        [bad, 0],
        [bad, 0],
        [bad, 0],
        [fine, 0],
        [fine, 0],
        [fine, minute],
      ] as const)
        await rules.stage.enqueue(task, { dueMs: rules.t + dueMs });
      return rules.t + 1;
    },
    end: (rules, bad) => rules.gone(bad),
    text: /^more than 2 due runs wait$/,
  },
  {
    title: "queue, by its growth",
    content: { kind: "queue", grows: 2, within: "10m" },
    async begin(rules, { bad, fine }) {
      const more = async (task: TaskRecord, count: number) => {
        for (let n = 0; n < count; n++) await rules.stage.enqueue(task, { dueMs: rules.t });
      };
      await more(bad, 1);
      await more(fine, 2);
      await rules.look(rules.t + minute);
      await rules.look(rules.t + 10 * minute);
      // The next count is compared with the first one with these runs, ten minutes before it.
      await more(bad, 3);
      await more(fine, 2);
      await rules.look(rules.t + 11 * minute - 1);
      expect(await rules.open_()).toEqual([]);
      return rules.t + 11 * minute;
    },
    end: (rules, bad) => rules.gone(bad),
    text: /^4 due runs wait, 3 more than 10m ago$/,
  },
  {
    title: "quick, by the task's own usual",
    content: { kind: "quick", times: 3 },
    async begin(rules, { bad, fine }) {
      for (const task of [bad, fine])
        for (let n = 6; n > 0; n--) await rules.ended(task, "succeeded", rules.t - n * 100_000, 30_000);
      await rules.ended(bad, "succeeded", rules.t, 9_900);
      await rules.ended(fine, "succeeded", rules.t, 10_100);
      return rules.t;
    },
    end: (rules, bad, atMs) => rules.ended(bad, "succeeded", atMs + summaryMs, 30_000),
    text: /^a run took only 10s; 90 % of its runs take at least 30s$/,
  },
  {
    title: "quick, by a span",
    content: { kind: "quick", shorter: "5s" },
    async begin(rules, { bad, fine }) {
      // The quick run is not the last one, but it has just ended.
      await rules.ended(bad, "succeeded", rules.t - 1_000, 4_999);
      for (const task of [bad, fine]) await rules.ended(task, "succeeded", rules.t, 5_000);
      return rules.t;
    },
    end: (rules, bad, atMs) => rules.ended(bad, "succeeded", atMs + summaryMs, 5_000),
    text: /^a run took only 5s$/,
  },
  {
    title: "changed",
    content: { kind: "changed" },
    async begin(rules, { bad }) {
      await rules.look(rules.t + 1);
      expect(await rules.open_()).toEqual([]);
      await rules.stage.store.tasks.save(
        defineTask(bad.definition.name, { description: "another", group: "changed" }),
        null,
        { author: "ann", reason: "why not", nowMs: rules.t + 2 },
      );
      return rules.t + 3;
    },
    end: async () => undefined,
    text: /^version 2 by ann: why not$/,
  },
];
const zoned = { timeZone: "Europe/Berlin", timeZoneName: "shortOffset", hour: "numeric" } as const;

describe.each(everyPostgres())("stored alarm rules, on $title", (server) => {
  const rules = new Rules();
  const nobody = change(0);
  beforeAll(() => rules.open(server));
  afterEach(() => rules.clean());
  afterAll(() => rules.stage.close());

  it.each(cases)(
    "are raised, not raised, and cleared again: $title",
    async ({ title, content, begin, end, text, options }) => {
      const name = title.replaceAll(/\W+/g, "-");
      const of = (which: string) => `${name}.${which}`;
      const group = { group: name };
      await rules.create(name, { ...content, channels: ["ops"], scope: { tasks: [`${name}.*`] } });
      // The first evaluation of a rule treats earlier failures as old, so the rule is evaluated once before the tasks exist.
      await rules.look(rules.t - 1);
      const bad = await rules.stage.task(of("bad"), { ...group, ...options?.bad });
      const fine = await rules.stage.task(of("fine"), { ...group, ...options?.fine });
      const at = await begin(rules, { bad, fine });
      await rules.look(at);
      expect(await rules.open_()).toEqual([`${name} ${of("bad")}`]);
      expect((await rules.alarms.open())[0]?.text).toMatch(text);
      // `fine` is removed, because after more time the rule would apply to it too.
      await rules.gone(fine);
      await rules.stage.store.tasks.remove(fine.definition.name, change(at));
      await rules.look(at + 1);
      expect(await rules.sent(name)).toEqual(["ops raised"]);
      await end(rules, bad, at + 2);
      // For events, such as a slot that did not fire, the alarm clears once no new event was found for the summary interval. Runs that ended
      // up to 5 s before an evaluation are examined by the next one, too.
      for (const afterMs of [3, 10_000, summaryMs + 10]) await rules.look(at + afterMs);
      expect(await rules.open_()).toEqual([]);
      await rules.look(at + 2 * summaryMs + 20);
      expect(await rules.sent(name)).toEqual(["ops raised", "ops cleared"]);
    },
  );

  it("a rule also finds slots that the misfire policy skipped", async () => {
    const task = await rules.stage.task("given-up");
    await rules.create("given-up", { kind: "unfired" });
    await rules.look(rules.t);
    await rules.stage.rows("insert into $s.tally_delta (task_id, missed) values ($1, 3)", [task.taskId]);
    await rules.look(rules.t + 1);
    expect(await rules.alarms.open()).toMatchObject([{ rule: "given-up", subject: "given-up", count: 3 }]);
  });

  it("a forecast deadline is reported again once it is missed, and not a third time", async () => {
    const task = await rules.stage.task("report");
    await rules.create("by-noon", {
      kind: "deadline",
      by: "12:05",
      zone: "UTC",
      channels: ["ops"],
      scope: { tasks: ["report"] },
    });
    await rules.stage.enqueue(task, { dueMs: rules.t + 10 * minute });
    await rules.look(rules.t);
    expect((await rules.alarms.open())[0]?.text).toBe(
      "will probably not be done by 12:05 UTC: its next run is due later",
    );
    await rules.look(rules.t + 5 * minute);
    await rules.look(rules.t + 7 * minute);
    expect((await rules.alarms.open())[0]).toMatchObject({ text: "not done by 12:05 UTC", count: 1 });
    expect(await rules.sent("by-noon")).toEqual(["ops raised", "ops summary"]);
    await rules.gone(task);
    const lateMs = rules.t + 8 * minute;
    await rules.stage.enqueue(task, { dueMs: rules.t });
    const [run] = await rules.stage.claim(rules.sessionId, [task], rules.t);
    if (!run) throw new Error("no run was claimed");
    const ended = settlement(run, { kind: "ended", outcome: "succeeded", result: null, error: null }, lateMs);
    await rules.stage.store.claims.settle(rules.sessionId, [ended], lateMs);
    await rules.look(lateMs + 1);
    expect(await rules.open_()).toEqual([]);
    const tomorrow = rules.t + 86_400_000 + 6 * minute;
    await rules.look(tomorrow);
    expect(await rules.open_(), "a run that was due before today's does not meet it").toEqual(["by-noon report"]);
    await rules.ended(task, "succeeded", tomorrow + 1);
    await rules.look(tomorrow + 2);
    expect(await rules.open_()).toEqual([]);
  });

  it.each([
    ["names with *", { tasks: ["scope-a*"] }, ["scope-a", "scope-a_b", "scope-axb"]],
    ["a name whose _ is no wildcard", { tasks: ["scope-a_b"] }, ["scope-a_b"]],
    ["groups", { groups: ["scoped"] }, ["scope-a_b"]],
    ["labels", { labels: { team: "pay" } }, ["scope-c"]],
    ["owners", { owners: ["payments", "none"] }, ["scope-axb"]],
    ["owners and labels", { owners: ["payments"], labels: { team: "pay" } }, []],
    ["the rule's namespace alone", { tasks: ["*scope-*"] }, ["scope-a", "scope-a_b", "scope-axb", "scope-c"]],
    ["every namespace", { tasks: ["*scope-d"], everywhere: true }, ["ours/scope-d"]],
    ["all of them at once", { tasks: ["scope-*"], groups: ["scoped"], labels: { team: "pay" } }, []],
  ])("apply to the tasks in their scope: %s", async (_, scope, found) => {
    await rules.stage.task("scope-a");
    await rules.stage.task("scope-axb", { owner: "payments" });
    await rules.stage.task("scope-a_b", { group: "scoped" });
    await rules.stage.task("scope-c", { runLabels: { team: "pay", owner: "ann" } });
    await rules.stage.task("ours/scope-d", { group: "ours/x" });
    await rules.create("scoped", { kind: "unserved", scope });
    await rules.look(rules.t);
    const some = (await rules.open_()).filter((one) => one.includes("scope-"));
    expect(some.sort()).toEqual(found.map((task) => `scoped ${task}`).sort());
    await rules.alarms.removeRule("scoped", nobody, null);
    expect(await rules.open_(), "a removed rule has no alarm").toEqual([]);
  });

  it("of a namespace apply to its tasks", async () => {
    await rules.stage.task("ours/scope-d", { group: "ours/x" });
    await rules.create("ours/unserved", { kind: "unserved" });
    await rules.look(rules.t);
    expect(await rules.open_()).toEqual(["ours/unserved ours/scope-d"]);
  });

  it("of a namespace find its tasks, however many tasks of others are in the same state", async () => {
    const { stage } = rules;
    const many = Array.from({ length: 1_001 }, (_, n) => defineTask(`a/${n}`, {}));
    const by = { release: releaseOf("1", []), graceMs: minute };
    await stage.store.tasks.saveAll([...many, defineTask("b/held", {})], change(rules.t), by);
    await stage.rows(
      "update $s.task set paused_ms = $1, paused_failures = 3, paused_why = '3 runs failed' where deleted_ms is null",
      [rules.t],
    );
    await rules.create("b/paused", { kind: "paused", channels: ["ops"] });
    await rules.look(rules.t);
    expect(await rules.open_()).toEqual(["b/paused b/held"]);
    await stage.rows("update $s.task set deleted_ms = $1 where name like 'a/%'", [rules.t]);
  });

  it("send nothing in quiet hours, and send alarms that are still open when these end", async () => {
    const [ends, stays] = [await rules.stage.task("quiet-ends"), await rules.stage.task("quiet-stays")];
    await rules.create("quiet", {
      kind: "queue",
      more: 0,
      channels: ["ops"],
      quiet: { from: "20:00", to: "08:00", zone: "Asia/Shanghai" },
    });
    // The stage's clock is at noon UTC, which is 20:00 in Shanghai.
    await rules.stage.enqueue(ends, { dueMs: rules.t });
    await rules.stage.enqueue(stays, { dueMs: rules.t });
    await rules.look(rules.t);
    expect(await rules.open_()).toHaveLength(2);
    await rules.gone(ends);
    await rules.look(rules.t + 6 * 3_600_000);
    await rules.look(rules.t + 12 * 3_600_000 - 1);
    expect(await rules.sent("quiet")).toEqual([]);
    await rules.look(rules.t + 12 * 3_600_000);
    await rules.look(rules.t + 12 * 3_600_000 + 2_500);
    expect(await rules.sent("quiet")).toEqual(["ops raised"]);
    const [message] = await rules.alarms.outbox(1);
    const { message: body } = await rules.alarms.message(message?.id as number);
    expect(body.subjects.map(({ task }) => task)).toEqual(["quiet-stays"]);
    await rules.gone(stays);
  });

  it("send nothing in a maintenance window, and send alarms that are still open when it ends", async () => {
    const task = await rules.stage.task("maintained");
    const [from, to] = [rules.t, rules.t + 10 * minute].map((ms) => new Date(ms).toISOString()) as [string, string];
    await rules.create("maintained", { kind: "queue", more: 0, channels: ["ops"], maintenance: [{ from, to }] });
    await rules.stage.enqueue(task, { dueMs: rules.t });
    for (const atMs of [0, 10 * minute - 1]) await rules.look(rules.t + atMs);
    expect([await rules.sent("maintained"), await rules.open_()]).toEqual([[], ["maintained maintained"]]);
    await rules.look(rules.t + 10 * minute);
    expect(await rules.sent("maintained")).toEqual(["ops raised"]);
    await rules.gone(task);
  });

  it("escalate an unacknowledged incident once if it lasts, and report its end to the same channel", async () => {
    const task = await rules.stage.task("escalates");
    const escalate = { after: "15m", channels: ["boss", "ops"] };
    await rules.create("escalates", { kind: "queue", more: 0, channels: ["ops"], escalate });
    await rules.stage.enqueue(task, { dueMs: rules.t });
    for (const atMs of [0, 14 * minute, 15 * minute, 16 * minute]) await rules.look(rules.t + atMs);
    expect(await rules.sent("escalates")).toEqual(["ops raised", "boss raised"]);
    await rules.gone(task);
    for (const atMs of [17 * minute, 18 * minute]) await rules.look(rules.t + atMs);
    expect((await rules.sent("escalates")).slice(2).sort()).toEqual(["boss cleared", "ops cleared"]);
    await rules.stage.enqueue(task, { dueMs: rules.t });
    await rules.look(rules.t + 20 * minute);
    await rules.alarms.see("escalates", null, change(rules.t + 21 * minute));
    for (const atMs of [36 * minute, 50 * minute]) await rules.look(rules.t + atMs);
    expect((await rules.sent("escalates")).slice(4)).toEqual(["ops raised"]);
    await rules.gone(task);
  });

  it("that are disabled end their alarms without a message; two concurrent evaluations send one message", async () => {
    const task = await rules.stage.task("off");
    await rules.stage.enqueue(task, { dueMs: rules.t });
    const content: RuleContent = { kind: "queue", more: 0, channels: ["ops"] };
    await rules.create("off", content);
    const other = await rules.stage.another();
    await Promise.all([rules.look(rules.t), other.alarms.follow(summaryMs, rules.t)]);
    await rules.look(rules.t + 1);
    expect(await rules.sent("off")).toEqual(["ops raised"]);
    await rules.alarms.replaceRule("off", { ...content, enabled: false }, change(rules.t), 1);
    expect(await rules.open_()).toEqual([]);
    await rules.look(rules.t + 10 * minute);
    expect([await rules.open_(), await rules.sent("off")]).toEqual([[], ["ops raised"]]);
    await rules.gone(task);
  });

  it("that the leader cannot parse raise an alarm themselves, and do not block other rules", async () => {
    const task = await rules.stage.task("other");
    await rules.stage.enqueue(task, { dueMs: rules.t });
    await rules.create("a-newer", { kind: "ended", channels: ["ops"] });
    await rules.create("z-other", { kind: "queue", more: 0 });
    await rules.stage.rows(
      `update $s.alarm_rule set content = '{"kind":"future","channels":["ops"]}' where name = 'a-newer'`,
    );
    await rules.look(rules.t);
    expect((await rules.open_()).sort()).toEqual(["a-newer ", "z-other other"]);
    expect(await rules.sent("a-newer")).toEqual(["ops raised"]);
    await rules.stage.rows(
      `update $s.alarm_rule set content = '{"kind":"ended","channels":["ops"]}' where name = 'a-newer'`,
    );
    for (const atMs of [1, summaryMs + 1]) await rules.look(rules.t + atMs);
    expect([await rules.open_(), await rules.sent("a-newer")]).toEqual([
      ["z-other other"],
      ["ops raised", "ops cleared"],
    ]);
  });

  it("have versions, which continue in a new rule of the same name; each change is in the audit log", async () => {
    const { alarms } = rules;
    const content: RuleContent = { kind: "ended" };
    expect(await rules.create("kept", content)).toMatchObject({ name: "kept", version: 1, content, author: "test" });
    await expect(rules.create("kept", content)).rejects.toMatchObject({ code: "ALARM_RULE_EXISTS" });
    const next = { ...content, description: "of schedules" };
    expect(await alarms.replaceRule("kept", next, change(rules.t), 1)).toMatchObject({ version: 2, content: next });
    expect(await alarms.replaceRule("kept", next, change(rules.t), 2), "it is so already").toMatchObject({
      version: 2,
    });
    for (const changed of [
      () => alarms.replaceRule("kept", content, change(rules.t), 1),
      () => alarms.removeRule("kept", change(rules.t), 1),
    ])
      await expect(changed()).rejects.toMatchObject({ code: "ALARM_RULE_STALE" });
    await alarms.removeRule("kept", change(rules.t), 2);
    await expect(alarms.rule("kept")).rejects.toMatchObject({ code: "ALARM_UNKNOWN" });
    await expect(alarms.removeRule("kept", change(rules.t), null)).rejects.toMatchObject({ code: "ALARM_UNKNOWN" });
    expect(await rules.create("kept", content)).toMatchObject({ version: 3 });
    expect((await alarms.rules()).map(({ name }) => name)).toEqual(["kept"]);
    const entries = await rules.stage.store.audit.list({ about: "alarm", named: "kept" }, 2 ** 31, 9);
    expect(entries.map(({ act }) => act)).toEqual(["create", "remove", "edit", "create"]);
    await expect(alarms.silence({ rule: "kpet", task: null, untilMs: rules.t + 1 }, nobody)).rejects.toMatchObject({
      code: "ALARM_UNKNOWN",
      message: expect.stringContaining('did you mean "kept"?'),
    });
    await alarms.removeRule("kept", nobody, null);
  });
});
