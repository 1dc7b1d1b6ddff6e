import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AlarmRule } from "../../src/alarms/alarms.ts";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import { defineTask } from "../../src/task/task.ts";
import { ApiStage } from "../support/api-stage.ts";
import { postgres } from "../support/servers.ts";
import { change, recordingLog, until } from "../support/store-stage.ts";
import { WebhookReceiver } from "../support/webhook-receiver.ts";

const receiver = new WebhookReceiver();
const stage = new ApiStage();
const { log } = recordingLog();
const thresholds = {
  lateMs: 60_000,
  overdueMs: 60_000,
  unfiredMs: 60_000,
  stuckMs: 60_000,
  leaderlessMs: 30_000,
  summaryMs: 60_000,
};
/** Channels that no sender serves, so that their messages stay in the outbox. */
const channels = { late: ["nowhere"], stuck: ["nowhere"] };
const serving = { handleSignals: false, log, listen: "127.0.0.1:0", worker: false };
let t: number;
const report = (subject: string, rule: AlarmRule = "late") =>
  stage.store.alarms.report([{ rule, subject, count: 1, text: `${subject} was late`, runId: null }], t);
const look = (atMs: number) => stage.store.alarms.look(["late"], thresholds, channels, atMs);
const found = async (subject: string, atMs: number) => {
  await report(subject);
  return look(atMs);
};

beforeAll(async () => {
  await stage.open();
  t = Math.floor((await stage.store.clock()).ms);
  const hook = await receiver.listen();
  const tower = carillon({
    store: postgres().url,
    schema: stage.schema,
    ...serving,
    alarms: {
      channels: {
        ops: { webhook: `${hook}/canary-path?key=canary-hook`, secret: "canary-secret" },
        mail: {
          smtp: "smtp://me:canary-mail@127.0.0.1:1",
          from: "a@example.com",
          to: ["ops@example.com", "b@example.com"],
        },
      },
      rules: {
        failed: ["ops"],
        exhausted: [],
        late: [],
        overdue: [],
        unfired: [],
        stuck: [],
        leaderless: ["ops", "mail"],
        clock: [],
        rewound: [],
        unreadable: [],
        paused: [],
        ended: [],
        recovery: [],
      },
    },
  });
  stage.servers.push(tower);
  await tower.start();
});
afterAll(async () => {
  await stage.close();
  await receiver.close();
});

const second = () => stage.client("operator", stage.servers[1]);

describe("alarms over the API", () => {
  it("list the node's rules and channels without secrets, and are empty if the node has none", async () => {
    expect((await second().listAlarmChannels()).channels).toEqual([
      {
        name: "ops",
        kind: "webhook",
        to: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
        signed: true,
        rules: ["failed", "leaderless"],
      },
      { name: "mail", kind: "mail", to: "ops@example.com, b@example.com", signed: false, rules: ["leaderless"] },
    ]);
    const { rules, summaryMs } = await second().listAlarmRules();
    expect([summaryMs, rules.length]).toEqual([60_000, 13]);
    expect(rules).toContainEqual({
      rule: "leaderless",
      words: "no node leads",
      afterMs: 30_000,
      channels: ["ops", "mail"],
    });
    expect(await stage.client("viewer").listAlarmRules()).toEqual({ summaryMs: null, rules: [], stored: [] });
    expect(await stage.client("viewer").listAlarmChannels()).toEqual({ channels: [] });
    await expect(stage.client("operator").testAlarmChannel({ channel: "ops" })).rejects.toMatchObject({
      code: "ALARM_UNKNOWN",
    });
  });

  it("test a channel through the normal delivery path, and show each attempt with its node and error", async () => {
    // Only the leader checks rules and sends messages, so the node without channels is stopped.
    await stage.server.stop();
    stage.store = (await (stage.servers[1] as Carillon).open()).store;
    receiver.status = 500;
    const made = await second().testAlarmChannel({ channel: "ops", reason: "is it on?" });
    expect(made).toMatchObject({ channel: "ops", kind: "test", rule: "test" });
    const message = () => second().getAlarmMessage({ message: made.message });
    await until("it was refused", async () => (await message()).tries.length === 1);
    receiver.status = 200;
    const taken = async () => {
      await stage.rows("update $s.alarm_outbox set next_ms = 0 where sent_ms is null and next_ms > 0");
      return (await message()).state === "sent";
    };
    await until("it was taken", taken);
    const { tries, text, error } = await message();
    expect(tries.length).toBeGreaterThan(1);
    expect(tries[0]).toMatchObject({ attempt: 1, node: stage.servers[1]?.node, error: expect.stringContaining("500") });
    expect([tries.at(-1)?.error, error, text]).toEqual([null, null, expect.stringContaining("reach this place")]);
    expect(receiver.posted.at(-1)?.body).toMatchObject({ kind: "test", rule: "test", subjects: [] });
    expect((await second().listAlarmMessages({ limit: 1 })).items).toMatchObject([{ message: made.message }]);
    expect(JSON.stringify([await message(), await second().listAlarmChannels()])).not.toContain("canary");
    await expect(second().getAlarmMessage({ message: 10 ** 9 })).rejects.toMatchObject({ code: "ALARM_UNKNOWN" });
  });
});

