import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { AlarmMessage } from "../../src/alarms/alarms.ts";
import { systemClock } from "../../src/base/clock.ts";
import { channelsOf } from "../../src/engine/alarms/channels.ts";
import { alarmSenders } from "../../src/library/alarms/senders.ts";
import { carillon } from "../../src/library/carillon.ts";
import { type AlarmOptions, alarmSettings } from "../../src/settings/alarms/alarms.ts";
import { ApiStage } from "../support/api-stage.ts";
import { inProcess } from "../support/in-process.ts";
import { postgres } from "../support/servers.ts";
import { keys, type Service, ServiceDouble, services } from "../support/service-double.ts";
import { recordingLog, until } from "../support/store-stage.ts";

const double = new ServiceDouble();
beforeAll(() => double.listen());
afterAll(() => double.close());
afterEach(() => {
  double.taken.length = 0;
  double.wrong.length = 0;
});

const message = (over: Partial<AlarmMessage> = {}): AlarmMessage => ({
  kind: "raised",
  rule: "exhausted",
  words: "runs failed after all their tries",
  atMs: Date.UTC(2026, 10, 30, 1),
  sinceMs: Date.UTC(2026, 10, 30, 0, 30),
  total: 12,
  news: 3,
  subjects: [{ task: "billing/settle", count: 3, text: "no route to bank", run: 42 }],
  moreSubjects: 0,
  ...over,
});

const owned = { task: "billing/settle", owner: "payments", count: 3, text: "no route to bank", run: 42 };

/** A message of the maximum length that the store writes, with characters that take more bytes in JSON, markup and UTF-8. */
const longest = message({
  subjects: Array.from({ length: 10 }, (_, index) => ({
    task: `${"任务".repeat(99)}-${index}`,
    owner: "队".repeat(100),
    count: 10_000,
    text: '"\\<@U1>[x](http://evil.example)\t😀汉'.repeat(12).slice(0, 300),
    run: 10 ** 15,
  })),
  moreSubjects: 9_990,
  silenced: 7,
});

async function deliver(service: string, given: AlarmMessage, more: Partial<AlarmOptions> = {}, id = "notice-1") {
  const settings = alarmSettings({ channels: double.channels(), console: "https://tower.example/at", ...more });
  const channels = await channelsOf(settings, alarmSenders, systemClock);
  await channels[service]?.(id, given, new AbortController().signal);
}

const bodyOf = (service: Service) => double.of(service).at(-1)?.body as Record<string, unknown>;

describe.each(services)("the channel %s", (service) => {
  it.each([
    ["the usual one", message(), {}],
    ["in Chinese, with the zone", message(), { language: "zh", zone: "Asia/Shanghai" }],
    ["the longest", longest, {}],
    ["the longest in Chinese", longest, { language: "zh", zone: "Asia/Shanghai" }],
    ["a summary", message({ kind: "summary" }), {}],
    ["an all-clear", message({ kind: "cleared", subjects: [] }), {}],
    [
      "of the whole cluster",
      message({ rule: "leaderless", subjects: [{ task: "", count: 1, text: "x", run: null }] }),
      {},
    ],
    ["a test", message({ kind: "test", rule: "test", words: "a test by ada: nothing is wrong", subjects: [] }), {}],
    ["of a task with an owner", message({ subjects: [owned] }), {}],
    ["of a task with an owner, in Chinese", message({ subjects: [owned] }), { language: "zh", zone: "Asia/Shanghai" }],
    ["without a console", message(), { console: undefined }],
    [
      "with control characters",
      message({ subjects: [{ task: "a", count: 1, text: "\u001b[31mred\u0000\u2028", run: 1 }] }),
      {},
    ],
  ] as [string, AlarmMessage, Partial<AlarmOptions>][])("sends in the published format: %s", async (_, given, more) => {
    await deliver(service, given, more);
    expect(double.wrong).toEqual([]);
    expect(double.of(service)).toHaveLength(1);
    const sent = JSON.stringify(bodyOf(service));
    if (service !== "pagerduty" || given.kind !== "cleared") {
      if (more.language === "zh") expect(sent).toContain("2026-11-30 08:30:00 (Asia/Shanghai)");
      expect(sent).toMatch(more.language === "zh" ? /[所执已]/ : /Carillon/);
    }
    if (given.subjects.includes(owned))
      expect(sent).toContain(more.language === "zh" ? "负责人 payments" : "owner payments");
    if ("console" in more) expect(sent).not.toContain("tower.example");
    else if (given.kind === "raised") expect(sent).toContain("https://tower.example/at/alarms");
  });

  it("links the task and the run of a message about one task", async () => {
    await deliver(service, message());
    const sent = JSON.stringify(bodyOf(service));
    expect(sent).toContain("https://tower.example/at/tasks/billing%2Fsettle");
    expect(sent).toContain("https://tower.example/at/runs/42");
  });

  it("reports a wrong key from the service, and shows no secret", async () => {
    const wrong = { ...double.channels()[service], ...wrongKeyOf(service) };
    const failed = deliver(service, message(), { channels: { [service]: wrong } as AlarmOptions["channels"] });
    const error = await failed.catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: "HTTP_REFUSED", hint: expect.stringMatching(/\w/) });
    expect(double.wrong).toHaveLength(1);
    for (const secret of [...Object.values(keys), "wrong-key"]) expect((error as Error).message).not.toContain(secret);
  });

  it("honours the service's retry delay", async () => {
    const { said, afterMs } = limitedBy[service];
    double.once(service, said);
    await expect(deliver(service, message())).rejects.toMatchObject({ code: "HTTP_REFUSED", retryAfterMs: afterMs });
    expect(double.taken).toEqual([]);
    await deliver(service, message());
    expect(double.of(service)).toHaveLength(1);
  });

  it("fails if a proxy answers in place of the service, whatever the proxy's page contains", async () => {
    double.once(service, { status: 502, body: `<html>${"bad gateway ".repeat(100)}</html>` });
    const failed = deliver(service, message());
    await expect(failed).rejects.toMatchObject({ code: "HTTP_REFUSED" });
    await expect(failed).rejects.toThrow(/^127\.0\.0\.1:\d+ answered 502: <html>bad gateway.{0,300}$/);
  });
});

