import { afterAll, beforeAll, expect, test } from "vitest";
import { hashOfSecret, makeSecret } from "../../src/access/worker-key.ts";
import { ApiStage, type AskOptions } from "../support/api-stage.ts";
import { inProcess } from "../support/in-process.ts";
import { postgres } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";
import "../support/cheap-passwords.ts";

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
/** At a server that has never seen the cookie, so that it asks the store. */
const isLetIn = async (cookie: string) => {
  const other = await stage.serve();
  return (await stage.ask("GET", "/v1/me", by(cookie, other), other)).status === 200;
};

test("a user sees the sign-ins of all browsers, and ends one of them", async () => {
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

test("an admin ends all of a user's, who may sign in again", async () => {
  const cookies = [await signIn("bea", "one"), await signIn("bea", "two")];
  const { ended } = await admin().endSignInsOf({ user: "bea", reason: "a laptop was stolen" });
  expect(ended).toBeGreaterThanOrEqual(2);
  for (const cookie of cookies) expect((await stage.ask("GET", "/v1/me", by(cookie))).status).toBe(401);
  expect((await listed(await signIn("bea", "three"))).length).toBe(1);
  await expect(admin().endSignInsOf({ user: "nobody" })).rejects.toMatchObject({ code: "USER_UNKNOWN" });
});

test("a user ends all others, and this one goes on", async () => {
  const [desk, ...others] = [await signIn("bea", "desk"), await signIn("bea", "x"), await signIn("bea", "y")];
  expect((await listed(desk)).length).toBeGreaterThanOrEqual(3);
  const { status, body } = await stage.ask("DELETE", "/v1/me/sign-ins", by(desk));
  expect([status, body.ended >= 2]).toEqual([200, true]);
  for (const cookie of others) expect((await stage.ask("GET", "/v1/me", by(cookie))).status).toBe(401);
  expect(await listed(desk)).toMatchObject([{ agent: "desk", present: true }]);
  expect((await stage.ask("DELETE", "/v1/me/sign-ins", by(desk))).body).toEqual({ ended: 0 });
});

test("an admin sees a user's, and ends one of them, by the API and by the command line", async () => {
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

test("a node ends sign-ins as its settings say: the idle end and the absolute one", async () => {
  const short = await stage.serve({ signInLasts: "10m", signInIdle: "3m" });
  const headers = { ...own(short), "user-agent": "short" };
  const given = await stage.ask("POST", "/v1/sign-in", { body: { name: "ann", password }, headers }, short);
  const cookie = (given.headers.getSetCookie()[0] ?? "").split(";")[0] ?? "";
  expect(given.headers.getSetCookie()[0]).toContain("Max-Age=600");
  const me = () => stage.ask("GET", "/v1/me", by(cookie, short), short);
  const endsIn = async () => Date.parse((await me()).body.expires) - Date.now();
  expect(await endsIn()).toBeLessThanOrEqual(180_000);
  // Used a moment ago, and at its absolute end.
  await stage.rows("update $s.sign_in set seen_ms = $1, expires_ms = $1 where agent = 'short'", [Date.now() - 1_000]);
  const fresh = await stage.serve({ signInLasts: "10m", signInIdle: "3m" });
  expect((await stage.ask("GET", "/v1/me", by(cookie, fresh), fresh)).status).toBe(401);
});

test("one that is not used for four hours has ended, and is listed no more; a use is put down", async () => {
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

test("one that a node of an older version began is shown without what it did not write", async () => {
  const secret = makeSecret();
  await stage.rows(
    `insert into $s.sign_in (hash, user_id, created_ms, expires_ms)
     select $1, id, $2::bigint, $2::bigint + 86400000 from $s.user_account where name = 'ann'`,
    [hashOfSecret(secret), Date.now()],
  );
  const [found] = await listed(`carillon=${secret}`);
  expect(found).toMatchObject({ present: true, address: null, agent: null });
});
