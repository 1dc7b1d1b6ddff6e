import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hashOfSecret, makeSecret } from "../../src/access/worker-key.ts";
import { limits } from "../../src/base/limits.ts";
import { ApiStage, type AskOptions } from "../support/api-stage.ts";
import { inProcess } from "../support/in-process.ts";
import { postgres } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";

const stage = new ApiStage();
beforeAll(async () => {
  await stage.open();
});
afterAll(() => stage.close());

const password = "seven bells at four";
const hourMs = 3_600_000;
const own = (server = stage.server) => ({ origin: stage.urlOf(server) });
const admin = () => stage.client("admin");

async function signIn(name: string, agent: string): Promise<string> {
  const headers = { ...own(), "user-agent": agent };
  const { status, headers: given } = await stage.ask("POST", "/v1/sign-in", { body: { name, password }, headers });
  expect(status).toBe(200);
  return (given.getSetCookie()[0] ?? "").split(";")[0] ?? "";
}
const by = (cookie: string, server = stage.server): AskOptions => ({ headers: { cookie, ...own(server) } });
const listed = async (cookie: string) => (await stage.ask("GET", "/v1/me/sign-ins", by(cookie))).body.items;
/** Resolves with whether a new server accepts the cookie. A new server has no cached sign-ins, so it reads the store. */
const isLetIn = async (cookie: string) => {
  const other = await stage.serve();
  return (await stage.ask("GET", "/v1/me", by(cookie, other), other)).status === 200;
};

test("a user lists the sign-ins of all browsers, and ends one of them", async () => {
  await admin().createUser({ name: "ann", password, role: "viewer" });
  await admin().createUser({ name: "bea", password, role: "viewer" });
  const [desk, phone, foreign] = [
    await signIn("ann", "the desk"),
    await signIn("ann", "the phone"),
    await signIn("bea", "b"),
  ];
  expect(await listed(desk)).toMatchObject([
    { agent: "the phone", address: "127.0.0.1", present: false },
    { agent: "the desk", address: "127.0.0.1", present: true },
  ]);
  const [{ signIn: ofPhone }] = await listed(desk);
  const end = (cookie: string) => stage.ask("DELETE", `/v1/me/sign-ins/${ofPhone}`, by(cookie));
  expect((await end(foreign)).body.code, "another's is not there").toBe("SIGN_IN_UNKNOWN");
  expect((await end(desk)).status).toBe(204);
  expect((await stage.ask("GET", "/v1/me", by(phone))).status).toBe(401);
  expect((await end(desk)).body.code).toBe("SIGN_IN_UNKNOWN");
  expect(await listed(desk)).toMatchObject([{ agent: "the desk", present: true }]);
  const { items } = await admin().listAudit({ about: "user", named: "ann", act: "end sign-ins" });
  expect(items).toMatchObject([{ before: { signIns: [ofPhone] }, why: "by the user" }]);
});

test("an admin ends all sign-ins of a user, who may sign in again", async () => {
  const cookies = [await signIn("bea", "one"), await signIn("bea", "two")];
  const { ended } = await admin().endSignInsOf({ user: "bea", reason: "a laptop was stolen" });
  expect(ended).toBeGreaterThanOrEqual(2);
  for (const cookie of cookies) expect((await stage.ask("GET", "/v1/me", by(cookie))).status).toBe(401);
  expect((await listed(await signIn("bea", "three"))).length).toBe(1);
  await expect(admin().endSignInsOf({ user: "nobody" })).rejects.toMatchObject({ code: "USER_UNKNOWN" });
});

test("a user ends all other sign-ins, and the present one stays", async () => {
  const [desk, ...others] = [await signIn("bea", "desk"), await signIn("bea", "x"), await signIn("bea", "y")];
  expect((await listed(desk)).length).toBeGreaterThanOrEqual(3);
  const { status, body } = await stage.ask("DELETE", "/v1/me/sign-ins", by(desk));
  expect([status, body.ended >= 2]).toEqual([200, true]);
  for (const cookie of others) expect((await stage.ask("GET", "/v1/me", by(cookie))).status).toBe(401);
  expect(await listed(desk)).toMatchObject([{ agent: "desk", present: true }]);
  expect((await stage.ask("DELETE", "/v1/me/sign-ins", by(desk))).body).toEqual({ ended: 0 });
});

