import { randomBytes } from "node:crypto";
import { Agent, request } from "node:http";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { limits } from "../../src/base/limits.ts";
import { postWhole } from "../support/post-whole.ts";
import { RemoteStage, said } from "../support/remote-stage.ts";

const stage = new RemoteStage();
let key = "";

beforeAll(async () => {
  await stage.serve();
  key = await stage.key("mine");
  await stage.task("echo");
});
afterAll(() => stage.close());

describe("a poll's body", () => {
  test("can be compressed, and answers are compressed on request", async () => {
    const session = await stage.join(key);
    const answer = await fetch(`${stage.urlOf()}/v1/worker/poll`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", "content-encoding": "gzip" },
      body: gzipSync(JSON.stringify({ session })),
    });
    expect(answer.status).toBe(200);
    const contract = await fetch(`${stage.urlOf()}/v1/worker/poll/contract`, {
      headers: { authorization: `Bearer ${key}`, "accept-encoding": "gzip" },
    });
    expect(contract.headers.get("content-encoding")).toBe("gzip");
    const described = (await contract.json()) as { openapi: string; paths: Record<string, object> };
    expect(described.openapi).toBe("3.1.0");
    expect(JSON.stringify(described.paths["/v1/worker/poll"])).toMatch(/"additionalProperties":false.*"verdicts"/s);
    expect((await fetch(`${stage.urlOf()}/nowhere`, { headers: { authorization: `Bearer ${key}` } })).status).toBe(404);
  });

  test("of endless length is cut off while being read, also when it only unpacks to one", async () => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const told = await new Promise<number>((resolve, reject) => {
      const call = request(`${stage.urlOf()}/v1/worker/poll`, {
        method: "POST",
        headers: { ...headers, "content-length": 2 ** 30 },
      });
      call.on("response", ({ statusCode = 0 }) => {
        resolve(statusCode);
        call.destroy();
      });
      call.on("error", reject);
      call.write(" ");
    });
    expect(told).toBe(413);
    const sent = await new Promise<number>((resolve) => {
      const call = request(`${stage.urlOf()}/v1/worker/poll`, { method: "POST", headers });
      const block = Buffer.alloc(1024 * 1024, 0x20);
      let bytes = 0;
      // The server closes the connection, either with its response or before the client could read it.
      const over = () => {
        call.destroy();
        resolve(bytes);
      };
      const more = () => {
        if (call.destroyed || bytes >= 2 ** 30) return over();
        bytes += block.length;
        call.write(block, () => setImmediate(more));
      };
      call.on("response", over);
      call.on("error", over);
      more();
    });
    expect(sent).toBeLessThan(4 * limits.pollBytes);
    const bomb = await fetch(`${stage.urlOf()}/v1/worker/poll`, {
      method: "POST",
      headers: { ...headers, "content-encoding": "gzip" },
      body: gzipSync(Buffer.alloc(8 * limits.pollBytes, 0x20)),
    });
    expect([bomb.status, ((await bomb.json()) as { code: string }).code]).toEqual([413, "REQUEST_TOO_LARGE"]);
  });

  test("that does not match its encoding is reported, at any size, and the connection stays usable", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const sent = (body: Buffer, coding: string) =>
      postWhole(`${stage.urlOf()}/v1/worker/poll`, agent, { ...headers, "content-encoding": coding }, body);
    const plainly = Buffer.alloc(8 * 1024 * 1024, 0x20);
    const packed = gzipSync(randomBytes(4 * 1024 * 1024));
    const spoilt = Buffer.concat([packed.subarray(0, 2 * 1024 * 1024), Buffer.alloc(2 * 1024 * 1024, 0xff)]);
    for (const [body, coding, what] of [
      [plainly, "gzip", /cannot be unpacked/],
      [plainly, "deflate", /cannot be unpacked/],
      [plainly, "br", /"br" is not known/],
      [spoilt, "gzip", /cannot be unpacked/],
      [packed.subarray(0, 3 * 1024 * 1024), "gzip", /cannot be unpacked: unexpected end/],
      [Buffer.from("{}"), "gzip", /cannot be unpacked/],
    ] as const) {
      const { status, code, detail } = await sent(body, coding);
      expect([coding, status, code, detail]).toEqual([coding, 400, "REQUEST_INVALID", expect.stringMatching(what)]);
    }
    headers["content-type"] = "text/csv";
    expect(await sent(packed, "gzip")).toMatchObject({ status: 400 });
    headers["content-type"] = "application/json";
    expect(await sent(gzipSync("{}"), "gzip")).toMatchObject({ detail: expect.stringContaining("session or join") });
    agent.destroy();
  });
});

