import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { client } from "../../src/api/client.ts";
import type { Carillon } from "../../src/library/carillon.ts";
import { ApiStage } from "../support/api-stage.ts";
import { SignInProvider } from "../support/sign-in-provider.ts";

const stage = new ApiStage();
const provider = new SignInProvider();
let server: Carillon;
let url = "";
beforeAll(async () => {
  await provider.open();
  await stage.open();
  server = await stage.serve({
    basePath: "/tools/carillon/",
    frameAncestors: ["https://Portal.example:443/", "http://127.0.0.1:8080"],
    behindProxy: true,
    provider: {
      issuer: provider.issuer,
      clientId: provider.clientId,
      clientSecret: provider.clientSecret,
      url: "https://tools.example",
      rules: [{ claim: "groups", has: "ops", role: "operator" }],
    },
  });
  provider.serve("https://tools.example/tools/carillon/v1/sign-in/provided");
  url = stage.urlOf(server);
});
afterAll(async () => {
  await stage.close();
  await provider.close();
});

const html = { accept: "text/html" };

describe("a server with a base path", () => {
  test("answers requests with the path and without it, and none with another path", async () => {
    const found = async (path: string) => (await fetch(`${url}${path}`)).status;
    for (const path of ["/v1/sign-in", "/livez", "/v1/openapi.json?x=/tools/carillon/"])
      expect([path, await found(path), await found(`/tools/carillon${path}`)]).toEqual([path, 200, 200]);
    for (const path of ["/tools/carillonette/v1/sign-in", "/tools/v1/sign-in", "/tools/carillon/tools/carillon/livez"])
      expect([path, await found(path)]).toEqual([path, 404]);
    expect(await found("/tools/carillon/v1/nothing")).toBe(404);
    for (const path of ["/tools/carillon", "/tools/carillon?a=b", "/tools/carillon/", "/tools/carillon/runs/5"]) {
      const answer = await fetch(`${url}${path}`, { headers: html });
      expect([path, answer.status, answer.headers.get("content-type")]).toEqual([
        path,
        200,
        "text/html; charset=utf-8",
      ]);
    }
    const key = await stage.key("base-path");
    const poll = { method: "POST", headers: { authorization: `Bearer ${key}`, "content-type": "application/json" } };
    expect((await fetch(`${url}/tools/carillon/v1/worker/poll`, { ...poll, body: "{}" })).status).not.toBe(404);
  });

  test("serves a page whose files are below the path, from every address", async () => {
    for (const path of ["/", "/tools/carillon/runs/5"]) {
      const page = await (await fetch(`${url}${path}`, { headers: html })).text();
      expect(page).toContain('<meta name="base-path" content="/tools/carillon" />');
      const files = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file]) => file as string);
      expect(files.length).toBeGreaterThan(1);
      for (const file of files) {
        expect(file).toMatch(/^\/tools\/carillon\/assets\//);
        expect([file, (await fetch(`${url}${file}`)).status]).toEqual([file, 200]);
      }
    }
  });

  test("has cookies for the path alone, and leads back to it", async () => {
    const admin = stage.client();
    const password = "seven lamps by the quay 9";
    await admin.createUser({ name: "ida", password, role: "viewer" });
    const answer = await fetch(`${url}/tools/carillon/v1/sign-in`, {
      method: "POST",
      headers: { origin: url, "content-type": "application/json" },
      body: JSON.stringify({ name: "ida", password }),
    });
    const cookies = answer.headers.getSetCookie();
    expect(cookies).toHaveLength(2);
    for (const [at, name] of ["__Secure-carillon", "__Secure-carillon-known"].entries()) {
      expect(cookies[at]?.split(/[=;]/)[0]).toBe(name);
      expect(cookies[at]).toMatch(/; Path=\/tools\/carillon; HttpOnly; SameSite=Strict; .*Secure$/);
    }
    const cookie = cookies[0]?.split(";")[0] ?? "";
    expect((await fetch(`${url}/v1/me`, { headers: { cookie } })).status).toBe(200);

    const begun = await fetch(`${url}/tools/carillon/v1/sign-in/provider`, { redirect: "manual" });
    const to = new URL(begun.headers.get("location") ?? "");
    expect(to.origin).toBe(provider.issuer);
    expect(to.searchParams.get("redirect_uri")).toBe("https://tools.example/tools/carillon/v1/sign-in/provided");
    expect(begun.headers.get("set-cookie")).toMatch(
      /^__Secure-carillon-attempt=.*; Path=\/tools\/carillon; .*SameSite=Lax/,
    );
    const back = await fetch(`${url}/v1/sign-in/provided?state=x`, { redirect: "manual", headers: html });
    expect(back.headers.get("location")).toBe("/tools/carillon/?refused=SIGN_IN_REFUSED&why=attempt");
  });

  test("names what it makes, and itself, with the path", async () => {
    const api = client({ server: `${url}/tools/carillon`, token: stage.tokens.admin });
    await api.createTask({ task: "below", options: { command: { argv: ["/usr/bin/true"] } } });
    const made = await stage.ask(
      "POST",
      "/v1/tasks/below/runs",
      { token: stage.tokens.admin, body: { in: "1d" } },
      server,
    );
    expect(made.headers.get("location")).toBe(`/tools/carillon/v1/runs/${made.body.run}`);
    const serversOf = async (at: string) =>
      ((await (await fetch(`${at}/v1/openapi.json`)).json()) as { servers: unknown }).servers;
    expect(await serversOf(url)).toEqual([{ url: "/tools/carillon" }]);
    expect(await serversOf(stage.urlOf())).toEqual([{ url: "/" }]);
  });
});

describe("the console in a frame", () => {
  test("is permitted to the pages of the setting, and its API to none", async () => {
    const page = await fetch(`${url}/tools/carillon/`, { headers: html });
    expect(page.headers.get("content-security-policy")).toContain(
      "; frame-ancestors https://portal.example http://127.0.0.1:8080; ",
    );
    expect(page.headers.get("x-frame-options")).toBe(null);
    const answer = await fetch(`${url}/tools/carillon/v1/sign-in`);
    expect(answer.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
    expect(answer.headers.get("x-frame-options")).toBe("DENY");
    const other = await fetch(`${stage.urlOf()}/`, { headers: html });
    expect(other.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
    expect(other.headers.get("x-frame-options")).toBe("DENY");
  });
});