describe("a sign-in that began more than 10 minutes ago", () => {
  const ends = ["/v1/me/sign-ins", "/v1/me/sign-ins/1"];

  test("cannot end the user's other sign-ins until a new sign-in replaces it", async () => {
    await admin().createUser({ name: "dot", password, role: "viewer" });
    const [left, phone] = [await signIn("dot", "left open"), await signIn("dot", "phone")];
    await stage.rows("update $s.sign_in set created_ms = created_ms - $1 where agent = 'left open'", [
      limits.freshSignInMs + 1_000,
    ]);
    for (const path of ends)
      expect((await stage.ask("DELETE", path, by(left))).body, path).toMatchObject({
        code: "SIGN_IN_OLD",
        status: 403,
      });
    expect((await stage.ask("GET", "/v1/me", by(phone))).status, "none has ended").toBe(200);

    const again = await stage.ask("POST", "/v1/sign-in", {
      body: { name: "dot", password },
      headers: { cookie: left, ...own(), "user-agent": "again" },
    });
    const fresh = (again.headers.getSetCookie()[0] ?? "").split(";")[0] ?? "";
    expect((await stage.ask("GET", "/v1/me", by(left))).status, "replaced").toBe(401);
    expect(await listed(fresh)).toMatchObject([{ agent: "again", present: true }, { agent: "phone" }]);
    expect((await stage.ask("DELETE", "/v1/me/sign-ins", by(fresh))).body).toEqual({ ended: 1 });
    expect((await stage.ask("GET", "/v1/me", by(phone))).status).toBe(401);
  });

  test("is replaced only by a sign-in with the right password", async () => {
    const open = await signIn("dot", "open");
    const wrong = { body: { name: "dot", password: "not this one" }, headers: { cookie: open, ...own() } };
    expect((await stage.ask("POST", "/v1/sign-in", wrong)).status).toBe(401);
    expect((await stage.ask("GET", "/v1/me", by(open))).status).toBe(200);
  });

  test("does not restrict tokens, which are sent with each request", async () => {
    const token = stage.tokens.viewer;
    expect((await stage.ask("DELETE", "/v1/me/sign-ins", { token })).status).toBe(200);
  });
});

test("an admin lists a user's sign-ins, and ends one of them, over the API and on the command line", async () => {
  await admin().createUser({ name: "cid", password, role: "viewer" });
  const [one, two, three] = [await signIn("cid", "one"), await signIn("cid", "two"), await signIn("cid", "three")];
  const { items } = await admin().listSignInsOf({ user: "cid" });
  expect(items).toMatchObject([
    { agent: "three", address: "127.0.0.1", present: false },
    { agent: "two" },
    { agent: "one" },
  ]);
  const numberOf = (agent: string) => items.find((each) => each.agent === agent)?.signIn ?? 0;
  await admin().endSignInOf({ user: "cid", signIn: numberOf("two"), reason: "a lost phone" });
  const where = ["--store", postgres().url, "--schema", stage.schema, "--json"];
  const list = await inProcess(["users", "sign-ins", "cid", ...where]);
  expect(JSON.parse(list.stdout)).toMatchObject([{ agent: "three" }, { agent: "one", address: "127.0.0.1" }]);
  const end = await inProcess(["users", "sign-out", "cid", "--sign-in", String(numberOf("three")), ...where]);
  expect([end.stdout, end.stderr]).toEqual([`{"ended":1}\n`, ""]);
  const states = await Promise.all([one, two, three].map((cookie) => isLetIn(cookie)));
  expect(states).toEqual([true, false, false]);
  const { items: entries } = await admin().listAudit({ about: "user", named: "cid", act: "end sign-ins" });
  expect(entries.map(({ why }) => why)).toEqual(["", "a lost phone"]);
  const again = await inProcess(["users", "sign-out", "cid", "--sign-in", String(numberOf("three")), ...where]);
  expect([again.code, again.stderr]).toEqual([3, expect.stringContaining("SIGN_IN_UNKNOWN")]);
  const foreign = stage.client("admin").endSignInOf({ user: "bea", signIn: numberOf("one") });
  await expect(foreign, "of another user").rejects.toMatchObject({ code: "SIGN_IN_UNKNOWN" });
});