describe("numbers that JavaScript cannot represent exactly", () => {
  const [large, endless] = ["12345678901234567890", "1e400"];
  /** Sends the body with these numbers as text, because JSON.stringify would round them. */
  const post = (session: number, parts: object) =>
    stage.post(
      key,
      JSON.stringify({ session, ...parts })
        .replaceAll('"LARGE"', large)
        .replaceAll('"ENDLESS"', endless),
    );
  const told = ({ body }: Awaited<ReturnType<typeof post>>) =>
    body.refused.map(({ runId, part, status, code, path }) => [runId, part, status, code, path]);

  test("in one verdict: it is refused with its path, and the other parts of the poll are processed", async () => {
    const session = await stage.join(key);
    const [first, wrong, chain, last] = [
      await stage.claimed(key, session),
      await stage.claimed(key, session),
      await stage.claimed(key, session),
      await stage.claimed(key, session),
    ];
    const next = { outcome: "succeeded", onward: { continueAs: { payload: ["ENDLESS"] } } };
    const answer = await post(session, {
      verdicts: [
        said(first, { outcome: "succeeded", result: 9_007_199_254_740_992 }),
        said(wrong, { outcome: "succeeded", result: { ids: [1, "LARGE", "ENDLESS"] } }),
        said(chain, next),
        said(last, { outcome: "failed", retry: false, error: { message: large } }),
        said(wrong),
      ],
    });
    expect(answer.status).toBe(200);
    expect(told(answer)).toEqual([
      [wrong.runId, "verdict", 400, "PAYLOAD_NOT_JSON", "verdicts.1.result.ids.1"],
      [chain.runId, "verdict", 400, "PAYLOAD_NOT_JSON", "verdicts.2.onward.continueAs.payload.0"],
      [wrong.runId, "verdict", 400, "PAYLOAD_NOT_JSON", "verdicts.1.result.ids.1"],
    ]);
    expect(answer.body.refused[0]?.message).toBe(
      `run ${wrong.runId}: the verdict has ${large} at verdicts.1.result.ids.1, which a number cannot hold exactly; give it as a text, in quotes`,
    );
    const states = async () =>
      Promise.all([first, wrong, chain, last].map(async ({ runId }) => (await stage.store.runs.find(runId)).state));
    expect(await states()).toEqual(["succeeded", "claimed", "claimed", "failed"]);
    // The refused verdicts did not end the claims, so other verdicts may be sent for them.
    const again = await post(session, {
      verdicts: [said(wrong, { outcome: "succeeded", result: { ids: [large] } }), said(chain)],
    });
    expect(told(again)).toEqual([]);
    expect(await states()).toEqual(["succeeded", "succeeded", "succeeded", "failed"]);
    expect((await stage.store.runs.find(wrong.runId)).result).toEqual({ ids: [large] });
  });

  test("before the end: a state and a spawn are refused, a report and a log line are kept without the number", async () => {
    const session = await stage.join(key);
    const run = await stage.claimed(key, session);
    const claim = { runId: run.runId, fence: run.fence };
    const answer = await post(session, {
      reports: [{ ...claim, startedAgoMs: 0, progress: { done: "LARGE" } }],
      logs: [
        { ...claim, message: "one", fields: { n: "ENDLESS" }, agoMs: 2 },
        { ...claim, message: "two", fields: { n: 0.1 } },
      ],
      states: [{ ...claim, state: "LARGE" }],
      spawns: [{ ...claim, children: [{ task: "echo", key: "a", payload: [["LARGE"]] }] }],
      verdicts: [said(run)],
    });
    expect(told(answer).slice(0, -1)).toEqual([
      [run.runId, "report", 400, "PAYLOAD_NOT_JSON", "reports.0.progress.done"],
      [run.runId, "log", 400, "PAYLOAD_NOT_JSON", "logs.0.fields.n"],
      [run.runId, "state", 400, "PAYLOAD_NOT_JSON", "states.0.state"],
      [run.runId, "spawn", 400, "PAYLOAD_NOT_JSON", "spawns.0.children.0.payload.0.0"],
    ]);
    expect(told(answer).at(-1)).toEqual([run.runId, "verdict", 400, "REQUEST_INVALID", undefined]);
    expect(await stage.store.runs.logs(run.runId, 9)).toMatchObject([
      { message: "one", fields: null },
      { message: "two", fields: { n: 0.1 } },
    ]);
    expect(
      await stage.rows("select started_ms is not null as started, progress, checkpoint from $s.run where id = $1", [
        run.runId,
      ]),
    ).toEqual([{ started: true, progress: null, checkpoint: null }]);
    expect(told(await post(session, { verdicts: [said(run)] }))).toEqual([]);
  });

  test("in other places: a time may have more digits than a number, a session is refused by the contract", async () => {
    const session = await stage.join(key);
    const run = await stage.claimed(key, session);
    const text = JSON.stringify({ session, verdicts: [{ ...said(run), endedAgoMs: "AGO" }] });
    const answer = await stage.post(key, text.replace('"AGO"', "0.12345678901234567891"));
    expect([answer.status, answer.body.refused]).toEqual([200, []]);
    expect(await stage.post(key, `{"session":${large}}`)).toMatchObject({
      status: 400,
      body: { code: "REQUEST_INVALID", detail: expect.stringContaining("session") },
    });
  });
});
