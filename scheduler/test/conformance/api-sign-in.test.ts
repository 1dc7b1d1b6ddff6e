import { scryptSync } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cost } from "../../src/access/password.ts";
import { writes } from "../../src/api/contract/route.ts";
import { routeIds, shapeOf } from "../../src/api/contract.ts";
import { ApiStage, type AskOptions, pathOf } from "../support/api-stage.ts";
import { firstPassword } from "../support/remote-stage.ts";
import { until } from "../support/store-stage.ts";

const stage = new ApiStage();
beforeAll(async () => {
  await stage.open();
});
afterAll(() => stage.close());

const password = "seven bells at noon";
const admin = () => stage.client("admin");
const own = () => ({ origin: stage.urlOf() });

async function signIn(name: string, given = password, headers: Record<string, string> = own()) {
  const answer = await stage.ask("POST", "/v1/sign-in", { body: { name, password: given }, headers });
  const cookie = (answer.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  return { ...answer, cookie };
}
const by = (cookie: string, more: Record<string, string> = own()): AskOptions => ({ headers: { cookie, ...more } });

describe("a user", () => {
  test("signs in with a strict cookie, can read its own account, and signs out", async () => {
    await admin().createUser({ name: "ann", password, role: "operator", reason: "on call" });
    const { status, body, cookie, headers } = await signIn("ann");
    expect([status, body]).toMatchObject([200, { user: "ann", role: "operator", token: null, scopes: null }]);
    const [session, browser] = headers.getSetCookie();
    expect(session).toMatch(/^carillon=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=86400$/);
    expect(browser).toMatch(/^carillon-known=[\w.-]{66}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=15552000$/);
    expect((await stage.ask("GET", "/v1/me", by(cookie))).body).toMatchObject({
      user: "ann",
      grants: [{ namespace: "*" }],
    });
    expect((await stage.ask("POST", "/v1/sign-out", { ...by(cookie) })).status).toBe(204);
    expect((await stage.ask("GET", "/v1/me", by(cookie))).status).toBe(401);
    const { items } = await admin().listAudit({ about: "user", named: "ann" });
    expect(items).toMatchObject([
      { act: "create", why: "on call", after: { role: "operator" }, who: expect.stringContaining("admin") },
    ]);
    expect(JSON.stringify(items)).not.toMatch(/scrypt|bells/);
    // Filters the audit log by action, by time, and by the number of the entry.
    const [{ entry = 0, at = "" } = {}] = items;
    const later = new Date(Date.parse(at) + 1).toISOString();
    const found = async (given: object) => (await admin().listAudit({ named: "ann", ...given })).items.length;
    expect(await Promise.all([found({ act: "create" }), found({ act: "pause" })])).toEqual([1, 0]);
    expect(await Promise.all([found({ since: at, until: later }), found({ until: at })])).toEqual([1, 0]);
    expect(await Promise.all([found({ since: later }), found({ entry }), found({ entry: entry + 1 })])).toEqual([
      0, 1, 0,
    ]);
  });

  test("gets cookies that are Secure and host-only if a proxy terminates TLS", async () => {
    const url = stage.urlOf(await stage.serve({ behindProxy: true }));
    await admin().createUser({ name: "tess", password, role: "viewer", reason: "by a proxy" });
    const answer = await fetch(`${url}/v1/sign-in`, {
      method: "POST",
      headers: { origin: url, "content-type": "application/json" },
      body: JSON.stringify({ name: "tess", password }),
    });
    expect(answer.status).toBe(200);
    const cookies = answer.headers.getSetCookie().map((one) =>
      one
        .replace(/=[^;]*/, "")
        .split("; ")
        .sort(),
    );
    const held = (name: string) => expect.arrayContaining([name, "HttpOnly", "Path=/", "SameSite=Strict", "Secure"]);
    expect(cookies).toEqual([held("__Host-carillon"), held("__Host-carillon-known")]);
  });

  test("gets the same refusal for a wrong password and a wrong name", async () => {
    const [wrong, nobody] = [await signIn("ann", "seven bells at one"), await signIn("nobody")];
    for (const { status, body } of [wrong, nobody]) expect([status, body.code]).toEqual([401, "SIGN_IN_REFUSED"]);
    expect(wrong.body).toEqual(nobody.body);
  });

  test("changes the password, which ends the user's other sign-ins", async () => {
    await admin().createUser({ name: "bea", password, role: "viewer" });
    const [here, there] = [await signIn("bea"), await signIn("bea")];
    const change = (present: string, next: string) =>
      stage.ask("POST", "/v1/me/password", { ...by(here.cookie), body: { present, next } });
    expect((await change("wrong password!", "eight bells at one")).body.code).toBe("SIGN_IN_REFUSED");
    for (const weak of ["short", "aaaaaaaaaaaaaaaa"])
      expect((await change(password, weak)).body.code).toBe("PASSWORD_WEAK");
    expect((await change(password, "eight bells at one")).status).toBe(204);
    expect((await stage.ask("GET", "/v1/me", by(here.cookie))).status).toBe(200);
    expect((await stage.ask("GET", "/v1/me", by(there.cookie))).status).toBe(401);
    expect((await signIn("bea")).status).toBe(401);
    expect((await signIn("bea", "eight bells at one")).status).toBe(200);
  });

  test("is changed from the version that was read: of two concurrent admins, the second is refused", async () => {
    const { version } = await admin().createUser({ name: "ida", password, role: "viewer" });
    const grants = [{ namespace: "billing", role: "editor" as const }];
    const made = await admin().changeUser({ user: "ida", grants }, { ifVersion: version });
    expect(made.version).toBe(version + 1);
    await expect(
      admin().changeUser({ user: "ida", role: "operator", grants: [] }, { ifVersion: version }),
    ).rejects.toMatchObject({ code: "USER_STALE" });
    const is = async () => (await admin().listUsers({ limit: 200 })).items.find(({ name }) => name === "ida");
    expect(await is()).toEqual(made);
    // A new password changes no visible field, so the user's version stays the same.
    const same = await admin().changeUser({ user: "ida", password: "twelve bells" }, { ifVersion: made.version });
    expect(same.version).toBe(made.version);
    const bare = await stage.ask("PATCH", "/v1/users/ida", { token: stage.tokens.admin, body: { role: "viewer" } });
    expect([bare.status, bare.body.code]).toEqual([428, "PRECONDITION_NEEDED"]);
    expect(await admin().changeUser({ user: "ida", role: "viewer" })).toMatchObject({ version: made.version + 1 });
  });

  test("with a hash of an older cost gets a new one at the next sign-in, which leaves the user's version unchanged", async () => {
    const { access } = stage.store;
    await admin().createUser({ name: "old", password, role: "viewer" });
    const { userId, hash: made } = (await access.userByName("old")) as { userId: number; hash: string };
    const salt = Buffer.from("salt of a test..");
    const derived = scryptSync(password, salt, 32, { N: 2 ** 15, maxmem: 2 ** 26 });
    const older = ["scrypt", 15, 8, 1, salt.toString("base64url"), derived.toString("base64url")].join("$");
    await access.rehash(userId, "another hash", older);
    expect((await access.userByName("old"))?.hash).toBe(made);
    await access.rehash(userId, made, older);
    expect((await signIn("old", "a wrong password")).status).toBe(401);
    expect((await access.userByName("old"))?.hash).toBe(older);
    const { cookie } = await signIn("old");
    const { hash } = (await access.userByName("old")) as { hash: string };
    expect(hash.split("$").slice(0, 2)).toEqual(["scrypt", String(Math.log2(cost.N))]);
    expect((await stage.ask("GET", "/v1/me", by(cookie))).status).toBe(200);
    expect((await signIn("old")).status).toBe(200);
    expect((await access.userByName("old"))?.hash).toBe(hash);
    expect((await admin().listAudit({ about: "user", named: "old" })).items).toMatchObject([{ act: "create" }]);
  });

  test("cannot sign in with a password that was replaced, or after a lock-out, while the password was being checked", async () => {
    const { access } = stage.store;
    await admin().createUser({ name: "fay", password, role: "viewer" });
    const judged = (await access.userByName("fay")) as { userId: number; hash: string };
    const late = (secret: string, hash?: string) =>
      access.signIn(
        { userId: judged.userId, hash: Buffer.from(secret), expiresMs: 9e12, password: hash, address: "", agent: "" },
        Date.now(),
      );
    expect(await late("one", judged.hash)).toBe(true);
    await admin().changeUser({ user: "fay", password: "eleven bells at four" });
    expect(await late("two", judged.hash)).toBe(false);
    expect(await late("three")).toBe(true);
    await admin().changeUser({ user: "fay", disabled: true });
    expect(await late("four")).toBe(false);
    expect(await stage.rows("select from $s.sign_in where user_id = $1", [judged.userId])).toEqual([]);
  });

  test("has a password that is not part of the fingerprint of a repeated request", async () => {
    const rows = () =>
      stage.rows("select encode(request, 'hex') as request from $s.idempotent_answer where key = 'u-1'");
    const make = (given: string) =>
      admin().createUser({ name: "gus", password: given, role: "viewer" }, { idempotencyKey: "u-1" });
    const made = await make(password);
    const known = await rows();
    expect(await make("another password")).toEqual(made);
    expect(await rows()).toEqual(known);
    const change = (given: string) => admin().changeUser({ user: "gus", password: given }, { idempotencyKey: "u-2" });
    await change("nine bells at two");
    await change("ten bells at three");
    expect((await signIn("gus", "nine bells at two")).status).toBe(200);
    const { cookie } = await signIn("gus", "nine bells at two");
    const own = (present: string, next: string) =>
      stage.ask("POST", "/v1/me/password", { ...by(cookie, { "idempotency-key": "u-3" }), body: { present, next } });
    expect((await own("nine bells at two", "ten bells at three")).status).toBe(204);
    expect((await own("ten bells at three", "one bell at four")).status).toBe(204);
    expect((await signIn("gus", "ten bells at three")).status).toBe(200);
  });

  test("loses all access at once when locked out, including by tokens; the last admin cannot be locked out", async () => {
    await admin().createUser({ name: "cora", password, role: "editor" });
    const { cookie } = await signIn("cora");
    const made = await stage.ask("POST", "/v1/tokens", { ...by(cookie), body: { name: "ci", role: "viewer" } });
    const token = made.body.secret as string;
    expect((await stage.ask("GET", "/v1/tasks", { token })).status).toBe(200);
    await admin().changeUser({ user: "cora", disabled: true });
    for (const given of [{ token }, by(cookie)]) expect((await stage.ask("GET", "/v1/tasks", given)).status).toBe(401);
    expect((await signIn("cora")).status).toBe(401);
    expect(await admin().changeUser({ user: "cora", disabled: false, role: "admin" })).toMatchObject({
      disabled: null,
      role: "admin",
    });
    await expect(admin().createUser({ name: "cora", password, role: "viewer" })).rejects.toMatchObject({
      code: "USER_NAME_TAKEN",
    });
    await expect(admin().changeUser({ user: "none", role: "viewer" })).rejects.toMatchObject({ code: "USER_UNKNOWN" });
    const admins = (await admin().listUsers({ limit: 200 })).items.filter(({ role }) => role === "admin");
    const last = admins.find(({ name }) => name.startsWith("admin-")) as { name: string };
    for (const { name } of admins) if (name !== last.name) await admin().changeUser({ user: name, role: "viewer" });
    await expect(admin().changeUser({ user: last.name, role: "viewer" })).rejects.toMatchObject({
      code: "ADMIN_NEEDED",
    });
    await expect(admin().changeUser({ user: last.name, disabled: true })).rejects.toMatchObject({
      code: "ADMIN_NEEDED",
    });
  });
});

describe("a user who signs in", () => {
  test("with a password set by an admin may only replace it", async () => {
    const made = await admin().createUser({ name: "mia", password, role: "admin", temporary: true });
    expect(made).toMatchObject({ temporary: true });
    const { cookie, body } = await signIn("mia");
    expect(body).toMatchObject({ user: "mia", temporary: true });
    for (const routeId of routeIds) {
      const { policy, method, byTemporary } = shapeOf(routeId);
      if (policy === "anyone" || policy === "worker" || byTemporary) continue;
      const given = by(cookie, { ...own(), "if-match": "*" });
      const { status, body: refused } = await stage.ask(method, pathOf(routeId), {
        ...given,
        ...(writes(shapeOf(routeId)) && shapeOf(routeId).body ? { body: {} } : {}),
      });
      expect([routeId, status, refused.code]).toEqual([routeId, 403, "PASSWORD_TEMPORARY"]);
    }
    const change = (present: string, next: string) =>
      stage.ask("POST", "/v1/me/password", { ...by(cookie), body: { present, next } });
    expect((await change(password, password)).body).toMatchObject({
      code: "PASSWORD_WEAK",
      detail: "the password is the one that was handed over",
    });
    expect((await stage.ask("GET", "/v1/me", by(cookie))).body.temporary).toBe(true);
    expect((await change(password, "nine otters at dusk")).status).toBe(204);
    expect((await stage.ask("GET", "/v1/me", by(cookie))).body.temporary).toBe(false);
    expect((await stage.ask("GET", "/v1/users", by(cookie))).status).toBe(200);
  });

  test("after an admin set a new password must replace that password; earlier tokens stay valid", async () => {
    const api = stage.client("operator");
    const [operator] = (await admin().listTokens({ limit: 200 })).items.filter(({ role }) => role === "operator");
    const user = operator?.user as string;
    await admin().changeUser({ user, password: "ten herons on ice", temporary: true });
    expect(await api.getMe({})).toMatchObject({ user, temporary: false });
    const { cookie, body } = await signIn(user, "ten herons on ice");
    expect(body.temporary).toBe(true);
    expect((await stage.ask("GET", "/v1/tasks", by(cookie))).body.code).toBe("PASSWORD_TEMPORARY");
    // A password set without `temporary` need not be replaced.
    await admin().changeUser({ user, password: "ten otters on ice" });
    expect((await signIn(user, "ten otters on ice")).body.temporary).toBe(false);
  });

  test("with an admin's password hashed at a lower cost still has to replace it", async () => {
    await admin().createUser({ name: "noa", password, role: "viewer" });
    const old = `scrypt$15$8$1$c2FsdHNhbHRzYWx0c2FsdA$${scryptSync(password, Buffer.from("saltsaltsaltsalt"), 32, { N: 2 ** 15, maxmem: 2 ** 26 }).toString("base64url")}`;
    await stage.rows("update $s.user_account set hash = $1, temporary_hash = $1 where name = 'noa'", [old]);
    expect((await signIn("noa")).body.temporary).toBe(true);
    const [row] = await stage.rows("select hash, temporary_hash from $s.user_account where name = 'noa'");
    expect([row?.hash === row?.temporary_hash, row?.hash === old]).toEqual([true, false]);
  });
});

describe("the first start", () => {
  test("creates one admin with the given password, which appears in no log line", async () => {
    const other = await stage.serve();
    expect(stage.lines.filter(({ message }) => message.includes("first start"))).toHaveLength(1);
    expect(JSON.stringify(stage.lines)).not.toContain(firstPassword);
    const answer = await stage.ask("POST", "/v1/sign-in", { body: { name: "admin", password: firstPassword } }, other);
    expect(answer.status).toBe(200);
    expect(await stage.rows("select who, why from $s.audit where named = 'admin' and act = 'create'")).toEqual([
      { who: "the first start", why: "there was no user" },
    ]);
  });
});

describe("a token", () => {
  test("has no more rights than its creator, is shown once, and ends when it is revoked", async () => {
    const api = stage.client("operator");
    const { secret, ...made } = await api.createToken({
      name: "ci",
      scopes: ["runs:read", "runs:write"],
      expiresIn: "1d",
    });
    expect(secret).toMatch(/^ct_\d+_[\w-]{43}$/);
    expect(made).toMatchObject({ role: "operator", scopes: ["runs:read", "runs:write"], revoked: null });
    expect((await stage.ask("GET", "/v1/runs", { token: secret })).status).toBe(200);
    expect((await stage.ask("GET", "/v1/tasks", { token: secret })).body.code).toBe("ACCESS_DENIED");
    await expect(api.createToken({ name: "ci" })).rejects.toMatchObject({ code: "TOKEN_NAME_TAKEN" });
    await expect(api.createToken({ name: "more", role: "admin" })).rejects.toMatchObject({ code: "OPTION_INVALID" });
    await expect(api.createToken({ name: "long", expiresIn: "400d" })).rejects.toMatchObject({
      code: "OPTION_INVALID",
    });
    const brief = await stage.token("operator", { expiresMs: Date.now() + 60_000 });
    const heir = await stage.ask("POST", "/v1/tokens", { token: brief, body: { name: "heir" } });
    expect(Date.parse(heir.body.expires)).toBeLessThan(Date.now() + 61_000);
    const narrow = await stage.token("operator", { scopes: ["access:write"] });
    const wider = await stage.ask("POST", "/v1/tokens", { token: narrow, body: { name: "wider" } });
    expect(wider.body.code).toBe("OPTION_INVALID");
    const { items } = await api.listTokens();
    expect(JSON.stringify(items)).not.toContain(secret.slice(-20));
    await api.revokeToken({ token: "ci", reason: "leaked" });
    expect((await stage.ask("GET", "/v1/runs", { token: secret })).status).toBe(401);
    await expect(api.revokeToken({ token: "none" })).rejects.toMatchObject({ code: "TOKEN_UNKNOWN" });
    await expect(api.revokeToken({ token: "test", user: "ann" })).rejects.toMatchObject({ code: "TOKEN_UNKNOWN" });
    const [{ why, before } = { why: "", before: null }] = (await admin().listAudit({ about: "token" })).items;
    expect([why, before]).toMatchObject(["leaked", { name: "ci" }]);
  });

  test("ends with the token that created it, and cannot be created by an ended token", async () => {
    const of = async (token: string, name: string) =>
      (await stage.ask("POST", "/v1/tokens", { token, body: { name } })).body.secret as string;
    const leaked = (await admin().createToken({ name: "leaked" })).secret;
    const heir = await of(leaked, "heir");
    const [second, other] = [await of(heir, "second"), await of(stage.tokens.admin, "other")];
    await admin().revokeToken({ token: "leaked", reason: "it was in a log" });
    const status = async (token: string) => (await stage.ask("GET", "/v1/tasks", { token })).status;
    expect(await Promise.all([leaked, heir, second, other].map(status))).toEqual([401, 401, 401, 200]);
    const ended = (await admin().listAudit({ about: "token", act: "revoke", limit: 3 })).items;
    expect(ended.map(({ named, why }) => [named.split("/").at(-1), why])).toEqual(
      ["second", "heir", "leaked"].map((name) => [name, "it was in a log"]),
    );
    // Simulates another node that has not received the revocation yet.
    const { access } = stage.store;
    const { user: name } = await admin().getMe();
    const { userId } = (await access.userByName(name)) as { userId: number };
    const late = (hash: string, token: string | null) =>
      access.createToken(
        {
          userId,
          name: hash,
          hash: Buffer.from(hash),
          role: "viewer",
          scopes: null,
          expiresMs: 9e12,
          by: token === null ? null : { userId, token },
        },
        { author: "test", reason: "", nowMs: 1 },
      );
    await expect(late("by-leaked", "leaked")).rejects.toMatchObject({ code: "SIGN_IN_NEEDED" });
    await late("by-user", null);
    const { name: gone, userId: goneId } = await access.createUser(
      { name: "hal", hash: "none", role: "viewer" },
      { author: "test", reason: "", nowMs: 1 },
    );
    await admin().changeUser({ user: gone, disabled: true });
    await expect(
      access.createToken(
        { userId: goneId, name: "late", hash: Buffer.from("x"), role: "viewer", scopes: null, expiresMs: 9e12 },
        { author: "test", reason: "", nowMs: 1 },
      ),
    ).rejects.toMatchObject({ code: "SIGN_IN_NEEDED" });
  });

  test("for another user is created by a global admin's token and ends with it; other users create only their own", async () => {
    const ofUser = async (token: string) => (await stage.clientOf(token).getMe()).user;
    const user = await ofUser(stage.tokens.viewer);
    const maker = (await admin().createToken({ name: "maker" })).secret;
    const { secret, ...made } = await stage.clientOf(maker).createToken({ name: "scraper", user, reason: "metrics" });
    expect(made).toMatchObject({ user, role: "viewer", scopes: null });
    expect(await ofUser(secret)).toBe(user);
    const refused: [string, object, string][] = [
      ["the user may less", { user, role: "operator" }, "OPTION_INVALID"],
      ["nobody", { user: "no-such" }, "USER_UNKNOWN"],
      ["for too long", { user, expiresIn: "367d" }, "OPTION_INVALID"],
    ];
    for (const [why, given, code] of refused)
      await expect(admin().createToken({ name: "refused", ...given }), why).rejects.toMatchObject({ code });
    const elsewhere = await stage.token("admin", { where: ["billing"] });
    for (const token of [stage.tokens.operator, elsewhere])
      await expect(stage.clientOf(token).createToken({ name: "refused", user })).rejects.toMatchObject({
        code: "USER_UNKNOWN",
      });
    const limited = (await admin().createToken({ name: "limited", scopes: ["access:write", "access:read"] })).secret;
    await expect(stage.clientOf(limited).createToken({ name: "refused", user })).rejects.toMatchObject({
      code: "OPTION_INVALID",
    });
    await admin().revokeToken({ token: "maker" });
    expect((await stage.ask("GET", "/v1/tasks", { token: secret })).status).toBe(401);
  });

  test("has a secret that is not stored: a repeat of the request by idempotency key does not return it", async () => {
    const make = () => stage.client("operator").createToken({ name: "once" }, { idempotencyKey: "t-1" });
    const { secret } = await make();
    await expect(make()).rejects.toMatchObject({ code: "ANSWER_NOT_KEPT" });
    const rows = await stage.rows("select a::text as text from $s.idempotent_answer a");
    expect(JSON.stringify(rows)).not.toContain(secret.slice(-43));
  });

  test("worker keys are made and revoked by admins", async () => {
    const { secret } = await admin().createWorkerKey({ name: "reports", groups: ["reports"], reason: "new" });
    await stage.join(secret);
    await expect(admin().createWorkerKey({ name: "reports" })).rejects.toMatchObject({ code: "KEY_NAME_TAKEN" });
    expect((await admin().listWorkerKeys()).items).toMatchObject([{ name: "reports", revoked: null }]);
    expect(await admin().getWorkerKey({ key: "reports" })).toMatchObject({ groups: ["reports"], revoked: null });
    const revoked = await admin().revokeWorkerKey({ key: "reports" });
    expect(revoked).toMatchObject({ revoked: expect.any(String) });
    expect(await admin().getWorkerKey({ key: "reports" })).toEqual(revoked);
    await expect(admin().getWorkerKey({ key: "none" })).rejects.toMatchObject({ code: "KEY_NAME_UNKNOWN" });
    const none = await stage.ask("DELETE", "/v1/worker-keys/none", { token: stage.tokens.admin });
    expect([none.status, none.body.code]).toEqual([404, "KEY_NAME_UNKNOWN"]);
    expect((await admin().listAudit({ about: "worker-key" })).items.map(({ act }) => act)).toEqual([
      "revoke",
      "create",
    ]);
  });
});

describe("a page of another origin", () => {
  test("cannot change anything with the browser's cookie, whichever route it calls", async () => {
    await admin().createUser({ name: "dora", password, role: "admin" });
    const { cookie } = await signIn("dora");
    const foreign: Record<string, string>[] = [
      { origin: "http://evil.example" },
      { origin: "null" },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
    ];
    for (const routeId of routeIds) {
      const shape = shapeOf(routeId);
      if (!writes(shape)) continue;
      for (const headers of foreign) {
        const given = { headers: { cookie, "if-match": "*", ...headers }, ...(shape.body ? { body: {} } : {}) };
        const { status, body } = await stage.ask(shape.method, pathOf(routeId), given);
        expect([routeId, headers, status, body.code]).toEqual([routeId, headers, 403, "ORIGIN_REFUSED"]);
      }
    }
    expect((await stage.ask("GET", "/v1/me", by(cookie, { "sec-fetch-site": "cross-site" }))).status).toBe(403);
    expect((await stage.ask("GET", "/v1/me", by(cookie, { "sec-fetch-site": "same-origin" }))).status).toBe(200);
    const token = { token: stage.tokens.viewer, headers: { origin: "http://evil.example" } };
    expect((await stage.ask("GET", "/v1/me", token)).headers.get("access-control-allow-origin")).toBeNull();
  });
});

describe("a client that guesses passwords", () => {
  test("is soon slowed down, while slots are still planned", async () => {
    await stage.task("beat", { schedule: { type: "every", everyMs: 500, mode: "rate" }, group: "nobody" });
    const planned = (afterMs: number) =>
      stage.rows<{ slot: number }>(
        "select slot_ms::float8 as slot from $s.slot where term is not null and slot_ms > $1",
        [afterMs],
      );
    await until("the leader to plan", async () => (await planned(0)).length > 0);
    const began = Date.now();
    await admin().createUser({ name: "eve", password, role: "viewer" });
    const guesses = 2_000;
    const statuses = new Map<number, number>();
    let left = guesses;
    const guess = async () => {
      for (; left > 0; left--) {
        const { status, headers } = await signIn("eve", `guess number ${left}`);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        if (status === 429) expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
      }
    };
    await Promise.all(Array.from({ length: 20 }, guess));
    expect([...statuses.keys()].sort()).toEqual([401, 429]);
    expect(statuses.get(401)).toBeLessThan(20);
    // While the address has to wait, even the right password is refused. On a busy machine the wait may be over when the right password
    // arrives; then the test tries again.
    for (let refused = false; !refused; await pause(50)) {
      const waitS = Number((await signIn("eve", "one more guess")).headers.get("retry-after") ?? 0);
      const guessedMs = Date.now();
      refused = (await signIn("eve")).body.code === "TOO_MANY_ATTEMPTS";
      if (!refused) expect(Date.now() - guessedMs, "accepted early").toBeGreaterThan((waitS - 1) * 1_000);
    }
    const guessedMs = Date.now();
    await until("all that came due meanwhile to be planned", async () => {
      const slots = (await planned(began)).map(({ slot }) => slot).sort((a, b) => a - b);
      const [first = 0, last = 0] = [slots[0], slots.at(-1)];
      return first <= began + 500 && last > guessedMs - 500 && slots.length === (last - first) / 500 + 1;
    });
    await admin().removeTask({ task: "beat" });
  });
});