test("a node ends sign-ins after its configured idle time and its configured maximum age", async () => {
  const short = await stage.serve({ signInLasts: "10m", signInIdle: "3m" });
  const headers = { ...own(short), "user-agent": "short" };
  const given = await stage.ask("POST", "/v1/sign-in", { body: { name: "ann", password }, headers }, short);
  const cookie = (given.headers.getSetCookie()[0] ?? "").split(";")[0] ?? "";
  expect(given.headers.getSetCookie()[0]).toContain("Max-Age=600");
  const me = () => stage.ask("GET", "/v1/me", by(cookie, short), short);
  const endsIn = async () => Date.parse((await me()).body.expires) - Date.now();
  expect(await endsIn()).toBeLessThanOrEqual(180_000);
  // The sign-in was used a moment ago, but its absolute lifetime ends now.
  await stage.rows("update $s.sign_in set seen_ms = $1, expires_ms = $1 where agent = 'short'", [Date.now() - 1_000]);
  const fresh = await stage.serve({ signInLasts: "10m", signInIdle: "3m" });
  expect((await stage.ask("GET", "/v1/me", by(cookie, fresh), fresh)).status).toBe(401);
});

test("a sign-in unused for four hours has ended and is no longer listed; each use is recorded", async () => {
  const [used, idle] = [await signIn("ann", "used"), await signIn("ann", "idle")];
  const begunMs = (agent: string, ago: number) =>
    stage.rows("update $s.sign_in set created_ms = $1, seen_ms = null where agent = $2", [Date.now() - ago, agent]);
  await begunMs("idle", 4 * hourMs + 1_000);
  await begunMs("used", 4 * hourMs - 60_000);
  expect(await isLetIn(idle)).toBe(false);
  expect(await isLetIn(used)).toBe(true);
  const seen = () => stage.rows("select from $s.sign_in where agent = 'used' and seen_ms > created_ms");
  await until("its use to be put down", async () => (await seen()).length === 1);
  const agents = (await listed(used)).map(({ agent }: { agent: string }) => agent);
  expect(agents).toContain("used");
  expect(agents).not.toContain("idle");
});

test("a sign-in made by a node of an older version is shown without the fields that version did not write", async () => {
  const secret = makeSecret();
  await stage.rows(
    `insert into $s.sign_in (hash, user_id, created_ms, expires_ms)
     select $1, id, $2::bigint, $2::bigint + 86400000 from $s.user_account where name = 'ann'`,
    [hashOfSecret(secret), Date.now()],
  );
  const [found] = await listed(`carillon=${secret}`);
  expect(found).toMatchObject({ present: true, address: null, agent: null });
});

