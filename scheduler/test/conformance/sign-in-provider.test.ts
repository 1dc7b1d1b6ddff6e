import { createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Carillon } from "../../src/library/carillon.ts";
import { ApiStage } from "../support/api-stage.ts";
import { foreignKey, SignInProvider, SmallBrowser, signed, unsigned } from "../support/sign-in-provider.ts";

const stage = new ApiStage();
const provider = new SignInProvider();
let server: Carillon;
let home = "";
const attempt = "carillon-attempt";

beforeAll(async () => {
  await Promise.all([stage.open(), provider.open()]);
  // Reserves a free port, because the provider must know the server's address before the server listens.
  const port = await new Promise<number>((resolve) => {
    const holder = createServer().listen(0, "127.0.0.1", () => {
      const { port: free } = holder.address() as { port: number };
      holder.close(() => resolve(free));
    });
  });
  home = `http://127.0.0.1:${port}`;
  const { issuer, clientId, clientSecret } = provider;
  server = await stage.serve({
    listen: `127.0.0.1:${port}`,
    provider: {
      issuer,
      clientId,
      clientSecret,
      url: home,
      label: "the house",
      scopes: ["profile"],
      rules: [
        { claim: "groups", has: "ops", role: "operator" },
        { claim: "groups", has: "billing", role: "editor", in: "billing" },
        { claim: "groups", has: "audit", role: "viewer", in: ["billing", "payroll"] },
      ],
    },
  });
});
afterAll(async () => {
  await stage.close();
  await provider.close();
});

const begin = () => `${home}/v1/sign-in/provider`;
const back = (browser: SmallBrowser, user: string) => browser.throughProvider(begin(), user);
const me = (browser: SmallBrowser) =>
  stage.ask("GET", "/v1/me", { headers: { cookie: `carillon=${browser.cookie(home, "carillon") ?? ""}` } }, server);
async function signedIn(user: string, browser = new SmallBrowser()) {
  const answer = await browser.go(await back(browser, user));
  return { browser, answer, code: answer.status >= 400 ? ((await answer.json()) as { code: string }).code : undefined };
}

