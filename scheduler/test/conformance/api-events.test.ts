import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/api/client.ts";
import { ApiStage } from "../support/api-stage.ts";
import { until } from "../support/store-stage.ts";

interface Heard {
  id: string;
  data: { type: string; run?: number; task?: string; error?: { code: string } };
}

const stage = new ApiStage();
let admin: Client;
/** Token of a user who may see only the namespace `theirs`. */
let stranger = "";

beforeAll(async () => {
  await stage.open();
  admin = stage.client();
  stranger = await stage.token("admin", { where: ["theirs"] });
  for (const task of ["ours/settle", "theirs/one", "theirs/two"])
    await admin.createTask({ task, options: { command: { argv: ["/usr/bin/true"] } } });
});
afterAll(() => stage.close());

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

/** Opens the stream of run events, as a browser's EventSource does. Resolves once the stream is open. */
async function follow(token: string, query = "", headers: Record<string, string> = {}) {
  const over = new AbortController();
  const response = await fetch(`${stage.urlOf()}/v1/events/runs${query}`, {
    headers: { authorization: `Bearer ${token}`, accept: "text/event-stream", ...headers },
    signal: over.signal,
  });
  expect(response.status).toBe(200);
  const heard: Heard[] = [];
  const reading = (async () => {
    let rest = "";
    try {
      for await (const text of (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
        const parts = (rest + text).split("\n\n");
        rest = parts.pop() ?? "";
        for (const part of parts) {
          const [, id, data] = /^id: (.*)\ndata: (.*)$/.exec(part) ?? [];
          if (id !== undefined && data !== undefined) heard.push({ id, data: JSON.parse(data) });
        }
      }
    } catch (error) {
      if (!over.signal.aborted) throw error;
    }
  })();
  const end = async () => {
    over.abort();
    await reading;
  };
  ends.push(end);
  await until("the stream stands", () => heard.length > 0);
  expect(heard[0]?.data).toEqual({ type: "listening" });
  return { heard, runs: () => heard.slice(1).map(({ data }) => data.run), end };
}

async function cancelled(task: string): Promise<number> {
  const { run } = await admin.runTask({ task, in: "1d" });
  await admin.cancelRun({ run });
  return run;
}

describe("run events over HTTP", () => {
  test("match the query, and continue after Last-Event-ID, even before the first event", async () => {
    const token = stage.tokens.viewer;
    const all = await follow(token);
    const [ofOne, failures] = [await follow(token, "?task=theirs/one"), await follow(token, "?type=run.failed")];
    const [one, two] = [await cancelled("theirs/one"), await cancelled("theirs/two")];
    await until("both are heard", () => all.heard.length === 3 && ofOne.heard.length === 2);
    expect(all.heard[1]?.data).toMatchObject({
      type: "run.cancelled",
      run: one,
      task: "theirs/one",
      error: { code: "CANCELLED" },
    });
    expect([all.runs(), ofOne.runs(), failures.runs()]).toEqual([[one, two], [one], []]);
    await all.end();
    const three = await cancelled("theirs/one");
    for (const [from, runs] of [
      [all.heard[0], [one, two, three]],
      [all.heard[1], [two, three]],
    ] as const) {
      const again = await follow(token, "?after=0", { "last-event-id": from?.id as string });
      await until("what was missed", () => again.heard.length === runs.length + 1);
      expect(again.runs()).toEqual(runs);
      const byQuery = await follow(token, `?after=${encodeURIComponent(from?.id as string)}`);
      await until("the same", () => byQuery.heard.length === runs.length + 1);
      expect(byQuery.runs()).toEqual(runs);
    }
  });

  test("of another namespace are never sent, even after a cursor from another caller", async () => {
    const everything = await follow(stage.tokens.admin);
    const [theirs, ours] = [await follow(stranger), await follow(stranger, "?namespace=ours")];
    const [foreign, own] = [await cancelled("ours/settle"), await cancelled("theirs/one")];
    await until("their own is heard", () => theirs.heard.length === 2 && everything.heard.length === 3);
    expect(theirs.runs()).toEqual([own]);
    expect(ours.runs()).toEqual([]);
    expect(everything.runs()).toEqual([foreign, own]);
    const behind = await follow(stranger, "", { "last-event-id": everything.heard[0]?.id as string });
    await until("their own is heard again", () => behind.heard.length === 2);
    expect(behind.runs()).toEqual([own]);
    const refused = await stage.ask("GET", "/v1/events/runs?task=ours/settle", { token: stranger });
    expect([refused.status, refused.body.code]).toEqual([403, "ACCESS_DENIED"]);
  });

  test("after an invalid or expired cursor are refused", async () => {
    const token = stage.tokens.viewer;
    const ask = (after: string) => stage.ask("GET", `/v1/events/runs?after=${after}`, { token });
    expect((await ask("nonsense")).body).toMatchObject({ code: "OPTION_INVALID" });
    const gone = await ask("0~1~0~5:5:~~~~");
    expect([gone.status, gone.body.code]).toEqual([410, "CURSOR_GONE"]);
    expect((await stage.ask("GET", "/v1/events/runs?type=run.odd", { token })).body).toMatchObject({
      code: "REQUEST_INVALID",
    });
  });
});