describe("acknowledging and silencing alarms", () => {
  // Replaces the node with alarms by one without: a leader with alarms would evaluate the rules at its own times and raise alarms itself.
  beforeAll(async () => {
    await (stage.servers[1] as Carillon).stop();
    const tower = carillon({ store: postgres().url, schema: stage.schema, ...serving });
    stage.servers[1] = tower;
    await tower.start();
    stage.store = (await tower.open()).store;
  });

  it("lists open alarms; an acknowledged alarm sends nothing until it has cleared and is raised again", async () => {
    expect(await found("one", t)).toBe(1);
    expect(await found("two", t + 1_000)).toBe(0);
    const { items, next } = await second().listAlarms({ limit: 1 });
    expect([items.length, next]).toEqual([1, expect.any(String)]);
    const [other] = (await second().listAlarms({ limit: 1, cursor: next as string })).items;
    expect(new Set([items[0]?.task, other?.task])).toEqual(new Set(["one", "two"]));
    expect(await second().acknowledgeAlarm({ rule: "late", task: "two", reason: "known" })).toEqual({
      acknowledged: 1,
    });
    const [two] = (await second().listAlarms({ task: "two" })).items;
    expect(two?.acknowledged).toMatchObject({ by: expect.stringContaining("operator"), why: "known" });
    await expect(second().acknowledgeAlarm({ rule: "late", task: "three" })).rejects.toMatchObject({
      code: "ALARM_UNKNOWN",
    });
    // The event from before the acknowledgement is still reported in a summary; later events are not.
    expect(await look(t + 61_000)).toBe(1);
    t += 62_000;
    expect(await found("two", t)).toBe(0);
    expect(await look(t + 130_000), "nothing but what is known").toBe(0);
    t += 400_000;
    expect(await look(t), "all clear").toBe(1);
    t += 1_000;
    expect(await found("two", t), "it comes again").toBe(1);
    expect((await second().listAlarms({ task: "two" })).items).toMatchObject([{ acknowledged: null }]);
  });

  it("a silence holds back matching alarms until it ends, then sends those that are still open", async () => {
    t += 1_000_000;
    await look(t);
    t += 100_000;
    await look(t);
    expect((await second().listAlarms()).items).toEqual([]);
    // A silence begins at the store's time, which is behind the time `t` of this test, so it must be long enough to include `t`.
    await expect(second().silenceAlarms({ for: "40d" })).rejects.toMatchObject({ code: "OPTION_INVALID" });
    await stage.store.tasks.save(defineTask("noisy", {}), null, change(t));
    await expect(second().silenceAlarms({ task: "noisi", for: "1h" })).rejects.toMatchObject({
      code: "TASK_UNKNOWN",
      message: expect.stringContaining('there is no task "noisi"; did you mean "noisy"?'),
    });
    const elsewhere = second().silenceAlarms({ task: "other/noisy", for: "1h" });
    await expect(elsewhere).rejects.toMatchObject({ message: expect.not.stringContaining("did you mean") });
    expect((await second().listSilences()).silences).toEqual([]);
    const made = await second().silenceAlarms({
      rule: "late",
      task: "noisy",
      for: "29d",
      reason: "it is being mended",
    });
    expect((await second().listSilences()).silences).toEqual([made]);
    expect(await found("noisy", t)).toBe(0);
    expect(await found("loud", t + 1)).toBe(1);
    const [loud] = await stage.rows<{ body: { subjects: object[]; silenced: number } }>(
      "select body from $s.alarm_outbox where kind = 'raised' order by id desc limit 1",
    );
    expect(loud?.body).toMatchObject({ subjects: [{ task: "loud" }], silenced: 1 });
    expect((await second().listAlarms({ task: "noisy" })).items).toMatchObject([{ silencedUntil: made.until }]);
    await second().endSilence({ silence: made.silence, reason: "mended" });
    await expect(second().endSilence({ silence: made.silence })).rejects.toMatchObject({ code: "ALARM_UNKNOWN" });
    expect((await second().listSilences()).silences).toEqual([]);
    expect(await found("noisy", t + 70_000), "in the next summary").toBe(1);
    const audit = await stage.client("admin", stage.servers[1]).listAudit({ about: "alarm" });
    expect(audit.items.map(({ act }) => act)).toEqual(["unsilence", "silence", "acknowledge", "test"]);
  });
});
