import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { userCalled } from "../../src/access/access-store.ts";
import { routeIds, shapeOf } from "../../src/api/contract.ts";
import type { Carillon } from "../../src/library/carillon.ts";
import { ApiStage, type Asked, type AskOptions, pathOf } from "../support/api-stage.ts";
import { inProcess } from "../support/in-process.ts";
import { postgres } from "../support/servers.ts";
import { codeOf, wrongCodeOf as wrongOf } from "../support/totp.ts";

const stage = new ApiStage();
const key = randomBytes(32).toString("base64");
let sealing: Carillon;
beforeAll(async () => {
  await stage.open();
  sealing = await stage.serve({ secretKeys: key });
});
afterAll(() => stage.close());

const password = "seven bells at four";
const admin = () => stage.client("admin");
const own = (server = stage.server) => ({ origin: stage.urlOf(server) });
const cookieOf = ({ headers }: Asked) => (headers.getSetCookie()[0] ?? "").split(";")[0] ?? "";
const signIn = (name: string, code?: string, server = stage.server) =>
  stage.ask(
    "POST",
    "/v1/sign-in",
    { body: { name, password, ...(code === undefined ? {} : { code }) }, headers: own(server) },
    server,
  );
const by = (cookie: string, body?: unknown, server = stage.server): AskOptions => ({
  headers: { cookie, ...own(server) },
  ...(body === undefined ? {} : { body }),
});

async function enrolled(name: string, server = stage.server) {
  await admin().createUser({ name, password, role: "viewer" });
  const cookie = cookieOf(await signIn(name, undefined, server));
  const begun = await stage.ask("POST", "/v1/me/second-factor", by(cookie, { password }, server), server);
  expect(begun.status).toBe(201);
  const { secret, uri } = begun.body as { secret: string; uri: string };
  const confirmed = await stage.ask(
    "POST",
    "/v1/me/second-factor/confirm",
    by(cookie, { code: codeOf(secret) }, server),
    server,
  );
  expect(confirmed.status).toBe(200);
  return { cookie, secret, uri, recoveryCodes: confirmed.body.recoveryCodes as string[] };
}

test("a user enrols a second factor: the password alone no longer signs in, and other sign-ins end", async () => {
  await admin().createUser({ name: "ann", password, role: "viewer" });
  const [desk, phone] = [cookieOf(await signIn("ann")), cookieOf(await signIn("ann"))];
  const me = (cookie: string) => stage.ask("GET", "/v1/me", by(cookie));
  const begin = (body: object) => stage.ask("POST", "/v1/me/second-factor", by(desk, body));
  expect((await begin({ password: "not her password" })).body.code).toBe("SIGN_IN_REFUSED");
  const first = (await begin({ password })).body;
  const { secret, uri } = (await begin({ password })).body;
  expect(secret, "drawn anew").not.toBe(first.secret);
  expect(uri).toMatch(/^otpauth:\/\/totp\/Carillon:ann\?.*secret=[A-Z2-7]{32}/);
  expect((await signIn("ann")).status, "it was not confirmed").toBe(200);
  const confirm = (code: string) => stage.ask("POST", "/v1/me/second-factor/confirm", by(desk, { code }));
  expect((await confirm(wrongOf(secret))).body.code).toBe("CODE_REFUSED");
  const used = codeOf(secret);
  const { body } = await confirm(used);
  expect(body.recoveryCodes).toHaveLength(10);
  expect((await begin({ password })).body.code).toBe("SECOND_FACTOR_TAKEN");
  expect([(await me(desk)).status, (await me(phone)).status]).toEqual([200, 401]);

  expect((await signIn("ann")).body.code).toBe("SECOND_FACTOR_NEEDED");
  expect((await signIn("ann", wrongOf(secret))).body.code).toBe("CODE_REFUSED");
  expect((await signIn("ann", used)).body.code, "the code that confirmed it").toBe("CODE_REFUSED");
  const next = codeOf(secret, 1);
  const both = await Promise.all([signIn("ann", next), signIn("ann", next)]);
  expect(both.map(({ status }) => status).sort(), "of two with the same code one is let in").toEqual([200, 401]);
  expect((await signIn("ann", codeOf(secret))).body.code, "an earlier step").toBe("CODE_REFUSED");
  const { body: state } = await stage.ask("GET", "/v1/me/second-factor", by(desk));
  expect(state).toMatchObject({ recoveryCodes: 10, enrolled: expect.any(String) });
  const listed = (await admin().listUsers({})).items.find(({ name }) => name === "ann");
  expect(listed, "told to admins").toMatchObject({ secondFactor: state.enrolled });
  const { items } = await admin().listAudit({ about: "user", named: "ann", act: "add second factor" });
  expect(JSON.stringify(items)).not.toContain(secret);
  expect(items).toHaveLength(1);
});

