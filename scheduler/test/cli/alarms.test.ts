import { chmod } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../support/store-stage.ts";
import { WebhookReceiver } from "../support/webhook-receiver.ts";
import { ask, file, folder, here, json, schema, start, url } from "./process.ts";

describe("alarms", () => {
  const receiver = new WebhookReceiver();
  const sql = new pg.Client(url);
  let hook: string;
  beforeAll(async () => {
    hook = await receiver.listen();
    await sql.connect();
  });
  afterAll(async () => {
    await receiver.close();
    await sql.end();
  });

  it("wait in the store for the successor of a node that was killed while it sent them", async () => {
    await file(
      "alarms.yaml",
      `channels:\n  ops: { webhook: "${hook}", secret: "env:HOOK_SECRET" }\n  chat: { slack: "${hook}/chat" }\nrules: { late: [] }\nsummary: 1h\n`,
    );
    const without = await ask("server", "--alarms", "alarms.yaml");
    expect([without.code, without.stderr]).toEqual([2, expect.stringContaining("HOOK_SECRET")]);
    const env = { HOOK_SECRET: "s3cret" };
    receiver.status = null;
    const dev = start(["dev", "tasks.ts", "--alarms", "alarms.yaml", ...here(), "--json"], { env });
    await dev.says(/"event":"ready"/);
    await until(
      "it looked",
      async () => (await sql.query(`select from ${schema}.alarm_seen where task_id = 0`)).rowCount === 1,
      60_000,
    );
    expect((await ask("tasks", "run", "broken", "--wait")).code).toBe(1);
    const of = (path: string) => receiver.posted.filter(({ url }) => url === path);
    await until("it was sent", () => of("/hook").length > 0 && of("/hook/chat").length > 0, 60_000);
    await dev.end("SIGKILL");
    const [first] = of("/hook");
    expect(first?.headers["carillon-signature"]).toMatch(/^v1=[\da-f]{64}$/);
    expect(await json("alarms")).toMatchObject({
      open: [{ rule: "exhausted", subject: "broken", count: 1 }],
      messages: expect.arrayContaining([
        expect.objectContaining({ channel: "ops", kind: "raised", sent: null }),
        expect.objectContaining({ channel: "chat", kind: "raised", sent: null }),
      ]),
    });

    receiver.status = 200;
    // A message that was being sent is locked for a minute, in case the killed node is still sending it. This ends the lock.
    await sql.query(`update ${schema}.alarm_outbox set next_ms = 0`);
    start(["server", "--alarms", "alarms.yaml", ...here()], { env });
    await until(
      "it was sent again",
      async () => (await sql.query(`select from ${schema}.alarm_outbox where sent_ms is not null`)).rowCount === 2,
      60_000,
    );
    const sent = of("/hook");
    expect(sent.map(({ headers }) => headers["carillon-notice"])).toEqual(
      sent.map(() => first?.headers["carillon-notice"]),
    );
    expect(new Set(of("/hook/chat").map(({ raw }) => raw)).size, "the same in the chat").toBe(1);
    for (const path of ["/hook", "/hook/chat"]) expect(of(path).length).toBeGreaterThan(1);
    expect((await ask("alarms")).stdout).toMatch(/^runs failed after all their tries +broken +1 /m);
  });

  it("files are read again at SIGHUP; an invalid file keeps the previous settings, and the error is logged", async () => {
    const key = (byte: number) => Buffer.alloc(32, byte).toString("base64");
    const written = async (allow: string, channels: string[], keys: string[], horizon = "15s") => {
      await file("hup.yaml", `commands: { allow: [${allow}] }\nalarms: hup-alarms.yaml\nhorizon: ${horizon}\n`);
      const lines = channels.map((name) => `  ${name}: { webhook: "${hook}" }\n`);
      await file("hup-alarms.yaml", `channels:\n${lines.join("")}`);
      await file("hup-keys", keys.join("\n"));
      await chmod(join(folder, "hup-keys"), 0o600);
    };
    await written("", ["ops"], [key(1)]);
    await file("hup-tasks.yaml", 'tasks:\n  commanded: { command: { argv: ["/usr/bin/true"] }, group: commands }\n');
    const env = { CARILLON_SECRET_KEYS: `file:${join(folder, "hup-keys")}` };
    const options = [...here(), "--config", "hup.yaml", "--json"];
    const server = start(["server", ...options], { env });
    const worker = start(["worker", ...options, "--group", "commands"], { env });
    await server.says(/"server is ready"/);
    await worker.says(/"worker is ready"/);
    expect((await ask("apply", "hup-tasks.yaml", "--yes")).stderr).toBe("");
    const refused = await ask("tasks", "run", "commanded", "--wait");
    expect([refused.code, refused.stdout + refused.stderr]).toEqual([
      1,
      expect.stringContaining("COMMAND_NOT_ALLOWED"),
    ]);

    await written('"/usr/bin/true"', ["ops", "more"], [key(2), key(1)]);
    for (const one of [server, worker]) {
      one.signal("SIGHUP");
      await one.says(/"changed":\{"commands\.allow":1,"alarms":2,"secretKeys":2\}.*"files read anew"/);
      expect(one.stdout + one.stderr).not.toContain(key(2));
    }
    expect((await ask("tasks", "run", "commanded", "--wait")).code).toBe(0);

    await file("hup-alarms.yaml", "channels: {}\n");
    worker.signal("SIGHUP");
    await worker.says(
      /"level":"error".*"code":"OPTION_INVALID".*alarms\.channels names none.*what was read before still holds/,
    );
    expect((await ask("tasks", "run", "commanded", "--wait")).code, "it goes on").toBe(0);

    await written('"/usr/bin/true"', ["ops", "more"], [key(2), key(1)], "20s");
    worker.signal("SIGHUP");
    await worker.says(/"options":\["horizonMs"\].*after a restart only/);
    expect((await worker.end("SIGTERM")).code).toBe(0);
    expect((await server.end("SIGTERM")).code).toBe(0);
  });
});
