import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { carillon } from "../../src/library/carillon.ts";
import { ApiStage } from "../support/api-stage.ts";
import { postgres } from "../support/servers.ts";
import { recordingLog, until } from "../support/store-stage.ts";
import { WebhookReceiver } from "../support/webhook-receiver.ts";

const stage = new ApiStage();
const receiver = new WebhookReceiver();
const { log } = recordingLog();

beforeAll(() => stage.open());
afterAll(async () => {
  await stage.close();
  await receiver.close();
});

const content = { kind: "queue" as const, more: 0, scope: { tasks: ["waits"] } };
const admin = () => stage.client();

describe("stored alarm rules over the API", () => {
  it("are created with a Location, read with an ETag, replaced by version, and removed", async () => {
    const token = stage.tokens.admin;
    const made = await stage.ask("POST", "/v1/alarm-rules", {
      token,
      body: { name: "a/b c".replace(" ", "-"), ...content },
    });
    expect([made.status, made.headers.get("location")]).toEqual([201, "/v1/alarm-rules/a%2Fb-c"]);
    expect(made.body).toMatchObject({ version: 1, ...content, finds: "more than 0 due runs of a task wait" });
    const read = await stage.ask("GET", "/v1/alarm-rules/a%2Fb-c", { token });
    expect([read.body, read.headers.get("etag")]).toEqual([made.body, expect.stringMatching(/^"1\./)]);
    const put = (headers: Record<string, string>, body: object = content) =>
      stage.ask("PUT", "/v1/alarm-rules/a%2Fb-c", { token, headers, body });
    expect(await put({ "if-match": read.headers.get("etag") as string }, { ...content, more: 5 })).toMatchObject({
      status: 200,
      body: { version: 2, more: 5 },
    });
    expect(await put({ "if-match": '"1"' })).toMatchObject({ status: 412, body: { code: "ALARM_RULE_STALE" } });
    expect(await put({})).toMatchObject({ status: 200, body: { version: 3, more: 0 } });
    const again = { name: "a/b-c", ...content };
    expect(await stage.ask("POST", "/v1/alarm-rules", { token, body: again })).toMatchObject({
      status: 409,
      body: { code: "ALARM_RULE_EXISTS" },
    });
    await admin().removeAlarmRule({ alarmRule: "a/b-c" });
    for (const method of ["GET", "PUT", "DELETE"] as const)
      expect(
        await stage.ask(method, "/v1/alarm-rules/a%2Fb-c", { token, ...(method === "PUT" ? { body: content } : {}) }),
      ).toMatchObject({ status: 404, body: { code: "ALARM_UNKNOWN" } });
  });

  it.each([
    [{ ...content, kind: "queu" }, "kind"],
    [{ ...content, kind: "ended" }, "more"],
    [{ ...content, scope: { tasks: [""] } }, "scope.tasks[0]"],
    [{ ...content, escalate: { after: "soon", channels: ["a"] } }, "escalate.after"],
    [{ ...content, nonsense: 1 }, "nonsense"],
  ])("%j is refused with its position: %s", async (body, path) => {
    const { tokens } = stage;
    const asked = await stage.ask("POST", "/v1/alarm-rules", { token: tokens.admin, body: { name: "wrong", ...body } });
    expect([asked.status, JSON.stringify(asked.body)]).toEqual([400, expect.stringContaining(path)]);
  });

  it("are for admins of the rule's namespace; rules for every namespace are for global admins", async () => {
    const theirs = stage.clientOf(await stage.token("admin", { where: ["theirs"] }));
    const made = await theirs.createAlarmRule({ name: "theirs/queue", ...content });
    await admin().createAlarmRule({ name: "ours/queue", ...content });
    const wide = { ...content, scope: { everywhere: true } };
    await admin().createAlarmRule({ name: "theirs/wide", ...wide });
    expect(await theirs.listAlarmRules()).toMatchObject({ rules: [], stored: [made, { name: "theirs/wide" }] });
    expect(await stage.client("viewer").getAlarmRule({ alarmRule: "theirs/queue" })).toEqual(made);
    for (const refused of [
      () => theirs.createAlarmRule({ name: "queue", ...content }),
      () => theirs.createAlarmRule({ name: "theirs/other", ...wide }),
      () => theirs.setAlarmRule({ alarmRule: "theirs/queue", ...wide }),
      () => theirs.setAlarmRule({ alarmRule: "theirs/wide", ...content }),
      () => theirs.removeAlarmRule({ alarmRule: "theirs/wide" }),
      () => theirs.removeAlarmRule({ alarmRule: "ours/queue" }),
      () => stage.client("editor").createAlarmRule({ name: "queue", ...content }),
    ])
      await expect(refused()).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    for (const alarmRule of ["theirs/queue", "theirs/wide", "ours/queue"]) await admin().removeAlarmRule({ alarmRule });
  });

  it("are evaluated by a leader without alarms, and sent by a node that has the channel", async () => {
    const leader = stage.servers[0];
    await until("it leads", () => leader?.term !== null);
    const tower = carillon({
      store: postgres().url,
      schema: stage.schema,
      handleSignals: false,
      log,
      listen: "127.0.0.1:0",
      worker: false,
      alarms: { channels: { ops: { webhook: await receiver.listen() } }, rules: { overdue: [] } },
    });
    stage.servers.push(tower);
    await tower.start();
    const second = stage.client("admin", tower);
    await expect(second.createAlarmRule({ name: "waits", ...content, channels: ["opps"] })).rejects.toMatchObject({
      code: "OPTION_INVALID",
      path: "channels[0]",
      message: expect.stringContaining('did you mean "ops"?'),
    });
    await second.createAlarmRule({ name: "waits", ...content, channels: ["ops"] });
    await stage.task("waits");
    await stage.server.enqueue("waits", {});
    await until("it was told", () => receiver.posted.length > 0);
    expect(receiver.posted[0]?.body).toMatchObject({ kind: "raised", rule: "waits", subjects: [{ task: "waits" }] });
    expect((await second.listAlarms({ rule: "waits" })).items).toMatchObject([{ rule: "waits", task: "waits" }]);
    const acknowledged = await second.acknowledgeAlarm({ rule: "waits" });
    expect([acknowledged, leader?.term !== null]).toEqual([{ acknowledged: 1 }, true]);
  });
});
