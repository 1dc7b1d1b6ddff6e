import { createHmac } from "node:crypto";
import { request as startRequest } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeSecretKey } from "../../src/access/secrets/secret-keys.ts";
import type { Client } from "../../src/api/client.ts";
import { ApiStage } from "../support/api-stage.ts";

const stage = new ApiStage();
let api: Client;
const secret = "canary-secret-of-github";
const secretKeys = makeSecretKey();
beforeAll(async () => {
  await stage.open({ secretKeys });
  api = stage.client();
  for (const task of ["deploy", "triage", "team/deploy"]) await stage.task(task);
  await api.setSecret({ secret: "github", value: secret });
  await api.setSecret({ secret: "team-github", value: secret, tasks: ["team/deploy"] });
});
afterAll(async () => {
  expect(JSON.stringify(stage.lines)).not.toContain("canary");
  await stage.close();
});

interface Sent {
  body?: string;
  delivery?: string;
  key?: string;
  headers?: Record<string, string>;
}
/** Sends a request as GitHub does. */
async function send(
  hook: string,
  { body = '{"ref":"main"}', delivery = "d-1", key = secret, headers = {} }: Sent = {},
) {
  const answer = await fetch(`${stage.urlOf()}/v1/hooks/${hook}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-github-delivery": delivery,
      "x-hub-signature-256": `sha256=${createHmac("sha256", key).update(body).digest("hex")}`,
      ...headers,
    },
    body,
  });
  const text = await answer.text();
  expect(text).not.toContain("canary");
  return { status: answer.status, body: JSON.parse(text) };
}
const runOf = async (run: number) => api.getRun({ run });

describe("a request of an incoming webhook", () => {
  test("enqueues one run, also if it is delivered again after the run's end", async () => {
    await api.setHook({ hook: "github", secret: "github", scheme: "github", task: "deploy", delay: "1h" });
    const first = await send("github");
    expect(first).toEqual({ status: 202, body: { run: expect.any(Number), created: true } });
    const { run } = first.body;
    const found = await runOf(run);
    expect(found).toMatchObject({
      task: "deploy",
      payload: { ref: "main" },
      key: "github#d-1",
      labels: { hook: "github" },
      source: "enqueue",
    });
    expect(Date.parse(found.due) - Date.now()).toBeGreaterThan(3_000_000);
    expect(await send("github")).toEqual({ status: 202, body: { run, created: false } });
    await api.cancelRun({ run });
    expect(await send("github")).toEqual({ status: 202, body: { run, created: false } });
    expect((await send("github", { delivery: "d-2" })).body).toMatchObject({ created: true });
  });

  test("can be previewed: for the stored hook, and for one before it is stored", async () => {
    const stored = { secret: "github", scheme: "github" as const, task: "deploy", payload: "/after", delay: "/wait" };
    await api.setHook({ hook: "previewed", ...stored });
    const sent = { hook: "previewed", headers: { "X-GitHub-Delivery": "d-1" }, body: { after: "c0ffee", wait: "5m" } };
    const viewer = stage.client("viewer");
    expect(await viewer.previewHook(sent)).toEqual({
      run: { task: "deploy", payload: "c0ffee", key: "previewed#d-1", delay: "5m" },
    });
    const content = {
      ...stored,
      task: { by: "/kind", of: { push: "triage" } },
      delay: "1h",
      scheme: "bearer" as const,
    };
    expect(await viewer.previewHook({ ...sent, content })).toEqual({ run: null });
    expect(await viewer.previewHook({ ...sent, hook: "new", content, body: { kind: "push" } })).toEqual({
      run: { task: "triage", payload: null, key: null, delay: "1h" },
    });
    expect((await api.listRuns({ label: ["hook:previewed"] })).items).toEqual([]);
    for (const [given, code] of [
      [{ ...sent, headers: {} }, "REQUEST_INVALID"],
      [{ ...sent, body: { wait: "soon" } }, "DURATION_INVALID"],
      [{ ...sent, hook: "nowhere" }, "HOOK_UNKNOWN"],
      [{ ...sent, content: { ...stored, task: "team/deploy" } }, "OPTION_INVALID"],
    ] as const)
      await expect(viewer.previewHook(given), code).rejects.toMatchObject({ code });
  });

  test("takes its task, payload and key from where the hook says", async () => {
    const of = { push: "deploy", issues: "triage" };
    await api.setHook({
      hook: "mapped",
      secret: "github",
      scheme: "github",
      key: "/after",
      task: { by: "header:x-github-event", of },
      payload: { commit: "/after", who: "/sender/login", what: "header:x-github-event" },
    });
    const body = '{"after":"c0ffee","sender":{"login":"ann"}}';
    const issues = await send("mapped", { body, headers: { "x-github-event": "issues" } });
    expect(await runOf(issues.body.run)).toMatchObject({
      task: "triage",
      key: "mapped#c0ffee",
      payload: { commit: "c0ffee", who: "ann", what: "issues" },
    });
    expect(await send("mapped", { body, headers: { "x-github-event": "ping" } })).toEqual({
      status: 200,
      body: { ignored: true },
    });
    const { status, body: refused } = await send("mapped", { body: "{}", headers: { "x-github-event": "push" } });
    expect([status, refused.code, refused.path]).toEqual([400, "REQUEST_INVALID", "key"]);
    expect(stage.lines).toContainEqual(expect.objectContaining({ message: "a hook's request was refused" }));
  });

  test("of a namespace arrives with its / encoded or not", async () => {
    await api.setHook({ hook: "team/github", secret: "team-github", scheme: "github", task: "team/deploy" });
    expect((await send("team/github")).status).toBe(202);
    expect((await send("team%2Fgithub")).body).toMatchObject({ created: false });
  });

  test("is refused alike for a wrong signature and where there is no hook, it is off or its secret is gone", async () => {
    await api.setHook({ hook: "off", secret: "github", scheme: "github", task: "deploy", enabled: false });
    await api.setSecret({ secret: "brief", value: secret });
    await api.setHook({ hook: "unkeyed", secret: "brief", scheme: "github", task: "deploy" });
    await api.removeSecret({ secret: "brief" });
    const wrong = await send("github", { key: "another-secret" });
    expect([wrong.status, wrong.body.code]).toEqual([401, "HOOK_REFUSED"]);
    for (const hook of ["none", "off", "team", "..%2fgithub"]) expect([hook, await send(hook)]).toEqual([hook, wrong]);
    expect(await send("unkeyed")).toEqual(wrong);
    expect(await send("none", { key: "no hook has this secret" })).toEqual(wrong);
    expect(await send("github", { headers: { "x-hub-signature-256": "" } })).toEqual(wrong);
    expect(stage.lines).toContainEqual(
      expect.objectContaining({ message: expect.stringMatching(/^refused: There is no such incoming/) }),
    );
  });

  test("is refused if its body is no JSON, cannot be stored or is too large", async () => {
    for (const [sent, status, code] of [
      [{ body: "payload=%7B%7D" }, 400, "REQUEST_INVALID"],
      [{ body: "" }, 400, "REQUEST_INVALID"],
      [{ body: '{"a":"\\u0000"}' }, 400, "PAYLOAD_NOT_JSON"],
      [{ body: '{"a":12345678901234567890}' }, 400, "PAYLOAD_NOT_JSON"],
      [{ body: JSON.stringify("x".repeat(300_000)) }, 400, "PAYLOAD_TOO_LARGE"],
      [{ body: JSON.stringify("x".repeat(1_100_000)) }, 413, "REQUEST_TOO_LARGE"],
      [{ delivery: "x".repeat(300) }, 400, "OPTION_INVALID"],
    ] as const) {
      const answer = await send("github", sent);
      expect([code, answer.status, answer.body.code]).toEqual([code, status, code]);
    }
  });

  test("counts against the quota of its namespace", async () => {
    await api.setQuota({ kind: "namespace", name: "team", enqueues: 1 });
    await expect
      .poll(async () => (await send("team/github", { delivery: `q-${Math.random()}` })).body.code, { timeout: 60_000 })
      .toBe("QUOTA_EXCEEDED");
  });

  test("is verified by the secret's next version from then on", async () => {
    await api.setSecret({ secret: "github", value: "canary-next-secret" });
    await expect
      .poll(async () => (await send("github", { key: "canary-next-secret" })).status, { timeout: 60_000 })
      .toBe(202);
    expect((await send("github")).status).toBe(401);
  });
});

test("a server that stops enqueues nothing for a request that it has not read yet", async () => {
  await api.setSecret({ secret: "last", value: secret });
  await api.setHook({ hook: "last", secret: "last", scheme: "github", task: "deploy" });
  const server = await stage.serve({ secretKeys });
  const body = "{}";
  const request = startRequest(`${stage.urlOf(server)}/v1/hooks/last`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "content-length": body.length,
      "x-github-delivery": "d-1",
      "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
      expect: "100-continue",
    },
  });
  const answered = new Promise<number | undefined>((resolve, reject) =>
    request.on("error", reject).on("response", (response) => resolve(response.resume().statusCode)),
  );
  await new Promise((resolve) => {
    request.on("continue", resolve);
    request.flushHeaders();
  });
  const stopped = server.stop();
  const isServing = () =>
    fetch(`${stage.urlOf(server)}/v1/me`).then(
      ({ status }) => status !== 503,
      () => false,
    );
  await expect.poll(isServing, { timeout: 60_000, interval: 5 }).toBe(false);
  request.end(body);
  expect(await answered).toBe(503);
  await stopped;
});

describe("a hook", () => {
  test("is kept with its versions, and each change is in the audit", async () => {
    const hook = { hook: "kept", secret: "github", scheme: "bearer", task: "deploy" } as const;
    const made = await api.setHook({ ...hook, reason: "new" }, { ifVersion: 0 });
    expect(made).toMatchObject({ name: "kept", version: 1, task: "deploy", reason: "new" });
    await expect(api.setHook(hook, { ifVersion: 0 })).rejects.toMatchObject({ code: "HOOK_STALE" });
    expect((await api.setHook(hook, { ifVersion: 1 })).version, "unchanged").toBe(1);
    expect((await api.setHook({ ...hook, uniqueFor: "1h" }, { ifVersion: 1 })).version).toBe(2);
    expect((await api.listHooks({ limit: 200 })).items).toContainEqual(await api.getHook({ hook: "kept" }));
    await api.removeHook({ hook: "kept", reason: "over" });
    await expect(api.getHook({ hook: "kept" })).rejects.toMatchObject({ code: "HOOK_UNKNOWN" });
    await expect(api.removeHook({ hook: "kept" })).rejects.toMatchObject({ code: "HOOK_UNKNOWN" });
    expect((await api.setHook(hook)).version, "versions go on").toBe(3);
    const { items } = await api.listAudit({ about: "hook", named: "kept" });
    const content = { secret: "github", scheme: "bearer", task: "deploy" };
    expect(items.map(({ act, before, after, why }) => [act, before, after, why])).toEqual([
      ["create", null, content, ""],
      ["remove", { ...content, uniqueFor: "1h" }, null, "over"],
      ["edit", content, { ...content, uniqueFor: "1h" }, ""],
      ["create", null, content, "new"],
    ]);
  });

  test("is one of 50 of its namespace, and of 200", async () => {
    const made = async (namespace: string, at: number) => {
      const content = { secret: "of-all", scheme: "github", task: `${namespace}/deploy` } as const;
      await stage.store.hooks.set(`${namespace}/h${at}`, content, { author: "t", reason: "", nowMs: 1 }, null);
    };
    const namespaces = ["n1", "n2", "n3", "n4"];
    await api.setSecret({ secret: "of-all", value: secret, tasks: namespaces.map((one) => `${one}/deploy`) });
    for (let at = 0; at < 50; at++) await made("n1", at);
    const refused = (message: string) =>
      expect.objectContaining({ code: "OPTION_INVALID", message: expect.stringContaining(message) });
    await expect(made("n1", 50)).rejects.toEqual(refused("50 hooks in the namespace n1"));
    await made("n1", 49);
    for (const namespace of ["n2", "n3"]) for (let at = 0; at < 50; at++) await made(namespace, at);
    const left = 200 - (await api.listHooks({ limit: 200 })).items.length;
    for (let at = 0; at < left; at++) await made("n4", at);
    await expect(made("n4", left)).rejects.toEqual(refused("200 hooks already"));
    await stage.rows("delete from $s.hook where name like 'n_/%'");
  });

  test("can use only a secret that its tasks' runs may have", async () => {
    const forTeam = { hook: "team/other", scheme: "github", task: "team/deploy" } as const;
    for (const given of [
      { ...forTeam, secret: "github" },
      { ...forTeam, secret: "none" },
      { hook: "mine", scheme: "github", task: "deploy", secret: "team-github" } as const,
    ])
      await expect(api.setHook(given)).rejects.toMatchObject({
        code: "SECRET_FORBIDDEN",
        message: expect.stringContaining(given.secret),
      });
    await expect(api.setHook({ ...forTeam, task: "deploy", secret: "github" })).rejects.toMatchObject({
      code: "OPTION_INVALID",
      path: "task",
    });
    // Such a hook would verify requests by a secret that is for none of its tasks.
    const taskless = { ...forTeam, secret: "github", task: { by: "/t", of: {} } };
    await expect(api.setHook(taskless)).rejects.toMatchObject({ code: "REQUEST_INVALID", path: "task.of" });
    await expect(
      stage.store.hooks.set("team/none", taskless, { author: "t", reason: "", nowMs: 1 }, null),
    ).rejects.toMatchObject({ code: "SECRET_FORBIDDEN" });
    await api.setHook({ hook: "team/late", secret: "team-github", scheme: "github", task: "team/deploy" });
    await api.setSecret({ secret: "team-github", value: secret, tasks: ["team/else"] });
    await expect.poll(async () => (await send("team/late")).status, { timeout: 60_000 }).toBe(401);
  });
});
