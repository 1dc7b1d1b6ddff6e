import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeSecretKey } from "../../src/access/secrets/secret-keys.ts";
import type { Client } from "../../src/api/client.ts";
import { writes } from "../../src/api/contract/route.ts";
import { type RouteId, routeIds, shapeOf } from "../../src/api/contract.ts";
import { ApiStage } from "../support/api-stage.ts";

const stage = new ApiStage();
let admin: Client;
beforeAll(async () => {
  await stage.open({ secretKeys: makeSecretKey() });
  admin = stage.client();
});
afterAll(() => stage.close());

const password = "seven bells at noon";

describe("reading a single user, token, worker key or silence", () => {
  test("a user: as in the list, with its version as ETag, by admins only, and not after its removal", async () => {
    const made = await admin.createUser({ name: "ann", password, role: "operator" });
    expect(await admin.getUser({ user: "ann" })).toEqual(made);
    const { headers, body } = await stage.ask("GET", "/v1/users/ann", { token: stage.tokens.admin });
    expect(headers.get("etag")).toContain(`"${made.version}.`);
    expect(JSON.stringify(body)).not.toMatch(/scrypt|bells/);
    const changed = await admin.changeUser({ user: "ann", role: "viewer" }, { ifVersion: made.version });
    expect(await admin.getUser({ user: "ann" })).toEqual(changed);
    await expect(stage.client("editor").getUser({ user: "ann" })).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    await admin.removeUser({ user: "ann" });
    await expect(admin.getUser({ user: "ann" })).rejects.toMatchObject({ code: "USER_UNKNOWN" });
  });

  test("a token: the caller's own, or anyone's for an admin, and the newest of its name", async () => {
    const operator = stage.client("operator");
    const { user } = await operator.getMe();
    const { secret, ...made } = await operator.createToken({ name: "ci", scopes: ["runs:read"] });
    expect(await operator.getToken({ token: "ci" })).toEqual(made);
    expect(await admin.getToken({ token: "ci", user })).toEqual(made);
    const { body } = await stage.ask("GET", "/v1/tokens/ci", { token: stage.tokens.operator });
    expect(JSON.stringify(body)).not.toContain(secret.slice(-20));
    // For a caller without rights, a token of another user looks like one that does not exist.
    for (const asked of [{ token: "ci" }, { token: "ci", user }, { token: "none", user }])
      await expect(stage.client("viewer").getToken(asked)).rejects.toMatchObject({ code: "TOKEN_UNKNOWN" });
    for (const asked of [{ token: "ci" }, { token: "none", user }, { token: "ci", user: "nobody" }])
      await expect(admin.getToken(asked)).rejects.toMatchObject({ code: "TOKEN_UNKNOWN" });
    await operator.revokeToken({ token: "ci" });
    expect(await operator.getToken({ token: "ci" })).toMatchObject({ ...made, revoked: expect.any(String) });
    const { secret: _, ...next } = await operator.createToken({ name: "ci" });
    expect(await operator.getToken({ token: "ci" })).toEqual({ ...next, revoked: null });
  });

  test("a silence: by users who can see its task, until it ends; its Location is in the answer that created it", async () => {
    await stage.task("theirs/loud");
    const theirs = stage.clientOf(await stage.token("operator", { where: ["theirs"] }));
    const made = await theirs.silenceAlarms({ task: "theirs/loud", for: "1h" });
    const { silence } = made;
    for (const api of [theirs, admin]) expect(await api.getSilence({ silence })).toEqual(made);
    const ours = stage.clientOf(await stage.token("admin", { where: ["ours"] }));
    await expect(ours.getSilence({ silence })).rejects.toMatchObject({ code: "ALARM_UNKNOWN" });
    const { headers } = await stage.ask("POST", "/v1/alarm-silences", {
      token: stage.tokens.operator,
      body: { rule: "late", for: "1h" },
    });
    expect(headers.get("location")).toBe(`/v1/alarm-silences/${silence + 1}`);
    await theirs.endSilence({ silence });
    await expect(admin.getSilence({ silence })).rejects.toMatchObject({ code: "ALARM_UNKNOWN" });
  });

  test("a worker key: by an admin of its namespace, revoked or not, and the newest of its name", async () => {
    const theirs = stage.clientOf(await stage.token("admin", { where: ["theirs"] }));
    const { secret, ...made } = await theirs.createWorkerKey({ name: "theirs/key", groups: ["theirs/gpu"] });
    for (const api of [theirs, admin]) expect(await api.getWorkerKey({ key: "theirs/key" })).toEqual(made);
    const { body } = await stage.ask("GET", "/v1/worker-keys/theirs%2Fkey", { token: stage.tokens.admin });
    expect(JSON.stringify(body)).not.toContain(secret.slice(-20));
    await admin.createWorkerKey({ name: "ours/key" });
    for (const key of ["ours/key", "ours/none"])
      await expect(theirs.getWorkerKey({ key })).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    const revoked = await theirs.revokeWorkerKey({ key: "theirs/key" });
    expect(await theirs.getWorkerKey({ key: "theirs/key" })).toEqual(revoked);
    const { secret: _, ...next } = await theirs.createWorkerKey({ name: "theirs/key", groups: ["theirs/cpu"] });
    expect(await theirs.getWorkerKey({ key: "theirs/key" })).toEqual(next);
    await expect(admin.getWorkerKey({ key: "none" })).rejects.toMatchObject({ code: "KEY_NAME_UNKNOWN" });
  });
});

