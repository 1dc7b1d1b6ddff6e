import { createHash, createHmac } from "node:crypto";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { ownSchema } from "../support/own-schema.ts";
import { everyPostgres } from "../support/servers.ts";
import { recordingLog, until } from "../support/store-stage.ts";

/** An event in the JSON format of CloudEvents 1.0: the required attributes, and further ones with names that the specification allows. */
const cloudEvent = z
  .object({
    specversion: z.literal("1.0"),
    id: z.string().min(1),
    source: z.string().regex(/^\/carillon\/[\w-]+$/),
    type: z.string().regex(/^carillon\.run\.\w+$/),
    subject: z.string().min(1),
    time: z.iso.datetime(),
    datacontenttype: z.literal("application/json"),
    data: z.strictObject({
      run: z.int(),
      task: z.string(),
      attempt: z.int(),
      slot: z.iso.datetime().nullable(),
      key: z.string().nullable(),
      result: z.unknown().optional(),
      error: z.unknown().optional(),
    }),
  })
  .refine((event) => Object.keys(event).every((name) => /^[a-z0-9]{1,20}$/.test(name)));

interface Posted {
  path: string;
  headers: IncomingHttpHeaders;
  raw: string;
  event: z.infer<typeof cloudEvent>;
}

const posted: Posted[] = [];
/** HTTP statuses of the next responses; null: no response. While the list is empty, the status is 204. */
const answers: (number | null)[] = [];
const receiver = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const raw = Buffer.concat(chunks).toString();
    posted.push({
      path: request.url ?? "",
      headers: request.headers,
      raw,
      event: cloudEvent.parse(JSON.parse(raw)),
    });
    const [status = 204] = answers.splice(0, 1);
    if (status !== null) response.writeHead(status).end();
  });
});
let at: string;
beforeAll(async () => {
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  at = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
});
afterAll(() => {
  receiver.closeAllConnections();
  return new Promise((resolve) => receiver.close(resolve));
});

describe.each(everyPostgres())("event webhooks, on $title", ({ url }) => {
  const { make } = ownSchema(url, "webhooks", { drain: 0 });
  const { log, lines } = recordingLog();
  afterEach(() => {
    lines.length = 0;
    posted.length = 0;
    answers.length = 0;
  });
  const working = async (webhooks: object) => {
    const tower = make({ log, webhooks } as Parameters<typeof make>[0]);
    tower.task("fine", {}, () => ({ sum: 7 }));
    tower.task("team/fine", {}, () => null);
    tower.task("bad", {}, () => {
      throw new Error("it is bad");
    });
    return tower.start();
  };
  const of = (path: string) => posted.filter((one) => one.path === path);

  it("get each event of their filter as a signed CloudEvent", async () => {
    const tower = await working({
      all: { url: `${at}/all`, secret: "canary-secret" },
      failures: { url: `${at}/failures?key=canary-key`, types: ["run.failed"] },
      team: { url: `${at}/team`, namespace: "team" },
      one: { url: `${at}/one`, task: "fine" },
    });
    const fine = await tower.enqueue("fine", null, { key: "k" });
    await tower.enqueue("team/fine", null);
    const bad = await tower.enqueue("bad", null);
    await until("all came", () => of("/all").length >= 3 && posted.length >= 6, 60_000);
    expect(
      of("/all")
        .map(({ event }) => `${event.type} ${event.subject}`)
        .sort(),
    ).toEqual(["carillon.run.failed bad", "carillon.run.succeeded fine", "carillon.run.succeeded team/fine"]);
    expect(of("/failures?key=canary-key").map(({ event }) => event.data)).toEqual([
      {
        run: bad.runId,
        task: "bad",
        attempt: 1,
        slot: null,
        key: null,
        error: expect.objectContaining({ message: "it is bad" }),
      },
    ]);
    expect(of("/team").map(({ event }) => event.subject)).toEqual(["team/fine"]);
    expect(of("/one").map(({ event }) => event.data)).toEqual([
      { run: fine.runId, task: "fine", attempt: 1, slot: null, key: "k", result: { sum: 7 } },
    ]);
    for (const { headers, raw, event } of of("/all")) {
      expect(headers["content-type"]).toBe("application/cloudevents+json; charset=utf-8");
      expect(headers["carillon-event"]).toBe(event.id);
      const digest = `sha-256=:${createHash("sha256").update(raw).digest("base64")}:`;
      const input = String(headers["signature-input"]).replace(/^carillon=/, "");
      expect(input).toMatch(
        /^\("@method" "@authority" "@path" "@query" "content-digest" "carillon-event"\);created=\d+;keyid="events"$/,
      );
      const base = [
        '"@method": POST',
        `"@authority": ${headers.host}`,
        '"@path": /all',
        '"@query": ?',
        `"content-digest": ${digest}`,
        `"carillon-event": ${event.id}`,
        `"@signature-params": ${input}`,
      ].join("\n");
      const wanted = createHmac("sha256", "canary-secret").update(base).digest("base64");
      expect([headers["content-digest"], headers.signature]).toEqual([digest, `carillon=:${wanted}:`]);
    }
    expect(of("/one")[0]?.headers.signature).toBeUndefined();
    expect(JSON.stringify(lines)).not.toContain("canary");
    expect(new Set(posted.map(({ event }) => event.source)).size).toBe(1);
    await tower.stop();
  });

  it("get a refused event again, with the same id, and later events after it", async () => {
    const tower = await working({ again: { url: `${at}/again` } });
    answers.push(500, 302);
    const first = await tower.enqueue("fine", null);
    await until("the first came thrice", () => posted.length >= 3, 60_000);
    const second = await tower.enqueue("fine", null);
    await until("the second came", () => posted.length >= 4, 60_000);
    expect(posted.map(({ event }) => event.data.run)).toEqual([first.runId, first.runId, first.runId, second.runId]);
    expect(new Set(posted.slice(0, 3).map(({ event }) => event.id)).size).toBe(1);
    await tower.stop();
  });

  it("get an event again from the next process if the one posting it ended", async () => {
    const webhooks = { over: { url: `${at}/over` } };
    const one = await working(webhooks);
    answers.push(null);
    const run = await one.enqueue("fine", null);
    await until("it was posted", () => posted.length === 1, 60_000);
    await one.stop();
    const other = await working(webhooks);
    await until("it was posted again", () => posted.length > 1, 60_000);
    expect(posted.map(({ event }) => event.data.run)).toEqual([run.runId, run.runId]);
    await other.stop();
  });

  it("are refused with the path and the reason", () => {
    for (const [webhooks, path, words] of [
      [{ a: { url: "x" } }, "webhooks.a.url", "must be an http:// or https:// URL"],
      [{ a: { ulr: at } }, "webhooks.a.ulr", 'did you mean "url"?'],
      [{ a: { url: at, types: ["run.faild"] } }, "webhooks.a.types", 'did you mean "run.failed"?'],
      [{ a: { url: at, types: [] } }, "webhooks.a.types", "must be a list"],
      [{ a: { url: at, secret: "" } }, "webhooks.a.secret", "must be a text"],
      [{ "a b": { url: at } }, "webhooks.a b", "cannot be called so"],
      [{ a: "x" }, "webhooks.a", "must be an object"],
    ] as const)
      expect(() => make({ webhooks } as unknown as Parameters<typeof make>[0]), path).toThrow(
        expect.objectContaining({ code: "OPTION_INVALID", path, message: expect.stringContaining(words) }),
      );
    expect(() => make({ webhooks: { a: { url: at, allow: ["10.1.0.0/99"] } } })).toThrow("webhooks.a.allow");
  });
});
