import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { limits } from "../../src/base/limits.ts";
import { ApiStage } from "../support/api-stage.ts";
import type { Answer } from "../support/remote-stage.ts";
import { until } from "../support/store-stage.ts";

const stage = new ApiStage();
const change = () => ({ author: "test", reason: "leaked", nowMs: Date.now() });
beforeAll(async () => {
  await stage.open();
  await stage.serve();
});
afterAll(() => stage.close());

describe("a key revoked on another server", () => {
  test("is refused at once by a server that had cached it, and gets no secret there", async () => {
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

  test("that has expired is refused, and within a minute revoked with its sessions", async () => {
    const { workers } = stage.store;
    const api = stage.client("admin");
    const { expires, secret } = await api.createWorkerKey({ name: "brief", expiresIn: 2_000 });
    expect(Date.parse(expires as string)).toBeGreaterThan(Date.now());
    const session = await stage.join(secret);
    await until("the key is refused", async () => (await stage.post(secret, { session })).status === 401);
    expect((await stage.post(secret, { session })).body).toMatchObject({
      code: "KEY_UNKNOWN",
      detail: expect.stringMatching(/^the worker key brief (?:has expired|was revoked)$/),
    });
    const later = { author: "leader", reason: "it has expired", nowMs: Date.now() };
    await workers.revokeExpired(later);
    expect(await workers.revokeExpired(later), "once").toEqual([]);
    const { items } = await api.listWorkerKeys({});
    expect(items.find(({ name }) => name === "brief")).toMatchObject({ expires, revoked: expect.any(String) });
    expect(await stage.rows("select from $s.session where id = $1 and ended_ms is null", [session])).toEqual([]);
    // The name can be used for a new key; a key without an expiry stays valid.
    expect(await api.createWorkerKey({ name: "brief" })).toMatchObject({ expires: null, revoked: null });
    await expect(api.createWorkerKey({ name: "long", expiresIn: "11000d" })).rejects.toMatchObject({
      code: "OPTION_INVALID",
    });
  });

  test("for workers: every later poll is answered with 401, also a waiting one, at every server, at any frequency", async () => {
    const key = await stage.key("lost");
    const session = await stage.join(key);
    const other = await stage.join(key);
    // Each server has cached the key and one of the sessions, and a long poll of this session waits there.
    const waiting = [stage.server, stage.second].map((server, at) =>
      stage.post(key, { session: [session, other][at], waitMs: limits.pollWaitMs }, { server }),
    );
    for (const at of [0, 1])
      await stage.poll(key, { session: [session, other][at], want: 0 }, [stage.server, stage.second][at]);
    await stage.client("admin").revokeWorkerKey({ key: "lost", reason: "leaked" });
    const words = (answer: Answer) => [answer.status, answer.body.code, answer.body.detail];
    const refused = [401, "KEY_UNKNOWN", "the worker key lost was revoked"];
    // More requests than wrong keys are allowed: a revoked key is known, so it does not count as a guess.
    for (let n = 0; n < 25; n++) expect(words(await stage.post(key, { session }))).toEqual(refused);
    expect((await Promise.all(waiting)).map(words)).toEqual([refused, refused]);
    expect(words(await stage.post(key, { session: other }, { server: stage.second }))).toEqual(refused);
    expect(words(await stage.post(key, { join: { name: "lost", former: session } }))).toEqual(refused);
  });

  test("for workers, without a signal: a poll that finds its session ended gets KEY_UNKNOWN", async () => {
    const key = await stage.key("unsaid");
    const session = await stage.join(key, { timeoutMs: 1_500 });
    const waiting = stage.post(key, { session, waitMs: limits.pollWaitMs });
    await stage.rows(
      `with revoked as (update $s.worker_key set revoked_ms = 1 where name = 'unsaid' returning id)
       update $s.session set ended_ms = 1 where key_id = (select id from revoked)`,
    );
    expect(await waiting).toMatchObject({ status: 401, body: { code: "KEY_UNKNOWN" } });
  });

  test("ends the event stream opened with it", async () => {
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