describe("a sign-in provider", () => {
  test("that does not answer is reported, and the next sign-in tries it again", async () => {
    const answer = await fetch(begin(), { redirect: "manual" });
    expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([503, "PROVIDER_UNREACHABLE"]);
    provider.serve(`${home}/v1/sign-in/provided`);
    expect(await stage.client("viewer", server).howToSignIn()).toEqual({
      provider: { label: "the house", path: "/v1/sign-in/provider" },
      cookie: false,
    });
    expect(await stage.client("viewer").howToSignIn()).toEqual({ provider: null, cookie: false });
  });

  test("signs in a user it knows and a rule admits, without a local password", async () => {
    provider.groups.set("ann", ["billing", "audit"]);
    const browser = new SmallBrowser();
    const first = await browser.go(`${begin()}?redirect=https://evil.example/`);
    const to = new URL(first.headers.get("location") as string);
    expect([first.status, to.origin, Object.fromEntries(to.searchParams)]).toMatchObject([
      302,
      provider.issuer,
      {
        response_type: "code",
        client_id: "carillon",
        code_challenge_method: "S256",
        scope: "openid profile",
        redirect_uri: `${home}/v1/sign-in/provided`,
        state: expect.stringMatching(/^[\w-]{43}$/),
        nonce: expect.stringMatching(/^[\w-]{43}$/),
      },
    ]);
    const { answer } = await signedIn("ann", browser);
    expect([answer.status, answer.headers.get("location")]).toEqual([303, "/"]);
    const [gone, made] = answer.headers.getSetCookie();
    expect(gone).toMatch(/^carillon-attempt=; .*HttpOnly; SameSite=Lax; Max-Age=0/);
    expect(made).toMatch(/^carillon=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=86400$/);
    expect((await me(browser)).body).toMatchObject({
      user: "ann",
      role: null,
      grants: [
        { namespace: "billing", role: "editor" },
        { namespace: "payroll", role: "viewer" },
      ],
    });
    const admin = stage.client();
    expect((await admin.listUsers({ limit: 200 })).items.find(({ name }) => name === "ann")).toMatchObject({
      provided: true,
      createdBy: "the provider the house",
    });
    expect((await admin.listAudit({ about: "user", named: "ann" })).items).toMatchObject([{ act: "create" }]);
    const guess = await stage.ask("POST", "/v1/sign-in", { body: { name: "ann", password: "none" } }, server);
    expect(guess.body.code).toBe("SIGN_IN_REFUSED");
  });

  test("decides the rights of its users: at each sign-in again, and at once", async () => {
    const { browser } = await signedIn("ann");
    provider.groups.set("ann", ["ops"]);
    const former = browser.cookie(home, "carillon");
    await signedIn("ann", browser);
    const ended = await stage.ask("GET", "/v1/me", { headers: { cookie: `carillon=${former}` } }, server);
    expect(ended.status, "the browser's sign-in of before has ended").toBe(401);
    expect((await me(browser)).body).toMatchObject({ role: "operator", grants: [{ namespace: "*" }] });
    const { items } = await stage.client().listAudit({ about: "user", named: "ann" });
    expect(items).toMatchObject([{ act: "change", after: { role: "operator" } }, { act: "create" }]);
  });

  test("admits no user without a matching rule, none who is locked out, and none whose name another user has", async () => {
    expect(await signedIn("zoe")).toMatchObject({ code: "SIGN_IN_REFUSED" });
    const admin = stage.client();
    const names = async () => (await admin.listUsers({ limit: 200 })).items.map(({ name }) => name);
    expect(await names()).not.toContain("zoe");
    await admin.createUser({ name: "bob", password: "a long enough password", role: "admin" });
    provider.groups.set("bob", ["ops"]);
    expect(await signedIn("bob")).toMatchObject({ code: "USER_NAME_TAKEN" });
    await admin.changeUser({ user: "ann", disabled: true });
    expect(await signedIn("ann")).toMatchObject({ code: "SIGN_IN_REFUSED" });
    await admin.changeUser({ user: "ann", disabled: false });
    expect((await signedIn("ann")).answer.status).toBe(303);
  });

  test("does not restore a user that an admin removed, even under a reused name; a removed password's name is free", async () => {
    const admin = stage.client("admin", server);
    const password = "a long enough password";
    await admin.createUser({ name: "cleo", password, role: "admin" });
    provider.groups.set("cleo", ["ops"]);
    expect(await signedIn("cleo")).toMatchObject({ code: "USER_NAME_TAKEN" });
    await admin.removeUser({ user: "cleo" });
    const { browser, answer } = await signedIn("cleo");
    expect(answer.status).toBe(303);
    expect((await me(browser)).body).toMatchObject({ user: "cleo", role: "operator" });
    expect((await stage.ask("POST", "/v1/sign-in", { body: { name: "cleo", password } }, server)).status).toBe(401);

    await admin.removeUser({ user: "cleo", reason: "left" });
    expect((await me(browser)).status).toBe(401);
    expect(await signedIn("cleo")).toMatchObject({ code: "SIGN_IN_REFUSED" });
    await admin.createUser({ name: "cleo", password, role: "viewer" });
    expect(await signedIn("cleo")).toMatchObject({ code: "SIGN_IN_REFUSED" });
    await admin.removeUser({ user: "cleo" });
    expect(await signedIn("cleo")).toMatchObject({ code: "SIGN_IN_REFUSED" });
  });

  test("is trusted only for the browser and the request that began the sign-in, once", async () => {
    const refusedOf = async (browser: SmallBrowser, url: string) => {
      const answer = await browser.go(url);
      expect(browser.cookie(home, "carillon")).toBeUndefined();
      return [answer.status, ((await answer.json()) as { code: string }).code];
    };
    const refused = [401, "SIGN_IN_REFUSED"];
    // Opens another user's callback URL in a browser that began no sign-in, and in one that began its own.
    const theirs = await back(new SmallBrowser(), "ann");
    expect(await refusedOf(new SmallBrowser(), theirs)).toEqual(refused);
    const asked = new SmallBrowser();
    await asked.go(begin());
    expect(await refusedOf(asked, theirs)).toEqual(refused);
    for (const part of [0, 1, 2]) {
      const browser = new SmallBrowser();
      const url = await back(browser, "ann");
      const parts = (browser.cookie(home, attempt) as string).split(".");
      // Replaces the state, the nonce, and the code verifier of the attempt, one after the other.
      parts[part] = "a".repeat(43);
      browser.setCookie(home, attempt, parts.join("."));
      expect([part, await refusedOf(browser, url)]).toEqual([part, refused]);
    }
    const twice = new SmallBrowser();
    const url = await back(twice, "ann");
    const kept = twice.cookie(home, attempt) as string;
    expect((await twice.go(url)).status).toBe(303);
    const again = new SmallBrowser();
    again.setCookie(home, attempt, kept);
    expect(await refusedOf(again, url)).toEqual(refused);
    const denied = new SmallBrowser();
    const state = new URL(await back(denied, "ann")).searchParams.get("state");
    expect(await refusedOf(denied, `${home}/v1/sign-in/provided?error=access_denied&state=${state}`)).toEqual(refused);
  });

  test("is trusted by its signature only, for a token for this client and from this issuer", async () => {
    const rights = (claims: object) => ({ ...claims, groups: ["ops"] });
    const { key } = provider;
    const forged: [string, NonNullable<SignInProvider["forge"]>][] = [
      [
        "other claims",
        ({ header, claims, signature }) => unsigned({ header, claims: rights(claims) }).replace(/\.$/, `.${signature}`),
      ],
      ["another's key", ({ header, claims }) => signed({ header, claims: rights(claims) }, foreignKey)],
      ["no signature", unsigned],
      ["another client's", ({ header, claims }) => signed({ header, claims: { ...claims, aud: "another" } }, key)],
      [
        "another issuer's",
        ({ header, claims }) => signed({ header, claims: { ...claims, iss: "https://a.example" } }, key),
      ],
    ];
    for (const [what, forge] of forged) {
      provider.forge = forge;
      expect([what, (await signedIn("ann")).code]).toEqual([what, "SIGN_IN_REFUSED"]);
    }
    // A token that is signed again without a change is accepted, so the refusals above are due to the forged contents.
    provider.forge = ({ header, claims }) => signed({ header, claims }, key);
    expect((await signedIn("ann")).answer.status).toBe(303);
    provider.forge = null;
  });

  test("has its tokens stored nowhere", async () => {
    const given: string[] = [];
    provider.forge = (token) => {
      const same = signed(token, provider.key);
      given.push(same);
      return same;
    };
    await signedIn("ann");
    provider.forge = null;
    expect(given).toHaveLength(1);
    const kept = JSON.stringify([
      await stage.rows("select * from $s.sign_in"),
      await stage.rows("select * from $s.user_account"),
      stage.lines,
    ]);
    for (const part of (given[0] as string).split(".")) expect(kept).not.toContain(part);
  });

  test("that is out of order does not count as a failed sign-in of the user", async () => {
    provider.broken = true;
    for (let n = 0; n < 25; n++) {
      const browser = new SmallBrowser();
      await browser.go(begin());
      const [state = ""] = (browser.cookie(home, attempt) as string).split(".");
      const answer = await browser.go(`${home}/v1/sign-in/provided?code=a&state=${state}&iss=${provider.issuer}`);
      expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([503, "PROVIDER_UNREACHABLE"]);
    }
    provider.broken = false;
    expect((await signedIn("ann")).answer.status).toBe(303);
  });

  test("sends a refused browser back to the page, with the reason as a code", async () => {
    const browser = { redirect: "manual", headers: { accept: "text/html,*/*" } } as const;
    const answer = await fetch(`${home}/v1/sign-in/provided?code=a&state=b`, browser);
    expect([answer.status, answer.headers.get("location")]).toEqual([303, "/?refused=SIGN_IN_REFUSED&why=attempt"]);
  });

  test("is not queried repeatedly for the same address", async () => {
    const codes: string[] = [];
    for (let n = 0; n < 25; n++)
      codes.push(
        ((await (await fetch(`${home}/v1/sign-in/provided?code=a&state=${n}`)).json()) as { code: string }).code,
      );
    const first = codes.indexOf("TOO_MANY_ATTEMPTS");
    // The refused sign-ins of the tests above count towards the limit.
    expect(first).toBeLessThanOrEqual(20);
    expect(new Set(codes.slice(0, first))).toEqual(new Set(first > 0 ? ["SIGN_IN_REFUSED"] : []));
    expect(new Set(codes.slice(first))).toEqual(new Set(["TOO_MANY_ATTEMPTS"]));
  });
});
