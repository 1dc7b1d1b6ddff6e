import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EventReader } from "../../src/api/event-reader.ts";
import { seeded } from "../../src/base/random.ts";
import { ApiStage } from "../support/api-stage.ts";

const stage = new ApiStage();
beforeAll(async () => {
  await stage.open();
  await stage.task("talking", { group: "nobody" });
});
afterAll(() => stage.close());

const waiting = async () => (await stage.server.enqueue("talking", null, { in: "1d" })).runId;

const line = (runId: number, atMs: number, message: string) => ({
  runId,
  attempt: 1,
  atMs,
  level: "info" as const,
  message,
  fields: null,
});

/** Reads a stream of log lines and disconnects after `count` lines. @returns their messages, and the event id from which to resume */
async function tailed(runId: number, count: number, lastEventId: string | undefined) {
  const over = new AbortController();
  const response = await fetch(`${stage.urlOf()}/v1/runs/${runId}/logs/tail`, {
    headers: {
      authorization: `Bearer ${stage.tokens.viewer}`,
      ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
    },
    signal: AbortSignal.any([over.signal, AbortSignal.timeout(90_000)]),
  });
  expect(response.status, await (response.ok ? "" : response.text())).toBe(200);
  const events: { id: string; message: string }[] = [];
  const reader = new EventReader();
  const decoder = new TextDecoder();
  let [text, id] = ["", lastEventId ?? ""];
  for await (const bytes of response.body as ReadableStream<Uint8Array>) {
    text += decoder.decode(bytes, { stream: true });
    const whole = text.lastIndexOf("\n\n") + 2;
    for (const event of text.slice(0, whole).split("\n\n")) {
      id = /^id: (.*)$/m.exec(event)?.[1] ?? id;
      for (const data of reader.read(`${event}\n\n`)) events.push({ id, message: JSON.parse(data).line.message });
    }
    text = text.slice(whole);
    if (events.length >= count) break;
  }
  over.abort();
  const taken = events.slice(0, count);
  return { told: taken.map(({ message }) => message), id: taken.at(-1)?.id };
}

describe("a log that is followed while its lines arrive out of order", () => {
  test("is received once and completely, however often the stream breaks off", async () => {
    const runId = await waiting();
    const random = seeded(11);
    const told: string[] = [];
    let [written, id] = [0, undefined as string | undefined];
    while (written < 600) {
      const nowMs = Date.now();
      const lines = Array.from({ length: 50 }, (_, i) => {
        const lateMs = Math.floor(random.next() * (random.next() < 0.5 ? 4_000 : 600_000));
        return line(runId, nowMs - lateMs, `line ${written + i}`);
      });
      await stage.store.runs.writeLogs(lines, nowMs);
      written += lines.length;
      const some = 1 + Math.floor(random.next() * (written - told.length));
      const part = await tailed(runId, some, id);
      told.push(...part.told);
      id = part.id;
    }
    if (told.length < written) told.push(...(await tailed(runId, written - told.length, id)).told);
    const all = Array.from({ length: written }, (_, i) => `line ${i}`);
    expect(told.toSorted()).toEqual(all.toSorted());
  });

  test("includes lines of a transaction that committed after later lines", async () => {
    const runId = await waiting();
    const nowMs = Date.now();
    const client = await stage.sql.connect();
    try {
      await client.query("begin");
      await client.query(
        `insert into ${stage.schema}.run_log (run_id, attempt, at_ms, level, message) values ($1, 1, $2, 1, 'slow')`,
        [runId, nowMs - 30_000],
      );
      await stage.store.runs.writeLogs([line(runId, nowMs, "quick"), line(runId, nowMs + 1, "quicker")], nowMs);
      const first = await tailed(runId, 1, undefined);
      const second = await tailed(runId, 1, first.id);
      expect([...first.told, ...second.told]).toEqual(["quick", "quicker"]);
      await client.query("commit");
      await stage.store.runs.writeLogs([line(runId, nowMs - 60_000, "last")], nowMs);
      const third = await tailed(runId, 2, second.id);
      expect(third.told.toSorted()).toEqual(["last", "slow"]);
    } finally {
      client.release();
    }
  });

  test("continues from a page with the lines written after the page was read", async () => {
    const runId = await waiting();
    const nowMs = Date.now();
    const api = stage.client("viewer");
    await stage.store.runs.writeLogs([line(runId, nowMs, "one"), line(runId, nowMs + 1, "two")], nowMs);
    const { items, tail } = await api.listLogs({ run: runId });
    expect(items.map(({ message }) => message)).toEqual(["one", "two"]);
    await stage.store.runs.writeLogs([line(runId, nowMs - 20_000, "late"), line(runId, nowMs + 2, "three")], nowMs);
    const heard: string[] = [];
    let after = tail;
    for (let lines = 0; lines < 2; lines++)
      for await (const event of api.tailLogs({ run: runId, after })) {
        if (event.type !== "line") continue;
        heard.push(event.line.message);
        after = event.after;
        break;
      }
    expect(heard).toEqual(["late", "three"]);
  });

  test.each(["~", "1~", "0.1~1.1", "5.3.4~", "5.9.4.3~", "5.9~5.9~x", "5.9~5.9~1(1,1)~", "9223372036854775807.1~"])(
    "refuses an invalid position: %s",
    async (after) => {
      const tail = stage.client("viewer").tailLogs({ run: await waiting(), after });
      await expect(tail[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: "REQUEST_INVALID" });
    },
  );
});
