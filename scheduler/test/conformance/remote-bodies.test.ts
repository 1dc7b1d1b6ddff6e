import { randomBytes } from "node:crypto";
import { Agent, request } from "node:http";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { limits } from "../../src/base/limits.ts";
import { postWhole } from "../support/post-whole.ts";
import { RemoteStage } from "../support/remote-stage.ts";

const stage = new RemoteStage();
let key = "";

beforeAll(async () => {
  await stage.serve();
  key = await stage.key("mine");
  await stage.task("echo");
});
afterAll(() => stage.close());

describe("a poll's body", () => {
  test("packed bodies are read, answers are packed where that is wanted", async () => {
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

  test("with a body without end is cut off while it is read, and so is one that unpacks to one", async () => {
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
      // The server closes: with its answer, or before that is read.
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

  test("with a body that is not what its encoding says is told so, however large it is, and the line stays good", async () => {
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
