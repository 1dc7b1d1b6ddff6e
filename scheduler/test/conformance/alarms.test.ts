import { createHmac } from "node:crypto";
import type { AddressInfo } from "node:net";
import { SMTPServer } from "smtp-server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AlarmRule } from "../../src/alarms/alarms.ts";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import { at, every } from "../../src/schedule/schedule.ts";
import type { AlarmOptions } from "../../src/settings/alarms/alarms.ts";
import { signedAs } from "../support/rfc9421.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, recordingLog, type Stage, settlement, succeededVerdict, until } from "../support/store-stage.ts";
import { type Posted, WebhookReceiver } from "../support/webhook-receiver.ts";

describe.each(everyPostgres())("alarms, on $title", (server) => {
  let stage: Stage;
  let sessionId: number;
  const rules: AlarmRule[] = ["failed", "exhausted", "late", "overdue", "unfired", "stuck", "leaderless", "clock"];
  const thresholds = { lateMs: 6e4, overdueMs: 6e4, unfiredMs: 6e4, stuckMs: 6e4, leaderlessMs: 3e4, summaryMs: 6e4 };
  const everywhere = Object.fromEntries(rules.map((rule) => [rule, ["ops", "mail"]]));
  const look = (nowMs: number, some: AlarmRule[] = ["failed", "exhausted"], channels = everywhere) =>
    stage.store.alarms.look(some, thresholds, channels, nowMs);
  const written = async (rule: AlarmRule) => {
    const rows = await stage.rows<{ channel: string; kind: string; body: Posted["body"] }>(
      "select channel, kind, body from $s.alarm_outbox where rule = $1 order by id",
      [rule],
    );
    return rows.map(({ channel, kind, body }) => `${channel} ${kind} ${body.total}`);
  };
  const open = async () => (await stage.store.alarms.open()).map(({ rule, subject, count }) => [rule, subject, count]);
  const end = async (
    task: Awaited<ReturnType<Stage["task"]>>,
    outcome: "failed" | "succeeded",
    count: number,
    nowMs = stage.nowMs,
  ) => {
    const plain = { payload: null, dueMs: nowMs, key: null, priority: null, source: "enqueue" as const };
    await stage.store.runs.enqueue(
      Array.from({ length: count }, () => ({ taskId: task.taskId, ...plain })),
      nowMs,
    );
    const runs = await stage.claim(sessionId, [task], nowMs, count);
    const error = outcome === "failed" ? JSON.stringify({ message: `no route to bank` }) : null;
    await stage.store.claims.settle(
      sessionId,
      runs.map((run) => settlement(run, { kind: "ended", outcome, result: null, error }, nowMs)),
      nowMs,
    );
  };

  beforeAll(async () => {
    stage = await openStage(server);
    sessionId = await stage.session();
    await stage.lead(sessionId);
  });
  afterAll(() => stage.close());

  it("10,000 failures at once send one message per channel, then one summary, then one all-clear", async () => {
    const [one, two] = [await stage.task("one", { owner: "payments" }), await stage.task("two")];
    await end(one, "failed", 3);
    const t = stage.nowMs;
    expect(await look(t), "what failed before anybody looked is known").toBe(0);
    await end(one, "failed", 1_000, t);
    expect(await look(t)).toBe(2);
    await Promise.all([end(one, "failed", 4_000, t), look(t + 10)]);
    await end(two, "failed", 5_000, t);
    for (let ms = 100; ms < 60_000; ms += 5_000) expect(await look(t + ms)).toBe(0);
    expect(await look(t + 60_000)).toBe(2);
    expect(await written("failed")).toEqual([
      "ops raised 1000",
      "mail raised 1000",
      "ops summary 10000",
      "mail summary 10000",
    ]);
    expect(await open()).toEqual(
      expect.arrayContaining([
        ["failed", "one", 5_000],
        ["failed", "two", 5_000],
      ]),
    );
    const [last] = await stage.rows<{ body: Posted["body"] }>(
      "select body from $s.alarm_outbox where kind = 'summary'",
    );
    expect(last?.body).toMatchObject({
      news: 9_000,
      subjects: [{ task: "one", owner: "payments", count: 5_000, text: "no route to bank" }, { task: "two" }],
    });
    expect(last?.body.subjects[1]).not.toHaveProperty("owner");

    await end(one, "succeeded", 1);
    await look(t + 70_000);
    expect(
      (await open()).map(([, subject]) => subject),
      "the other one has not succeeded",
    ).toEqual(["two"]);
    await stage.store.tasks.remove("two", { author: "", reason: "", nowMs: t });
    expect(await look(t + 75_000)).toBe(0);
    expect(await look(t + 134_000)).toBe(0);
    expect(await look(t + 135_000)).toBe(2);
    expect((await written("failed")).slice(4)).toEqual(["ops cleared 10000", "mail cleared 10000"]);
    for (let ms = 140_000; ms < 400_000; ms += 30_000) expect(await look(t + ms)).toBe(0);
  });

  it("a task that failed and then succeeded is reported and cleared, even without an evaluation in between", async () => {
    await stage.rows("delete from $s.alarm_outbox");
    const t = stage.nowMs + 500_000;
    const task = await stage.task("recovers");
    await look(t);
    await end(task, "failed", 1, t + 1);
    await end(task, "succeeded", 1, t + 2);
    expect(await look(t + 3)).toBe(2);
    await look(t + 4);
    expect((await open()).filter(([, subject]) => subject === "recovers")).toEqual([]);
    await look(t + 70_000);
    expect(await written("failed")).toEqual(["ops raised 1", "mail raised 1", "ops cleared 1", "mail cleared 1"]);
    await end(task, "succeeded", 1, t + 80_000);
    await end(task, "failed", 1, t + 80_001);
    await look(t + 80_002);
    await look(t + 80_003);
    expect(await open()).toContainEqual(["failed", "recovers", 1]);
    await end(task, "succeeded", 1, t + 80_004);
    await look(t + 80_005);
    await look(t + 200_000);
    await stage.rows("delete from $s.alarm_outbox");
  });

  it("concurrent evaluations write each message once; a failure after several attempts is reported as exhausted", async () => {
    const t = stage.nowMs + 1_000_000;
    const [tried, lost] = [await stage.task("tried"), await stage.task("lost-before")];
    for (const task of [tried, lost]) await end(task, "failed", 1, t);
    await stage.rows(
      `insert into $s.attempt select id, 1, 0, 0, null, null, $3, case task_id when $1 then 'failed' else 'lost' end
       from $s.run_history where task_id in ($1, $2)`,
      [tried.taskId, lost.taskId, t - 1],
    );
    const all = [await stage.another(), await stage.another(), stage.store];
    await Promise.all(all.map((store) => store.alarms.look(["failed", "exhausted"], thresholds, everywhere, t)));
    await end(lost, "succeeded", 1, t + 1);
    await look(t + 2);
    expect(await written("exhausted"), "of one alone").toEqual(["ops raised 1", "mail raised 1"]);
  });

  it("detects overdue, unplanned, stuck, late and leaderless conditions, and the end of each", async () => {
    const t = stage.nowMs;
    const task = await stage.task("waits", { timeout: "1s" });
    const planned = await stage.task("planned", { schedule: every("1h") });
    await stage.enqueue(task, { dueMs: t - 61_000 });
    const [stuck] = await stage.claim(sessionId, [await stage.task("hangs", { group: "hangs" })], t);
    expect(stuck).toBeUndefined();
    const hangs = await stage.task("hangs", { group: "hangs" });
    await stage.enqueue(hangs, { dueMs: t });
    await stage.claim(sessionId, [hangs], t);
    await stage.store.alarms.report(
      [9, 30].map((s) => ({ rule: "late", subject: "waits", count: 6, text: `started up to ${s} s late`, runId: 7 })),
      t,
    );
    const at = (planned.nextSlotMs as number) + 60_001;
    const late = async () => (await stage.store.alarms.open()).find(({ rule }) => rule === "late")?.text;
    await look(t + 60_001, ["overdue", "stuck", "late", "leaderless"]);
    expect(await late(), "the worst").toBe("started up to 30 s late");
    await look(at, ["unfired"]);
    const found = (await open()).filter(([rule]) => rule !== "exhausted");
    expect(found).toEqual(
      expect.arrayContaining([
        ["overdue", "waits", 1],
        ["stuck", "hangs", 1],
        ["late", "waits", 12],
        ["unfired", "planned", 0],
      ]),
    );
    expect(found.filter(([rule]) => rule === "leaderless")).toEqual([]);
    await stage.rows("update $s.leadership set session_id = null");
    await look(at, ["leaderless"]);
    expect(await written("leaderless")).toEqual(["ops raised 1", "mail raised 1"]);
    await stage.lead(sessionId);
    await stage.rows("delete from $s.run where task_id = any($1)", [[task.taskId, hangs.taskId]]);
    await stage.store.tasks.pause("planned", { author: "", reason: "", nowMs: at });
    // The slot that the pause skipped is a single event, so its alarm clears one summary interval later.
    await look(at + 1, ["unfired"]);
    await look(at + 100_000, ["overdue", "stuck", "late", "leaderless", "unfired"]);
    expect((await open()).filter(([rule]) => rule !== "exhausted")).toEqual([]);
    await look(at + 160_000, ["leaderless"]);
    expect((await written("leaderless")).slice(2)).toEqual(["ops cleared 1", "mail cleared 1"]);
  });

  it("slots that the misfire policy skipped are reported even if failures are not evaluated", async () => {
    const t = stage.nowMs + 2_000_000;
    await look(t, ["unfired"]);
    const { taskId } = await stage.task("given-up");
    await stage.rows("insert into $s.tally_delta (task_id, missed) values ($1, 3)", [taskId]);
    await look(t, ["unfired"]);
    expect(await open()).toContainEqual(["unfired", "given-up", 3]);
    await look(t + 100_000, ["unfired"]);
    await look(t + 200_000, ["unfired"]);
    expect((await open()).filter(([rule]) => rule === "unfired")).toEqual([]);
  });

  it.each([
    ["claimed-too-late", {}, 10],
    // The task allows one run at a time: the first run may start late, so only the other nine are given up.
    ["waiting-for-a-place", { overlap: "queue" }, 9],
  ] as const)("slots that were skipped after planning are reported too: %s", async (name, options, count) => {
    const misfire = { policy: "skip", after: "1s" } as const;
    const task = await stage.task(name, { group: name, schedule: every("1s"), misfire, ...options });
    expect(await stage.plan([task], sessionId, stage.nowMs + 10_000)).toBe(10);
    await stage.rows("update $s.plan set next_slot_ms = null where task_id = $1", [task.taskId]);
    const t = stage.nowMs + 3_000_000;
    await look(t, ["unfired"]);
    const started = await stage.claim(sessionId, [task], t);
    expect(started).toHaveLength(10 - count);
    const ends = started.map((run) => settlement(run, succeededVerdict, t));
    await stage.store.claims.settle(sessionId, ends, t);
    await stage.store.plans.admitHeld(t, t);
    expect((await stage.store.tasks.counters([task.taskId])).get(task.taskId)).toMatchObject({
      missed: count,
      skipped: 0,
    });
    await look(t, ["unfired"]);
    expect(await open()).toContainEqual(["unfired", name, count]);
    await look(t + 100_000, ["unfired"]);
    await look(t + 200_000, ["unfired"]);
  });

  it("a second task with unplanned slots is reported while the first one's incident is open", async () => {
    await stage.rows("delete from $s.alarm_outbox");
    const [one, two] = [
      await stage.task("unplanned", { schedule: every("1h") }),
      await stage.task("unplanned-too", { schedule: at(stage.nowMs + 2 * 86_400_000) }),
    ];
    const t = (one.nextSlotMs as number) + 60_001;
    await look(t, ["unfired"]);
    expect(await written("unfired")).toEqual(["ops raised 1", "mail raised 1"]);
    const later = (two.nextSlotMs as number) + 60_001;
    await look(later, ["unfired"]);
    expect((await written("unfired")).slice(2)).toEqual(["ops summary 2", "mail summary 2"]);
    await look(later + 10_000_000, ["unfired"]);
    expect(await written("unfired"), "what goes on is not news").toHaveLength(4);
    for (const name of ["unplanned", "unplanned-too"])
      await stage.store.tasks.remove(name, { author: "", reason: "", nowMs: later });
  });

  it("a disabled rule has no open alarms, and reports again once it is enabled", async () => {
    await stage.rows("delete from $s.alarm_outbox");
    await stage.rows("delete from $s.alarm_incident where rule = 'late'");
    const t = stage.nowMs + 3_000_000;
    const late = async (nowMs: number) => {
      await stage.store.alarms.report([{ rule: "late", subject: "slow", count: 1, text: "late", runId: null }], nowMs);
      return look(nowMs, ["late"]);
    };
    expect(await late(t)).toBe(2);
    await look(t + 1, ["leaderless"]);
    expect(await open(), "not looked for this time, but on").toContainEqual(["late", "slow", 1]);
    await look(t + 2, ["leaderless"], { ...everywhere, late: [] });
    expect((await open()).filter(([rule]) => rule === "late")).toEqual([]);
    expect(await late(t + 3)).toBe(2);
    expect(await written("late")).toEqual(["ops raised 1", "mail raised 1", "ops raised 1", "mail raised 1"]);
  });

  it("failures during a silence are reported by name when the silence ends", async () => {
    await stage.rows("delete from $s.alarm_outbox");
    const t = stage.nowMs + 4_000_000;
    const { alarms } = stage.store;
    const late = (subject: string, nowMs: number) =>
      alarms.report([{ rule: "late", subject, count: 3, text: "late", runId: null }], nowMs);
    const silence = (task: string, nowMs: number, untilMs: number) =>
      alarms.silence({ rule: "late", task, untilMs }, { author: "", reason: "", nowMs });
    const told = async () => {
      const rows = await stage.rows<{ kind: string; body: Posted["body"] }>(
        "select kind, body from $s.alarm_outbox where rule = 'late' and channel = 'ops' order by id",
      );
      return rows.map(({ kind, body }) => [
        kind,
        body.total,
        body.subjects
          .map(({ task }) => task)
          .sort()
          .join(),
      ]);
    };
    for (const name of ["hushed", "hushed-too"]) await stage.task(name);
    await look(t, ["late"]);
    await look(t + 60_000, ["late"]);
    await stage.rows("delete from $s.alarm_outbox");

    const t1 = t + 100_000;
    await late("loud", t1);
    await silence("hushed", t1, t1 + 40_000);
    await look(t1, ["late"]);
    await late("hushed", t1 + 10_000);
    await look(t1 + 10_000, ["late"]);
    await look(t1 + 60_000, ["late"]);
    expect(await told()).toEqual([
      ["raised", 3, "loud"],
      ["summary", 6, "hushed,loud"],
    ]);
    await look(t1 + 200_000, ["late"]);
    await look(t1 + 400_000, ["late"]);
    await stage.rows("delete from $s.alarm_outbox");

    const t2 = t1 + 500_000;
    await look(t2, ["late"]);
    await silence("hushed-too", t2, t2 + 40_000);
    await late("hushed-too", t2);
    await look(t2, ["late"]);
    expect(await told()).toEqual([]);
    await look(t2 + 41_000, ["late"]);
    expect(await told()).toEqual([["raised", 3, "hushed-too"]]);
    await look(t2 + 42_000, ["late"]);
    expect(await told(), "once").toHaveLength(1);

    // The alarm was sent. Its incident ends during the silence, and then the same alarm is raised again.
    await silence("hushed-too", t2 + 50_000, t2 + 200_000);
    for (const ms of [90_000, 125_000, 155_000]) {
      await late("hushed-too", t2 + ms);
      await look(t2 + ms, ["late"]);
    }
    expect((await told()).at(-1)).toEqual(["cleared", 3, ""]);
    await look(t2 + 201_000, ["late"]);
    expect((await told()).slice(2)).toEqual([["raised", 9, "hushed-too"]]);
    await look(t2 + 400_000, ["late"]);
    await look(t2 + 800_000, ["late"]);
  });

  it("a channel gets a rule's messages in order: later ones wait until the first is sent or given up", async () => {
    await stage.rows("delete from $s.alarm_outbox");
    const t = stage.nowMs + 5_000_000;
    await stage.rows(
      `insert into $s.alarm_outbox (channel, rule, kind, body, created_ms, next_ms)
       select c, r, k, '{}', $1, $1 from unnest('{ops,ops,ops,mail}'::text[], '{failed,failed,late,failed}'::text[], '{raised,cleared,raised,cleared}'::text[]) as x (c, r, k)`,
      [t],
    );
    const { alarms } = stage.store;
    const take = async (nowMs: number) =>
      (await alarms.take(["ops", "mail"], nowMs, nowMs + 60_000, 9)).sort((a, b) => a.id - b.id);
    const [raised, late, mail, ...none] = await take(t);
    expect([raised?.channel, late?.channel, mail?.channel, none]).toEqual(["ops", "ops", "mail", []]);
    expect(await take(t + 1)).toEqual([]);
    await alarms.unsent(raised?.id as number, "refused", t + 90_000);
    await alarms.sent(late?.id as number, t + 2);
    expect(await take(t + 3)).toEqual([]);
    await alarms.unsent(raised?.id as number, "refused for a day", null);
    expect((await take(t + 4)).map(({ id }) => id - (raised?.id as number))).toEqual([1]);
  });

  /** Replaces all messages of the outbox by one that waits to be sent. @returns since when it waits, in ms */
  const onlyMessage = async (channel: string) => {
    const t = stage.nowMs + 5_000_000;
    await stage.rows("delete from $s.alarm_outbox");
    await stage.rows(
      "insert into $s.alarm_outbox (channel, rule, kind, body, created_ms, next_ms) values ($2, 'failed', 'raised', '{}', $1, $1)",
      [t, channel],
    );
    return t;
  };

  it("a message that no process can send is given up, and deleted a week later", async () => {
    const t = await onlyMessage("gone");
    await look(t + 86_400_000, []);
    expect(await stage.store.alarms.outbox(1)).toMatchObject([{ nextMs: t }]);
    await look(t + 95_000_000, []);
    expect(await stage.store.alarms.outbox(1)).toMatchObject([{ nextMs: null, error: expect.any(String) }]);
    expect(await stage.store.alarms.take(["gone"], t + 95_000_000, t + 95_060_000, 9)).toEqual([]);
    await look(t + 8 * 86_400_000, []);
    expect(await stage.store.alarms.outbox(1)).toEqual([]);
  });

  it("a message taken by a process that died is taken again once its lease ends, and not before", async () => {
    const t = await onlyMessage("ops");
    const { alarms } = stage.store;
    const [taken, others] = await Promise.all([
      alarms.take(["ops"], t, t + 60_000, 9),
      (await stage.another()).alarms.take(["ops"], t, t + 60_000, 9),
    ]);
    expect(taken.length + others.length).toBe(1);
    expect(await alarms.take(["mail"], t + 70_000, t, 9)).toEqual([]);
    expect(await alarms.take(["ops"], t + 59_999, t, 9)).toEqual([]);
    const [again] = await alarms.take(["ops"], t + 60_000, t + 120_000, 9);
    expect(again).toMatchObject({ attempts: 2, id: (taken[0] ?? others[0])?.id });
    await alarms.unsent(again?.id as number, "refused", t + 90_000);
    expect(await alarms.take(["ops"], t + 90_000, t + 150_000, 9)).toHaveLength(1);
    await alarms.sent(again?.id as number, t + 90_001);
    expect(await alarms.take(["ops"], t + 900_000, t + 960_000, 9)).toEqual([]);
    expect(await alarms.outbox(1)).toMatchObject([{ channel: "ops", attempts: 3, sentMs: t + 90_001, error: null }]);
  });
});