const wrongKeyOf = (service: Service): object =>
  ({
    slack: { slack: String(at("slack")).replace(keys.slack, "wrong-key") },
    teams: { teams: String(at("teams")).replace(keys.teams, "wrong-key") },
    // A wrong key makes only the signature wrong; this service reports the error with status 200.
    dingtalk: { secret: "wrong-key" },
    feishu: { secret: "wrong-key" },
    wecom: { wecom: String(at("wecom")).replace(keys.wecom, "wrong-key") },
    telegram: { telegram: "1:wrong-key" },
    pagerduty: { pagerduty: "wrong-key" },
    opsgenie: { opsgenie: "wrong-key" },
  })[service];
const at = (service: Service) => (double.channels()[service] as unknown as Record<string, unknown>)[service];

const minute = 60_000;
const seconds90 = { status: 429, body: "", headers: { "retry-after": "90" } };
const limitedBy: Record<Service, { said: Parameters<ServiceDouble["once"]>[1]; afterMs: number }> = {
  slack: { said: { ...seconds90, body: "rate_limited" }, afterMs: 90_000 },
  teams: { said: seconds90, afterMs: 90_000 },
  dingtalk: {
    said: { status: 200, body: { errcode: 130101, errmsg: "send too fast, exceed 20 times per minute" } },
    afterMs: 10 * minute,
  },
  feishu: { said: { status: 200, body: { code: 11232, msg: "frequency limited" } }, afterMs: minute },
  wecom: { said: { status: 200, body: { errcode: 45009, errmsg: "api freq out of limit" } }, afterMs: minute },
  telegram: {
    said: {
      status: 429,
      body: {
        ok: false,
        error_code: 429,
        description: "Too Many Requests: retry after 35",
        parameters: { retry_after: 35 },
      },
    },
    afterMs: 35_000,
  },
  pagerduty: { said: seconds90, afterMs: 90_000 },
  opsgenie: { said: { ...seconds90, body: { message: "You are making too many requests!" } }, afterMs: 90_000 },
};

describe("markup in the text of tasks", () => {
  it("is escaped for each service: no mention, no link, no tag", async () => {
    const text = "<!channel> <@U1> <font>x</font> [pay](https://evil.example) @all";
    await Promise.all(
      services.map((service) => deliver(service, message({ subjects: [{ task: "a", count: 1, text, run: null }] }))),
    );
    expect(double.wrong).toEqual([]);
    for (const service of ["dingtalk", "wecom"] as const) {
      const sent = JSON.stringify(bodyOf(service));
      expect(sent).not.toContain("](https://evil.example)");
      expect(sent).not.toMatch(/<[!@/f]/);
    }
    // In the other formats the text is in a plain-text field, so it is not escaped.
    for (const service of ["slack", "teams", "feishu", "telegram"] as const)
      expect(JSON.stringify(bodyOf(service))).toContain(text);
  });
});