test("a recovery code works once, and only hashes of the codes are stored", async () => {
  const { secret, recoveryCodes } = await enrolled("bea");
  const [code = "", second = ""] = recoveryCodes;
  expect((await signIn("bea", code.toUpperCase())).status).toBe(200);
  expect((await signIn("bea", code)).body.code).toBe("CODE_REFUSED");
  expect((await signIn("bea", second)).status).toBe(200);
  const kept = JSON.stringify(await stage.rows("select user_id, encode(hash, 'escape') as hash from $s.recovery_code"));
  for (const one of recoveryCodes) expect(kept).not.toContain(one);
  const rows = await stage.rows<{ plain: string }>("select plain from $s.second_factor where plain = $1", [secret]);
  expect(rows, "in plain text where there is no key for secrets").toHaveLength(1);
});

test("ten wrong codes block a user's codes for an hour, from any client, and wrong passwords do not", async () => {
  const { secret } = await enrolled("cid");
  // Signs in from changing addresses, because wrong codes are counted per user: each wrong code counts once.
  const guesses = async () =>
    (await stage.rows<{ guesses: number }>("select guesses from $s.second_factor where plain = $1", [secret]))[0];
  expect((await signIn("cid", wrongOf(secret))).body.code).toBe("CODE_REFUSED");
  expect(await guesses()).toEqual({ guesses: 1 });
  await stage.rows("update $s.second_factor set guesses = 9 where plain = $1", [secret]);
  const many = await Promise.all(Array.from({ length: 4 }, () => signIn("cid", wrongOf(secret))));
  const codes = many.map(({ body }) => body.code as string).sort();
  expect(codes).toEqual(["CODE_REFUSED", "TOO_MANY_ATTEMPTS", "TOO_MANY_ATTEMPTS", "TOO_MANY_ATTEMPTS"]);
  expect((await signIn("cid", codeOf(secret, 1))).body.code, "a right one too").toBe("TOO_MANY_ATTEMPTS");
  await stage.rows("update $s.second_factor set guesses_since_ms = guesses_since_ms - 3600000 where plain = $1", [
    secret,
  ]);
  expect((await signIn("cid", codeOf(secret, 1))).status).toBe(200);
  expect(await guesses()).toEqual({ guesses: 0 });
});

test("with a secrets key the factor is sealed, rewrapped by the next key, and verified only with the key", async () => {
  const { secret } = await enrolled("dan", sealing);
  const [row] = await stage.rows<{ plain: null; sealed: Buffer }>(
    "select plain, sealed from $s.second_factor f join $s.user_account u on u.id = user_id where u.name = 'dan'",
  );
  expect(row?.plain).toBeNull();
  expect(row?.sealed.toString("latin1")).not.toContain(secret);
  expect((await signIn("dan", codeOf(secret, 1))).body.code, "a node without the key").toBe("SECRET_KEY_MISSING");
  const next = randomBytes(32).toString("base64");
  const where = ["--store", postgres().url, "--schema", stage.schema, "--json"];
  const { stdout, stderr } = await inProcess(["secrets", "rewrap", ...where], {
    CARILLON_SECRET_KEYS: `${next},${key}`,
  });
  expect([stderr, JSON.parse(stdout)]).toMatchObject(["", { rewrapped: 1 }]);
  const rotated = await stage.serve({ secretKeys: next });
  expect((await signIn("dan", codeOf(secret, 1), rotated)).status).toBe(200);
});