describe("alarms of a cluster", () => {
  const [server] = everyPostgres();
  const receiver = new WebhookReceiver();
  const mails: string[] = [];
  const smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS"],
    onData(stream, _session, done) {
      let text = "";
      stream.on("data", (chunk) => {
        text += chunk;
      });
      stream.on("end", () => {
        mails.push(text);
        done();
      });
    },
  });
  const schema = `alarms_${process.pid}_${Math.floor(Math.random() * 1e9).toString(36)}`;
  const towers: Carillon[] = [];
  const { log, lines } = recordingLog();
  let channels: AlarmOptions["channels"];
  const start = async (alarms: Partial<AlarmOptions> = {}) => {
    const options = { channels, summary: "2s", ...alarms };
    const tower = carillon({
      store: server?.url as string,
      schema,
      handleSignals: false,
      log,
      alarms: options,
    });
    towers.push(tower);
    tower.task("breaks", {}, (_, payload) => {
      if (payload !== "well") throw new Error("no route\r\nBcc: everyone@example.com");
    });
    return tower.start();
  };

  beforeAll(async () => {
    await new Promise<void>((resolve) => smtp.listen(0, "127.0.0.1", resolve));
    const { port } = smtp.server.address() as AddressInfo;
    channels = {
      ops: { webhook: await receiver.listen(), secret: "s3cret" },
      mail: {
        smtp: `smtp://127.0.0.1:${port}`,
        from: "carillon@example.com",
        to: ["ops@example.com", "two@example.com"],
      },
    };
  });
  afterAll(async () => {
    await Promise.all(towers.map((tower) => tower.stop()));
    await receiver.close();
    await new Promise<void>((resolve) => smtp.close(() => resolve()));
    const stage = await openStage(server as NonNullable<typeof server>);
    await stage.sql.query(`drop schema if exists ${schema} cascade`);
    await stage.close();
  });

  it("reach a signed webhook and a mail server, are retried when refused, and end with one all-clear", async () => {
    receiver.status = 500;
    const tower = await start();
    await until(
      "it looked once",
      async () => (await (await tower.open()).store.alarms.outbox(1)).length === 0 && tower.term !== null,
    );
    const { store } = await tower.open();
    const looks = async () => (await store.tasks.changedSince(0)).length > 0;
    expect(await looks()).toBe(true);
    // The first evaluation treats existing failures as reported, so it must be over before runs fail.
    await until("it looked", () => firstLook());
    await Promise.all(Array.from({ length: 20 }, () => tower.run("breaks", "ill")));
    await until("the mail is there", () => mails.length === 1);
    expect(mails[0]).toMatch(/^Subject: \[carillon\] runs failed: breaks$/m);
    expect(mails[0]).toMatch(/^To: ops@example\.com, two@example\.com$/m);
    expect(mails[0], "what failed adds no header").not.toMatch(/^Bcc:/m);
    await until("the webhook was refused", () =>
      lines.some(({ message }) => message.includes("it will be tried again")),
    );
    const [first] = receiver.posted as [Posted];
    const [timestamp, id] = [first.headers["carillon-timestamp"], first.headers["carillon-notice"]];
    const signature = createHmac("sha256", "s3cret").update(`${timestamp}\n${id}\n${first.raw}`).digest("hex");
    expect(first.headers["carillon-signature"]).toBe(`v1=${signature}`);
    expect(first.headers).toMatchObject(signedAs(first, ["carillon-notice"], "alarms", "s3cret"));
    expect(first.body).toMatchObject({ kind: "raised", rule: "failed", subjects: [{ task: "breaks" }] });
    receiver.status = 200;
    const due = `update ${schema}.alarm_outbox set next_ms = 0 where sent_ms is null`;
    await until("it was taken", async () => {
      await query(due);
      return (await store.alarms.outbox(10)).every(({ sentMs }) => sentMs !== null);
    });
    const posted = receiver.posted.filter(({ headers }) => headers["carillon-notice"] === id);
    expect(posted.length, "the same notice again").toBeGreaterThan(1);
    await tower.run("breaks", "well");
    await until("all is clear", () => receiver.kinds("failed").includes("cleared"));
    const clear = () => mails.filter((mail) => /^Subject: \[carillon\] all clear: runs failed/m.test(mail)).length;
    await until("all is clear by mail too", () => clear() > 0);
    expect(clear()).toBe(1);
    expect(new Set(receiver.posted.map(({ headers }) => headers["carillon-notice"])).size).toBeLessThanOrEqual(3);
  });

  const query = async (text: string) => {
    const { default: pg } = await import("pg");
    const client = new pg.Client(server?.url);
    await client.connect();
    try {
      return (await client.query(text)).rows;
    } finally {
      await client.end();
    }
  };
  const firstLook = async () => (await query(`select from ${schema}.alarm_seen where task_id = 0`)).length === 1;
});
