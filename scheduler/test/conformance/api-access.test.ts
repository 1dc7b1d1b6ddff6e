import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasRole, type Role, roles } from "../../src/access/access.ts";
import { writes } from "../../src/api/contract/route.ts";
import { routeIds, shapeOf } from "../../src/api/contract.ts";
import { ApiStage, pathOf } from "../support/api-stage.ts";

const stage = new ApiStage();
beforeAll(async () => {
  await stage.open();
});
afterAll(() => stage.close());

const closed = routeIds.filter((routeId) => shapeOf(routeId).policy !== "anyone");
/** Any body is enough: a caller without rights is refused before the body is validated. */
const asked = (routeId: (typeof routeIds)[number]) => {
  const shape = shapeOf(routeId);
  return { ...(writes(shape) && shape.body ? { body: {} } : {}), headers: { "if-match": "*" } };
};

describe("every route", () => {
  test("refuses a missing, malformed, expired or revoked token, and a worker key", async () => {
    const key = await stage.key("worker");
    const expired = await stage.token("admin", { expiresMs: 2 });
    const revoked = await stage.token("admin");
    const [{ userId } = { userId: 0 }] = await stage.store.access.tokens(null, Number.MAX_SAFE_INTEGER, 1);
    await stage.store.access.revokeToken(userId, "test", { author: "test", reason: "", nowMs: 5 });
    const foreign = stage.tokens.admin.replace(/.{5}$/, "aaaaa");
    // Each route is called from a different address, because the server blocks an address that sends this number of wrong tokens.
    const server = await stage.serve({ behindProxy: true });
    for (const [n, routeId] of closed.entries()) {
      const given = asked(routeId);
      const from = { ...given, headers: { ...given.headers, "x-forwarded-for": `10.1.${n}.1` } };
      for (const token of [undefined, "nonsense", expired, revoked, foreign, key]) {
        const by = { ...from, ...(token === undefined ? {} : { token }) };
        const { status, body } = await stage.ask(shapeOf(routeId).method, pathOf(routeId), by, server);
        expect([routeId, token, status, body.code]).toEqual([routeId, token, 401, "SIGN_IN_NEEDED"]);
      }
      const cookie = { ...from, headers: { ...from.headers, cookie: `__Host-carillon=${"a".repeat(43)}` } };
      expect((await stage.ask(shapeOf(routeId).method, pathOf(routeId), cookie, server)).status).toBe(401);
    }
  });

  const lesser = closed.flatMap((routeId) =>
    roles
      .filter((role) => !hasRole(role, shapeOf(routeId).policy as Role) && shapeOf(routeId).policy !== "signed-in")
      .map((role) => [routeId, role] as const),
  );
  test("refuses a role below the required one", async () => {
    expect(lesser.length).toBeGreaterThan(30);
    for (const [routeId, role] of lesser) {
      const given = { ...asked(routeId), token: stage.tokens[role] };
      const { status, body } = await stage.ask(shapeOf(routeId).method, pathOf(routeId), given);
      expect([routeId, role, status, body.code]).toEqual([routeId, role, 403, "ACCESS_DENIED"]);
    }
  });

  test("refuses a token whose scope is something else", async () => {
    const other = { tasks: "runs", runs: "tasks" } as Record<string, "runs" | "tasks">;
    const tokens = new Map<string, string>();
    for (const routeId of closed) {
      const { noun, method } = shapeOf(routeId);
      const read = writes(shapeOf(routeId)) ? "write" : "read";
      const elsewhere = other[noun] ?? "tasks";
      const scopes = [
        `${elsewhere}:read`,
        `${elsewhere}:write`,
        `${noun}:${read === "read" ? "write" : "read"}`,
      ] as const;
      const token = tokens.get(scopes.join()) ?? (await stage.token("admin", { scopes: [...scopes] }));
      tokens.set(scopes.join(), token);
      const { status, body } = await stage.ask(method, pathOf(routeId), { ...asked(routeId), token });
      expect([routeId, status, body.code]).toEqual([routeId, 403, "ACCESS_DENIED"]);
    }
  });

  test("admits the required role, so that the refusals above are due to the role", async () => {
    for (const routeId of closed) {
      const shape = shapeOf(routeId);
      if (shape.event || writes(shape)) continue;
      const role = shape.policy === "signed-in" ? "viewer" : (shape.policy as Role);
      const { status } = await stage.ask("GET", pathOf(routeId), { token: stage.tokens[role] });
      expect([routeId, status]).toEqual([routeId, expect.toSatisfy((one: number) => [200, 400, 404].includes(one))]);
    }
  });

  test("lets global viewers read the metrics, but not users of a single namespace", async () => {
    const scrape = async (token: string) => {
      const headers = { authorization: `Bearer ${token}` };
      return (await fetch(`${stage.urlOf()}/metrics`, { headers })).status;
    };
    expect(await scrape(stage.tokens.viewer)).toBe(200);
    for (const given of [
      await stage.token("admin", { where: ["billing"] }),
      await stage.token("viewer", { namespaces: ["billing"] }),
      await stage.token("viewer", { scopes: ["runs:read"] }),
    ])
      expect(await scrape(given)).toBe(403);
    expect(await scrape(await stage.token("viewer", { expiresMs: 1 }))).toBe(401);
  });

  test("has strict headers, and refuses unknown paths and methods", async () => {
    const { headers, body, status } = await stage.ask("GET", "/v1/nothing");
    expect([status, body.code]).toEqual([404, "ROUTE_UNKNOWN"]);
    const wrong = await stage.ask("POST", "/v1/tasks/a%2Fb", { token: stage.tokens.viewer });
    expect([wrong.status, wrong.body.code]).toEqual([405, "METHOD_UNKNOWN"]);
    expect(wrong.headers.get("allow")).toBe("DELETE, GET, HEAD, PATCH, PUT");
    expect((await stage.ask("DELETE", "/v1/tasks")).headers.get("allow")).toBe("GET, HEAD");
    const named = await stage.ask("GET", "/v1/nothing", { headers: { "x-request-id": "deploy-7" } });
    expect(named.headers.get("x-request-id")).toBe("deploy-7");
    for (const odd of ["a b", "x".repeat(129)]) {
      const made = await stage.ask("GET", "/v1/tasks", {
        token: stage.tokens.viewer,
        headers: { "x-request-id": odd },
      });
      expect(made.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
    }
    for (const answer of [headers, (await stage.ask("GET", "/v1/tasks", { token: stage.tokens.viewer })).headers]) {
      expect(answer.get("x-content-type-options")).toBe("nosniff");
      expect(answer.get("content-security-policy")).toContain("default-src 'none'; frame-ancestors 'none'");
      expect(answer.get("cache-control")).toBe("no-store");
      expect(answer.get("referrer-policy")).toBe("no-referrer");
      expect(answer.get("content-type")).toMatch(/^application\/(?:problem\+)?json; charset=utf-8$/);
      expect(answer.get("access-control-allow-origin")).toBeNull();
    }
  });
});

describe("a request", () => {
  test("cannot pass a credential in the URL", async () => {
    for (const name of ["token", "access_token", "key", "authorization"]) {
      const { status, body } = await stage.ask("GET", `/v1/tasks?${name}=${stage.tokens.admin}`);
      expect([name, status, body.code]).toEqual([name, 401, "SIGN_IN_NEEDED"]);
    }
    const key = await stage.key("in-the-address");
    for (const [method, path, refusal] of [
      ["POST", "/v1/worker/poll", "KEY_UNKNOWN"],
      ["GET", "/metrics", "SIGN_IN_NEEDED"],
    ] as const) {
      const { status, body } = await stage.ask(method, `${path}?key=${key}`);
      expect([path, status, body.code]).toEqual([path, 401, refusal]);
    }
  });

  /** Sends a raw HTTP request. Resolves with all that the server sends until it closes the connection. */
  const raw = (head: readonly string[], body = "") =>
    new Promise<string>((resolve, reject) => {
      const { hostname, port } = new URL(stage.urlOf());
      const socket = connect(Number(port), hostname);
      let got = "";
      socket.setEncoding("latin1").on("data", (part) => {
        got += part;
      });
      socket.on("close", () => resolve(got)).on("error", reject);
      socket.write(`${[...head, `host: ${hostname}:${port}`, "connection: close"].join("\r\n")}\r\n\r\n${body}`);
    });
  const signIn = ["POST /v1/sign-in HTTP/1.1", "content-type: application/json"];

  test.each([
    ["two lengths", ["content-length: 2", "content-length: 33"]],
    ["a length and chunks", ["content-length: 2", "transfer-encoding: chunked"]],
    ["chunks in an encoding that is none", ["transfer-encoding: chunked, identity"]],
    ["a space before the colon", ["content-length : 2"]],
  ])(
    "with %s is refused and its connection is closed, so that no part of it is read as another request",
    async (_, heads) => {
      const next = "GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";
      const answers = (await raw([...signIn, ...heads], `{}${next}`)).match(/^HTTP\/1\.1 \d+/gm);
      expect(answers).toEqual(["HTTP/1.1 400"]);
    },
  );

  test("is never echoed: there is no TRACE", async () => {
    const answer = await raw(["TRACE /v1/me HTTP/1.1", "cookie: carillon=secret"]);
    expect(answer).toMatch(/^HTTP\/1\.1 40[45] /);
    expect(answer).not.toContain("carillon=secret");
  });

  test.each(["limit=1&limit=2", "state=running&limit=1&state=queued&limit=1"])(
    "that repeats a single-valued parameter is refused: %s",
    async (query) => {
      const { status, body } = await stage.ask("GET", `/v1/runs?${query}`, { token: stage.tokens.viewer });
      expect([status, body.code, body.detail]).toEqual([400, "REQUEST_INVALID", expect.stringContaining("limit")]);
    },
  );
});