describe("incidents in alert services", () => {
  const told = (kind: AlarmMessage["kind"], sinceMs = 1_000) => message({ kind, sinceMs });

  it("triggers, updates and resolves a PagerDuty incident with one key; the next incident has another key", async () => {
    for (const kind of ["raised", "summary", "cleared"] as const) await deliver("pagerduty", told(kind));
    await deliver("pagerduty", told("raised", 2_000));
    const events = double.of("pagerduty").map(({ body }) => [body.event_action, body.dedup_key]);
    const [first] = events;
    expect(events.map(([action]) => action)).toEqual(["trigger", "trigger", "resolve", "trigger"]);
    expect(events.slice(1, 3).map(([, key]) => key)).toEqual([first?.[1], first?.[1]]);
    expect(events[3]?.[1]).not.toBe(first?.[1]);
  });

  it("creates and closes an Opsgenie alert with one alias", async () => {
    for (const kind of ["raised", "cleared"] as const) await deliver("opsgenie", told(kind));
    const [created, closed] = double.of("opsgenie");
    expect(closed?.path).toBe(`/v2/alerts/${created?.body.alias}/close`);
  });

  it("sends test messages as separate incidents of the lowest severity", async () => {
    const test = message({ kind: "test", rule: "test", subjects: [] });
    for (const id of ["notice-1", "notice-2"]) {
      await deliver("pagerduty", test, {}, id);
      await deliver("opsgenie", test, {}, id);
    }
    expect(
      double.of("pagerduty").map(({ body }) => [body.dedup_key, (body.payload as { severity: string }).severity]),
    ).toEqual([
      ["notice-1", "info"],
      ["notice-2", "info"],
    ]);
    expect(double.of("opsgenie").map(({ body }) => [body.alias, body.priority])).toEqual([
      ["notice-1", "P5"],
      ["notice-2", "P5"],
    ]);
  });
});

it("a Teams connector that answers 200 with a failure has not accepted the message", async () => {
  const body = "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429";
  double.once("teams", { status: 200, body });
  await expect(deliver("teams", message())).rejects.toMatchObject({
    code: "HTTP_REFUSED",
    message: expect.stringContaining("HTTP error 429"),
  });
});

describe("the channel that runs a command", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "carillon-notice-"));
  });
  afterAll(() => rm(folder, { recursive: true }));

  const running = (script: string, signal = new AbortController().signal) => {
    const command = [process.execPath, "-e", script, join(folder, "got.json")];
    const settings = alarmSettings({ channels: { own: { command } }, console: "https://tower.example" });
    return channelsOf(settings, alarmSenders, systemClock).then((channels) =>
      channels.own?.("notice-1", message(), signal),
    );
  };

  it("passes the message as JSON on standard input", async () => {
    await running(
      "const fs = require('fs'); fs.writeFileSync(process.argv[1], fs.readFileSync(0)); console.log(JSON.stringify(process.env))",
    );
    expect(JSON.parse(await readFile(join(folder, "got.json"), "utf8"))).toMatchObject({
      notice: "notice-1",
      kind: "raised",
      rule: "exhausted",
      subject: "runs failed after all their tries: billing/settle",
      text: expect.stringContaining("no route to bank"),
      subjects: [{ task: "billing/settle", run: 42 }],
      links: [{ url: "https://tower.example/alarms" }, {}, {}],
    });
  });

  it("fails on a non-zero exit code, with the command's last output as the reason", async () => {
    await expect(running("console.error('no pager'); process.exit(3)")).rejects.toMatchObject({
      code: "COMMAND_FAILED",
      message: expect.stringContaining("no pager"),
    });
  });

  it("ends a command that hangs when the message's time is over", async () => {
    const given = new AbortController();
    const mark = join(folder, "began");
    const sent = running(
      `require('fs').writeFileSync(${JSON.stringify(mark)}, ''); setInterval(() => {}, 1000)`,
      given.signal,
    );
    await until(
      "it began",
      async () =>
        readFile(mark).then(
          () => true,
          () => false,
        ),
      60_000,
    );
    given.abort(new Error("it took too long"));
    await expect(sent).rejects.toThrow("it took too long");
  });
});