describe("the log", () => {
  const linesOf = (from: number) =>
    stage.lines.slice(from).flatMap(({ level, fields }) => {
      const { code, by: way, user, address, route } = fields as Record<string, string | undefined>;
      return code !== undefined || way !== undefined ? [{ level, what: code ?? way, user, address, route }] : [];
    });
  const address = "127.0.0.1";
  // These tests use a new server, because the shared one has logged the maximum number of refusals per minute.
  let server = stage.server;
  beforeAll(async () => {
    server = await stage.serve();
  });
  const origin = () => ({ origin: stage.urlOf(server) });
  const kim = async (given: string) =>
    stage.ask("POST", "/v1/sign-in", { body: { name: "kim", password: given }, headers: origin() }, server);

  test("has each sign-in and each refused one with the user's name, but not text typed in place of a name", async () => {
    await admin().createUser({ name: "kim", password, role: "viewer" });
    const from = stage.lines.length;
    await kim(password);
    await kim("wrong password!");
    const typed = { name: "my secret phrase", password: "wrong password!" };
    await stage.ask("POST", "/v1/sign-in", { body: typed, headers: origin() }, server);
    expect(linesOf(from)).toEqual([
      { level: "info", what: "password", user: "kim", address },
      { level: "warn", what: "SIGN_IN_REFUSED", user: "kim", address },
      { level: "warn", what: "SIGN_IN_REFUSED", user: undefined, address },
    ]);
    expect(JSON.stringify(stage.lines)).not.toMatch(/my secret phrase|wrong password!/);
  });

  test("has denied rights, wrong tokens and cross-origin requests, but not requests without a sign-in", async () => {
    const cookie = ((await kim(password)).headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    const from = stage.lines.length;
    const ask = (method: string, path: string, given?: AskOptions) => stage.ask(method, path, given, server);
    const run = { body: { payload: null } };
    await ask("GET", "/v1/me");
    await ask("POST", "/v1/tasks/t/runs", { headers: { cookie, ...origin() }, ...run });
    await ask("POST", "/v1/tasks/t/runs", { headers: { cookie, origin: "https://elsewhere.example" }, ...run });
    await ask("GET", "/v1/users", { token: stage.tokens.viewer });
    await ask("GET", "/v1/users", { token: `ct_1_${"A".repeat(43)}` });
    const runs = "POST /v1/tasks/:task/runs";
    const told = { level: "warn", address };
    expect(linesOf(from)).toEqual([
      { ...told, what: "ACCESS_DENIED", user: "kim", route: runs },
      { ...told, what: "ORIGIN_REFUSED", user: undefined, route: runs },
      { ...told, what: "ACCESS_DENIED", user: expect.stringMatching(/ by token /), route: "GET /v1/users" },
      { ...told, what: "SIGN_IN_NEEDED", user: undefined, route: "GET /v1/users" },
    ]);
  });
});

describe("passwords known from breaches", () => {
  test("are refused for every user, and an unreadable list makes only password changes fail", async () => {
    const breached = "eight herons at the weir";
    const folder = mkdtempSync(join(tmpdir(), "breached-"));
    const path = join(folder, "hashes");
    const hash = createHash("sha1").update(breached).digest("hex").toUpperCase();
    writeFileSync(path, [`${"0".repeat(40)}:3`, `${hash}:2`, `${"F".repeat(40)}:1`, ""].join("\r\n"));
    const other = await stage.serve({ breachedPasswords: path });
    const ask = (method: string, to: string, body: unknown) =>
      stage.ask(
        method,
        to,
        { token: stage.tokens.admin, body, headers: method === "PATCH" ? { "if-match": '"1"' } : {} },
        other,
      );
    const made = (name: string, given: string) => ask("POST", "/v1/users", { name, password: given, role: "viewer" });
    expect((await made("lou", breached)).body).toMatchObject({
      code: "PASSWORD_WEAK",
      detail: "the password is known from breaches elsewhere",
    });
    expect((await made("lou", password)).status).toBe(201);
    expect((await ask("PATCH", "/v1/users/lou", { password: breached })).body.code).toBe("PASSWORD_WEAK");
    const headers = { origin: stage.urlOf(other) };
    const signed = await stage.ask("POST", "/v1/sign-in", { body: { name: "lou", password }, headers }, other);
    const cookie = (signed.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    const change = (next: string) =>
      stage.ask(
        "POST",
        "/v1/me/password",
        { body: { present: password, next }, headers: { ...headers, cookie } },
        other,
      );
    expect((await change(breached)).body.code).toBe("PASSWORD_WEAK");
    rmSync(folder, { recursive: true });
    expect((await change("nine otters at dusk")).body).toMatchObject({ code: "FILE_INVALID", status: 503 });
    expect((await stage.ask("POST", "/v1/sign-in", { body: { name: "lou", password }, headers }, other)).status).toBe(
      200,
    );
    await expect(stage.serve({ breachedPasswords: path })).rejects.toMatchObject({ code: "FILE_INVALID" });
  });
});