describe("a cached answer and its ETag", () => {
  const paths: Partial<Record<RouteId, string>> = {
    getTask: "/v1/tasks/kept",
    getCalendar: "/v1/calendars/bank",
    getUser: "/v1/users/kim",
    getAlarmRule: "/v1/alarm-rules/kept",
    getHook: "/v1/hooks/kept",
  };
  const tagged = routeIds.filter((routeId) => shapeOf(routeId).etag !== undefined && !writes(shapeOf(routeId)));
  const read = (path: string, held?: string, token = stage.tokens.admin) =>
    stage.ask("GET", path, { token, ...(held === undefined ? {} : { headers: { "if-none-match": held } }) });

  beforeAll(async () => {
    await admin.setCalendar({ calendar: "bank", zone: "UTC", weekend: [], holidays: [] }, { ifVersion: 0 });
    await admin.createUser({ name: "kim", password, role: "viewer" });
    await admin.createAlarmRule({ name: "kept", kind: "ended" });
    await admin.createTask({ task: "kept", options: { command: { argv: ["/usr/bin/true"] } } });
    await admin.setSecret({ secret: "kept", value: "eight bells at dawn" });
    await admin.setHook({ hook: "kept", secret: "kept", scheme: "bearer", task: "kept" });
  });

  test("are tested for every route that returns an ETag", () => {
    expect(Object.keys(paths).sort()).toEqual([...tagged].sort());
  });

  test.each(tagged)("%s: a request with the current ETag in If-None-Match gets 304 without a body", async (routeId) => {
    const path = paths[routeId] as string;
    const first = await read(path);
    const tag = first.headers.get("etag") as string;
    expect([first.status, tag]).toEqual([200, expect.stringMatching(/^"\d+\.[\w-]{16}"$/)]);
    for (const held of [tag, `"1.other", ${tag}`, `W/${tag}`, "*"]) {
      const again = await read(path, held);
      expect([held, again.status, again.body, again.headers.get("etag")]).toEqual([held, 304, undefined, tag]);
    }
    // The version alone does not match the ETag, because parts of the response change without a new version.
    for (const held of ['"1"', `"${first.body.version}"`, "nonsense", '"1.other"'])
      expect([held, (await read(path, held)).status]).toEqual([held, 200]);
    await expect(read(path, tag, "nonsense")).resolves.toMatchObject({ status: 401 });
  });

  test("are out of date after a pause, although a pause makes no new version", async () => {
    const before = await read("/v1/tasks/kept");
    const tag = before.headers.get("etag") as string;
    await admin.pauseTask({ task: "kept" });
    const after = await read("/v1/tasks/kept", tag);
    expect([after.status, after.body.version]).toEqual([200, before.body.version]);
    expect(after.body.paused).not.toBeNull();
    expect(after.headers.get("etag")).not.toBe(tag);
  });

  test("are accepted as returned: the ETag in If-Match names the version to change", async () => {
    const change = (held: string, reason: string) =>
      stage.ask("PATCH", "/v1/tasks/kept", {
        token: stage.tokens.admin,
        headers: { "if-match": held },
        body: { options: { description: reason } },
      });
    const tag = (await read("/v1/tasks/kept")).headers.get("etag") as string;
    expect((await change(tag, "first")).status).toBe(200);
    expect((await change(tag, "second")).body).toMatchObject({ status: 412, code: "TASK_STALE" });
    expect((await change('"1.a b"', "third")).body).toMatchObject({ status: 400, code: "REQUEST_INVALID" });
  });
});
