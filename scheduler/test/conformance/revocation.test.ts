import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ApiStage } from "../support/api-stage.ts";
import { until } from "../support/store-stage.ts";

const stage = new ApiStage();
const change = () => ({ author: "test", reason: "leaked", nowMs: Date.now() });
beforeAll(async () => {
  await stage.open();
  await stage.serve();
});
afterAll(() => stage.close());

describe("what is revoked elsewhere", () => {
  test("is no key at a server that knew it a moment ago, and gets no secret there at all", async () => {
    const key = await stage.key("leaked");
    await stage.task("echo");
    const session = await stage.join(key);
    const run = await stage.claimed(key, session);
    const contract = () =>
      fetch(`${stage.urlOf(stage.second)}/v1/worker/poll/contract`, { headers: { authorization: `Bearer ${key}` } });
    expect((await contract()).status).toBe(200);
    await stage.store.workers.revokeKey("leaked", change());
    const secretOf = { runId: run.runId, fence: run.fence, name: "any" };
    expect(await stage.post(key, { session, secretOf }, { server: stage.second })).toMatchObject({
      status: 401,
      body: { code: "KEY_UNKNOWN" },
    });
    const other = await stage.key("leaked-too");
    const asked = () =>
      fetch(`${stage.urlOf(stage.second)}/v1/worker/poll/contract`, { headers: { authorization: `Bearer ${other}` } });
    expect((await asked()).status).toBe(200);
    await stage.store.workers.revokeKey("leaked-too", change());
    await until("the key is refused", async () => (await asked()).status === 401);
  });

  test("is followed no more: its stream ends", async () => {
    const made = await stage.client("viewer").createToken({ name: "leaked" });
    const response = await fetch(`${stage.urlOf(stage.second)}/v1/events`, {
      headers: { authorization: `Bearer ${made.secret}` },
    });
    expect(response.status).toBe(200);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    await stage.client("viewer").revokeToken({ token: "leaked", reason: "leaked" });
    let isOver = false;
    const rest = (async () => {
      while (!(await reader.read()).done);
      isOver = true;
    })();
    await until("its stream ends", () => isOver);
    await rest;
  });
});