test("a user removes it with the password and a code, an admin without, over the API and on the command line", async () => {
  const { cookie, recoveryCodes } = await enrolled("eva");
  const remove = (body: object) => stage.ask("POST", "/v1/me/second-factor/remove", by(cookie, body));
  expect((await remove({ password, code: "not a code" })).body.code).toBe("CODE_REFUSED");
  expect((await remove({ password: "wrong password", code: recoveryCodes[0] })).body.code).toBe("SIGN_IN_REFUSED");
  expect((await remove({ password, code: recoveryCodes[0] })).status).toBe(204);
  expect((await remove({ password, code: recoveryCodes[1] })).body.code).toBe("SECOND_FACTOR_UNKNOWN");
  expect((await signIn("eva")).status).toBe(200);

  await enrolled("fay");
  await admin().resetSecondFactor({ user: "fay", reason: "lost her phone" });
  expect((await signIn("fay")).status).toBe(200);
  const { items } = await admin().listAudit({ about: "user", named: "fay", act: "remove second factor" });
  expect(items).toMatchObject([{ why: "lost her phone" }]);
  const where = ["--store", postgres().url, "--schema", stage.schema];
  const none = await inProcess(["users", "reset-second-factor", "fay", ...where]);
  expect([none.code, none.stderr]).toEqual([3, expect.stringContaining("SECOND_FACTOR_UNKNOWN")]);
  await enrolled("gil");
  const reset = await inProcess(["users", "reset-second-factor", "gil", "--reason", "lost", ...where]);
  expect([reset.code, reset.stderr]).toEqual([0, ""]);
  expect((await signIn("gil")).status).toBe(200);
});

test("a user who is removed and created again has no second factor", async () => {
  await enrolled("hal");
  await admin().removeUser({ user: "hal" });
  await admin().createUser({ name: "hal", password, role: "viewer" });
  expect((await signIn("hal")).status).toBe(200);
});

test("if required for admins, an admin without it may only enrol; tokens and other users are unaffected", async () => {
  const strict = await stage.serve({ requireSecondFactor: "admins" });
  await admin().createUser({ name: "ida", password, role: "admin" });
  await admin().createUser({ name: "jon", password, role: "editor" });
  const editor = await signIn("jon", undefined, strict);
  expect(editor.body).toMatchObject({ factorNeeded: false });
  const given = await signIn("ida", undefined, strict);
  expect(given.body).toMatchObject({ user: "ida", factorNeeded: true });
  const cookie = cookieOf(given);
  const ask = (method: string, path: string, body?: unknown) =>
    stage.ask(method, path, by(cookie, body, strict), strict);
  for (const routeId of routeIds) {
    const { policy, method, withoutFactor, body } = shapeOf(routeId);
    if (policy === "anyone" || policy === "worker" || withoutFactor) continue;
    const headers = { cookie, ...own(strict), "if-match": "*" };
    const asked = { headers, ...(method !== "GET" && body ? { body: {} } : {}) };
    const { status, body: refused } = await stage.ask(method, pathOf(routeId), asked, strict);
    expect([routeId, status, refused.code]).toEqual([routeId, 403, "SECOND_FACTOR_REQUIRED"]);
  }
  expect((await ask("GET", "/v1/me")).body).toMatchObject({ factorNeeded: true });
  const { secret } = (await ask("POST", "/v1/me/second-factor", { password })).body;
  expect((await ask("POST", "/v1/me/second-factor/confirm", { code: codeOf(secret) })).status).toBe(200);
  expect((await ask("GET", "/v1/me")).body).toMatchObject({ factorNeeded: false });
  expect((await ask("GET", "/v1/tasks")).status).toBe(200);
  expect((await stage.ask("GET", "/v1/tasks", { token: stage.tokens.admin }, strict)).status).toBe(200);
});

