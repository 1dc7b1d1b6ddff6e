import { createServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ownSchema } from "../support/own-schema.ts";
import { everyPostgres } from "../support/servers.ts";
import { recordingLog, until } from "../support/store-stage.ts";

interface Row {
  id: string;
  type: string;
  subject: string;
  source: string;
  data: {
    seq: number;
    hash: string;
    entry: { act: string; who: string; why: string; before: unknown; after: unknown };
  };
}
const posted: { headers: Record<string, unknown>; row: Row }[] = [];
/** HTTP statuses of the next responses; null: no response. While the list is empty, the status is 204. */
const answers: (number | null)[] = [];
const receiver = createServer((request, response) => {
  let raw = "";
  request.on("data", (chunk) => {
    raw += chunk;
  });
  request.on("end", () => {
    posted.push({ headers: request.headers, row: JSON.parse(raw) });
    const [status = 204] = answers.splice(0, 1);
    if (status !== null) response.writeHead(status).end();
  });
});
const lines: string[] = [];
const syslog = createTcpServer({ allowHalfOpen: true }, (socket) => {
  let text = "";
  socket.on("data", (bytes) => {
    text += bytes;
  });
  socket.on("end", () => {
    lines.push(...text.split(/(?<=\})\d+ (?=<109>)|^\d+ (?=<109>)/).filter((line) => line !== ""));
    socket.end();
  });
});
const at = (server: { address(): unknown }) => `127.0.0.1:${(server.address() as AddressInfo).port}`;
beforeAll(async () => {
  for (const server of [receiver, syslog])
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", () => resolve()));
});
afterAll(async () => {
  receiver.closeAllConnections();
  for (const server of [receiver, syslog]) await new Promise((resolve) => server.close(resolve));
});

