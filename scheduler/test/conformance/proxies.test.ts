import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Carillon } from "../../src/library/carillon.ts";
import { RemoteStage } from "../support/remote-stage.ts";

const stage = new RemoteStage();
beforeAll(() => stage.serve());
afterAll(() => stage.close());

describe("forwarded client addresses", () => {
  /** Sends 25 requests with wrong keys, each with another address in `x-forwarded-for`. @returns the HTTP statuses */
  async function guesses(server: Carillon, forwarded: (n: number) => string): Promise<number[]> {
    const statuses: number[] = [];
    for (let n = 0; n < 25; n++) {
      const headers = { "x-forwarded-for": forwarded(n), authorization: `Bearer ck_${n + 1}_${"A".repeat(43)}` };
      statuses.push((await fetch(`${stage.urlOf(server)}/v1/worker/poll`, { method: "POST", headers })).status);
    }
    return statuses;
  }

  test("are ignored unless the peer is a trusted proxy: all wrong keys count for the connection's own address", async () => {
    const server = await stage.serve({ behindProxy: true, trustedProxies: ["192.0.2.1", "2001:db8::/32"] });
    expect((await guesses(server, (n) => `198.51.100.${n}`)).at(-1)).toBe(429);
    const origin = { origin: "https://carillon.example", "x-forwarded-host": "carillon.example" };
    const signIn = (at: Carillon) =>
      fetch(`${stage.urlOf(at)}/v1/sign-in`, {
        method: "POST",
        headers: { ...origin, "content-type": "application/json" },
        body: JSON.stringify({ name: "nobody", password: "wrong" }),
      });
    expect(await (await signIn(server)).json()).toMatchObject({ status: 403, code: "ORIGIN_REFUSED" });
    expect((await signIn(await stage.serve({ behindProxy: true }))).status, "this machine is, by default").toBe(401);
  });

  test("are read backwards through trusted proxies to the first address that is not one", async () => {
    const server = await stage.serve({ behindProxy: true, trustedProxies: ["127.0.0.1", "10.0.3.0/24"] });
    expect((await guesses(server, (n) => `198.51.100.${n}, 10.0.3.${n}`)).at(-1)).toBe(401);
    expect((await guesses(server, (n) => `198.51.100.${n}, 192.0.2.9, 10.0.3.${n}`)).at(-1)).toBe(429);
  });
});

/** Sends a GET request with this `Host` header, which `fetch` would replace. @returns the HTTP status and the error's code */
const answerFor = (server: Carillon, host: string, path: string): Promise<[number | undefined, string | undefined]> =>
  new Promise((resolve, reject) => {
    const [hostname, port] = (server.listening as string).split(":");
    request({ hostname, port, path, headers: { host } }, (answer) => {
      let text = "";
      answer.on("data", (chunk) => {
        text += chunk;
      });
      answer.on("end", () => resolve([answer.statusCode, /"code":"(\w+)"/.exec(text)?.[1]]));
    })
      .on("error", reject)
      .end();
  });

describe("a request's host", () => {
  const foreign = [
    "evil.example",
    "evil.example:7373",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "0.0.0.0",
    "[::2]",
  ];
  const own = ["localhost", "LOCALHOST:1", "carillon.localhost:7373", "127.0.0.1", "127.9.9.9:80", "[::1]:7373"];

  test("must be this machine's without a proxy: a name rebound to it is refused by every route", async () => {
    for (const path of ["/v1/sign-in", "/v1/me", "/livez", "/", "/nothing", "/v1/openapi.json", "/metrics"])
      for (const host of foreign)
        expect([path, host, ...(await answerFor(stage.server, host, path))]).toEqual([path, host, 421, "HOST_REFUSED"]);
    for (const host of own) expect([host, (await answerFor(stage.server, host, "/livez"))[0]]).toEqual([host, 200]);
  });

  test("is left to the proxy if there is one", async () => {
    const server = await stage.serve({ behindProxy: true });
    expect((await answerFor(server, "carillon.example", "/livez"))[0]).toBe(200);
  });

  test("is restricted to TLS afterwards, with its subdomains, if a proxy terminates TLS", async () => {
    const strict = async (server: Carillon) =>
      (await fetch(`${stage.urlOf(server)}/v1/sign-in`)).headers.get("strict-transport-security");
    expect(await strict(stage.server)).toBeNull();
    expect(await strict(await stage.serve({ behindProxy: true }))).toBe("max-age=31536000; includeSubDomains");
  });
});