test("a temporary password is replaced before enrolling, and an enrolled factor is shown before that", async () => {
  const strict = await stage.serve({ requireSecondFactor: "everyone" });
  await admin().createUser({ name: "kay", password, temporary: true, role: "viewer" });
  const given = await signIn("kay", undefined, strict);
  expect(given.body).toMatchObject({ temporary: true, factorNeeded: true });
  const cookie = cookieOf(given);
  const ask = (method: string, path: string, body?: unknown) =>
    stage.ask(method, path, by(cookie, body, strict), strict);
  expect((await ask("POST", "/v1/me/second-factor", { password })).body.code).toBe("PASSWORD_TEMPORARY");
  const next = "eight bells at noon";
  expect((await ask("POST", "/v1/me/password", { present: password, next })).status).toBe(204);
  expect((await ask("GET", "/v1/me")).body).toMatchObject({ temporary: false, factorNeeded: true });
  expect((await ask("GET", "/v1/tasks")).body.code).toBe("SECOND_FACTOR_REQUIRED");
  const { secret } = (await ask("POST", "/v1/me/second-factor", { password: next })).body;
  expect((await ask("POST", "/v1/me/second-factor/confirm", { code: codeOf(secret) })).status).toBe(200);
  expect((await ask("GET", "/v1/tasks")).status).toBe(200);

  // An admin sets a temporary password; the second factor stays in force.
  await admin().changeUser({ user: "kay", password, temporary: true });
  expect((await signIn("kay", undefined, strict)).body.code).toBe("SECOND_FACTOR_NEEDED");
  const again = await signIn("kay", codeOf(secret, 1), strict);
  expect(again.body).toMatchObject({ temporary: true, factorNeeded: false });
  const tasks = await stage.ask("GET", "/v1/tasks", by(cookieOf(again), undefined, strict), strict);
  expect(tasks.body.code).toBe("PASSWORD_TEMPORARY");
});

test("a refused code is logged with the user and the address, but without the code", async () => {
  const { cookie, secret, recoveryCodes } = await enrolled("lea");
  const [wrong, right] = [wrongOf(secret), codeOf(secret, 1)];
  const from = stage.lines.length;
  await signIn("lea", wrong);
  await stage.ask("POST", "/v1/me/second-factor/remove", by(cookie, { password, code: wrong }));
  await signIn("lea", right);
  const told = stage.lines.slice(from).flatMap(({ level, fields }) => {
    const { code, by: way, user, address } = fields as Record<string, string | undefined>;
    return user === "lea" ? [{ level, what: code ?? way, address }] : [];
  });
  expect(told).toEqual([
    { level: "warn", what: "CODE_REFUSED", address: "127.0.0.1" },
    { level: "warn", what: "CODE_REFUSED", address: "127.0.0.1" },
    { level: "info", what: "password", address: "127.0.0.1" },
  ]);
  const lines = JSON.stringify(stage.lines);
  for (const shown of [secret, ...recoveryCodes]) expect(lines).not.toContain(shown);
});

test("a password checked before the second factor was enrolled begins no sign-in afterwards", async () => {
  await enrolled("max");
  const { userId } = await userCalled(stage.store.access, "max");
  const begin = (secondFactor: boolean) =>
    stage.store.access.signIn(
      { userId, hash: randomBytes(32), expiresMs: 9e12, secondFactor, address: "", agent: "" },
      Date.now(),
    );
  expect([await begin(false), await begin(true)]).toEqual([false, true]);
});

test("the event stream of a user who needs a second factor ends when that is reset", async () => {
  const strict = await stage.serve({ requireSecondFactor: "everyone" });
  const { cookie } = await enrolled("lee", strict);
  const follow = () => fetch(`${stage.urlOf(strict)}/v1/events`, { headers: { cookie } });
  const response = await follow();
  expect(response.status).toBe(200);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  await admin().resetSecondFactor({ user: "lee", reason: "lost" });
  // This loop ends when the server ends the stream.
  while (!(await reader.read()).done);
  expect((await follow()).status).toBe(403);
});