describe.each(everyPostgres())("the audit log, on $title", ({ url }) => {
  const { make, database, schema } = ownSchema(url, "audit_stream", { drain: 0 });
  afterEach(() => {
    posted.length = 0;
    answers.length = 0;
    lines.length = 0;
  });
  const working = (name: string, to: string, more: object = {}) => {
    const { log, lines: logged } = recordingLog();
    const tower = make({ log, webhooks: { [name]: { url: to, audit: true, ...more } } } as Parameters<typeof make>[0]);
    tower.task("audited", {}, () => null);
    return { tower, logged };
  };
  const entry = { atMs: 1, who: "test", act: "edit", before: null, after: null, why: "" };
  const seqs = () => posted.map(({ row }) => row.data.seq);
  const hook = () => `http://${at(receiver)}/audit`;

  it("goes to a webhook row by row, signed, from its first row on", async () => {
    const { tower } = working("first", hook(), { secret: "canary" });
    await tower.start();
    await tower.pause("audited", { reason: "for the test" });
    await until("the pause came", () => posted.some(({ row }) => row.data.entry.act === "pause"), 60_000);
    const { store } = await tower.open();
    const chain = await store.audit.chained(0, 1_000);
    expect(posted.map(({ row }) => row.data).slice(0, chain.length)).toEqual(
      chain.map(({ seq, hash, content }) => ({ seq, hash, entry: JSON.parse(content) })),
    );
    const { row, headers } = posted.find(({ row: { data } }) => data.entry.act === "pause") as (typeof posted)[number];
    expect(row).toMatchObject({
      id: `audit-${row.data.seq}`,
      type: "carillon.audit",
      subject: "task/audited",
      source: `/carillon/${(await store.sessions.cluster()).clusterId}`,
      data: { entry: { why: "for the test", before: { paused: null } } },
    });
    expect(headers).toMatchObject({ "carillon-event": row.id, signature: expect.stringMatching(/^carillon=:/) });
    await tower.stop();
  });

  it("comes again after a refusal, in order, and goes on in another process where the first one ended", async () => {
    const { tower, logged } = working("again", hook());
    answers.push(500, 302, 204, null);
    await tower.start();
    await tower.pause("audited", { reason: "a second row" });
    await until("the second row is being posted", () => posted.length >= 4, 60_000);
    expect(seqs().slice(0, 4)).toEqual([1, 1, 1, 2]);
    expect(logged).toContainEqual(
      expect.objectContaining({ message: "rows of the audit log were not taken; they are sent again" }),
    );
    await tower.stop();
    const { tower: heir } = working("again", hook());
    await heir.start();
    await heir.resume("audited");
    await until("the resume came", () => posted.some(({ row }) => row.data.entry.act === "resume"), 60_000);
    const later = seqs().slice(4);
    expect(later).toEqual(later.map((_, place) => 2 + place));
    await heir.stop();
  });

  it("goes to a receiver by the kinds that it wants, such as definitions alone", async () => {
    const { tower } = working("definitions", hook(), { audit: ["task"] });
    await tower.start();
    const { store } = await tower.open();
    await store.audit.record([{ ...entry, about: "cluster", named: "unwanted" }]);
    await store.audit.record([{ ...entry, about: "task", named: "wanted" }]);
    await until("the wanted row came", () => posted.some(({ row }) => row.subject === "task/wanted"), 60_000);
    expect(posted.filter(({ row }) => !row.subject.startsWith("task/"))).toEqual([]);
    expect(seqs()).toEqual([...seqs()].sort((a, b) => a - b));
    await tower.stop();
  });

  it("goes on from the first row if the store has lost the place, as after a restore to an earlier moment", async () => {
    const { tower } = working("lost", hook());
    await tower.start();
    await tower.pause("audited", { reason: "before" });
    await until("the pause came", () => posted.some(({ row }) => row.data.entry.why === "before"), 60_000);
    await database.query(`update ${schema}.cluster set recovery = recovery + 1`);
    expect(await tower.events.forget("audit/lost")).toBe(true);
    posted.length = 0;
    await tower.resume("audited", { reason: "after" });
    await until("the whole log came again", () => seqs().includes(1), 60_000);
    await until("the resume came", () => posted.at(-1)?.row.data.entry.why === "after", 60_000);
    await tower.stop();
  });

  it("goes no more to a receiver that is forgotten while a process sends to it", async () => {
    const { tower, logged } = working("forgotten", hook());
    await tower.start();
    await until("the log came", () => seqs().includes(1), 60_000);
    expect(await tower.events.forget("audit/forgotten")).toBe(true);
    posted.length = 0;
    await tower.pause("audited", { reason: "after" });
    await until("it has ended", () => logged.some(({ message }) => message.includes("was forgotten")), 60_000);
    await tower.stop();
    expect(seqs()).not.toContain(1);
    expect(
      (await database.query(`select 1 from ${schema}.event_consumer where name = 'audit/forgotten'`)).rows,
    ).toEqual([]);
  });

  it("goes to a syslog server", async () => {
    const { tower } = working("siem", `syslog+tcp://${at(syslog)}`);
    await tower.start();
    await tower.pause("audited", { reason: "for syslog" });
    await until("the pause came", () => lines.some((line) => line.includes("for syslog")), 60_000);
    const rows = lines.map((line) => JSON.parse(line.replace(/^<109>1 \S+ \S+ carillon \d+ audit - /, "")) as Row);
    expect(rows.map(({ data }) => data.seq)).toEqual(rows.map((_, place) => place + 1));
    await tower.stop();
  });

  it("is not sent to a receiver with wrong options", () => {
    for (const [one, path, words] of [
      [{ url: hook(), audit: 1 }, "webhooks.a.audit", "must be true, false or a list"],
      [{ url: hook(), audit: [] }, "webhooks.a.audit", "must be true, false or a list"],
      [{ url: hook(), audit: ["tasks"] }, "webhooks.a.audit", 'did you mean "task"?'],
      [{ url: hook(), audit: true, task: "audited" }, "webhooks.a.task", "for the audit log"],
      [{ url: "syslog+tls://logs.example" }, "webhooks.a.url", "add audit: true"],
      [{ url: "syslog+tls://logs.example", audit: true, secret: "x" }, "webhooks.a.secret", "for a syslog server"],
      [{ url: "syslog+tls://logs.example/x", audit: true }, "webhooks.a.url", "must be syslog+tls"],
      [{ url: "syslog://logs.example", audit: true }, "webhooks.a.url", "must be an http"],
    ] as const)
      expect(() => make({ webhooks: { a: one } } as never), path).toThrow(
        expect.objectContaining({ code: "OPTION_INVALID", path, message: expect.stringContaining(words) }),
      );
    const plain = { webhooks: { a: { url: "syslog+tcp://logs.example", audit: true } }, requireTls: true };
    expect(() => make(plain as never)).toThrow(expect.objectContaining({ path: "webhooks.a" }));
  });
});