describe("carillon alarms test", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "carillon-channels-"));
    const channels = Object.fromEntries(
      Object.entries(double.channels()).map(([name, channel]) => [
        name,
        // The file refers to secrets by environment variables, as a real configuration does.
        Object.fromEntries(
          Object.entries(channel).map(([key, value]) => [key, String(value) === keys.telegram ? "env:BOT" : value]),
        ),
      ]),
    );
    const file = { channels, console: "https://tower.example", language: "zh" };
    await writeFile(join(folder, "alarms.yaml"), JSON.stringify(file), { mode: 0o600 });
  });
  afterAll(() => rm(folder, { recursive: true }));
  const run = (...words: string[]) =>
    inProcess(["alarms", "test", ...words, "--alarms", join(folder, "alarms.yaml")], { BOT: keys.telegram });

  it.each(services)("sends a test to %s from this machine, or previews the message of a failure", async (service) => {
    expect(await run(service)).toEqual({ code: 0, stdout: `${service} took the test\n`, stderr: "" });
    expect(JSON.stringify(bodyOf(service))).toContain("一切正常");
    const shown = await run(service, "--preview");
    expect([shown.code, shown.stderr]).toEqual([0, ""]);
    expect(shown.stdout).toContain(`${service} to 127.0.0.1`);
    expect(shown.stdout).toContain("no route to bank");
    for (const secret of Object.values(keys)) expect(shown.stdout).not.toContain(secret);
    expect(double.of(service), "the preview sent nothing").toHaveLength(1);
    expect(double.wrong).toEqual([]);
  });

  it("gives the reason if a channel rejects the message, and suggests the nearest channel name", async () => {
    double.once("wecom", { status: 200, body: { errcode: 93000, errmsg: "invalid webhook url" } });
    expect(await run("wecom", "--json")).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/"sent": ?false.*errcode 93000: invalid webhook url/s),
    });
    expect(await run("slak")).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/ALARM_UNKNOWN: there is no channel "slak"; did you mean "slack"\?/),
    });
    expect(await inProcess(["alarms", "test", "ops"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("no channels are configured here"),
    });
  });
});

describe("alarm channels through the outbox", () => {
  const stage = new ApiStage();
  beforeAll(async () => {
    await stage.open();
    await stage.server.stop();
  });
  afterAll(() => stage.close());

  it("each channel's message is sent, retried after a refusal, and no message shows a secret", async () => {
    const { log, lines } = recordingLog();
    const rules = Object.fromEntries(["failed"].map((rule) => [rule, [...services]]));
    const tower = carillon({
      store: postgres().url,
      schema: stage.schema,
      handleSignals: false,
      log,
      listen: "127.0.0.1:0",
      worker: false,
      alarms: { channels: double.channels(), rules, language: "zh" },
    });
    stage.servers.push(tower);
    await tower.start();
    stage.store = (await tower.open()).store;
    const client = stage.client("operator", tower);
    double.once("feishu", { status: 200, body: { code: 9499, msg: `too fast: ${keys.feishuSecret}` } });
    const made = await Promise.all(services.map((channel) => client.testAlarmChannel({ channel })));
    const messages = () => Promise.all(made.map(({ message: number }) => client.getAlarmMessage({ message: number })));
    await until("each was tried", async () => (await messages()).every(({ tries }) => tries.length > 0), 60_000);
    const [late, ...others] = (await messages()).filter(({ state }) => state === "waiting");
    expect(others).toEqual([]);
    expect(late).toMatchObject({ channel: "feishu", error: expect.stringContaining("code 9499: too fast: ***") });
    expect(Date.parse(String(late?.next)) - Date.parse(String(late?.tries[0]?.at))).toBeGreaterThanOrEqual(60_000);
    const sent = async () => {
      await stage.rows("update $s.alarm_outbox set next_ms = 0 where sent_ms is null and next_ms > 0");
      return (await messages()).every(({ state }) => state === "sent");
    };
    await until("all were sent", sent, 60_000);
    expect(double.wrong).toEqual([]);
    expect(new Set(double.taken.map(({ service }) => service))).toEqual(new Set(services));
    await expect(client.testAlarmChannel({ channel: "slak" })).rejects.toMatchObject({
      code: "ALARM_UNKNOWN",
      message: expect.stringContaining('no channel "slak"; did you mean "slack"?'),
    });
    const previews = await Promise.all(services.map((channel) => client.previewAlarmChannel({ channel })));
    expect(previews.map(({ kind }) => kind)).toEqual([...services]);
    for (const { to, content } of previews)
      expect([to, content]).toEqual([
        expect.stringMatching(/^127\.0\.0\.1:/),
        expect.stringContaining("no route to bank"),
      ]);
    const { channels } = await client.listAlarmChannels();
    expect(channels.map(({ name, kind }) => [name, kind])).toEqual(services.map((service) => [service, service]));
    const shown = JSON.stringify([channels, previews, await messages(), lines]);
    for (const secret of Object.values(keys)) expect(shown).not.toContain(secret);
  });
});
