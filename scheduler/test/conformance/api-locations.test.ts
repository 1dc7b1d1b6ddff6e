import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RouteId, routeIds, shapeOf } from "../../src/api/contract.ts";
import type { Carillon } from "../../src/library/carillon.ts";
import { ApiStage, type AskOptions } from "../support/api-stage.ts";

const stage = new ApiStage();
let server: Carillon;
const password = "seven bells at noon";
let ended = 0;
let cookie = "";

beforeAll(async () => {
  await stage.open();
  server = await stage.serve({
    secretKeys: randomBytes(32).toString("base64"),
    // No server listens on this port, so the messages of the tests are not delivered.
    alarms: { channels: { ops: { webhook: "http://127.0.0.1:1/" } } },
  });
  const admin = stage.client();
  await stage.task("there", { group: "nobody" });
  ended = (await admin.runTask({ task: "there", in: "1d" })).run;
  await admin.cancelRun({ run: ended });
  await admin.createUser({ name: "ann", password, role: "viewer" });
  const signedIn = await stage.ask("POST", "/v1/sign-in", { body: { name: "ann", password }, headers: own() }, server);
  cookie = (signedIn.headers.getSetCookie()[0] ?? "").split(";")[0] ?? "";
});
afterAll(() => stage.close());

const own = () => ({ origin: stage.urlOf(server) });

/** Routes that create something but return no Location; each with the reason. */
const without: Partial<Record<RouteId, string>> = {
  enqueueRuns: "it makes many runs; the answer has their numbers",
};

interface Request {
  path: string;
  body: object;
  /** "cookie" for a route that accepts only signed-in users; default: a token. */
  by?: "cookie";
}
const requests = (): Partial<Record<RouteId, Request>> => ({
  createTask: { path: "/v1/tasks/theirs%2Fnew", body: { options: { command: { argv: ["/usr/bin/true"] } } } },
  runTask: { path: "/v1/tasks/there/runs", body: { in: "1d", key: "once" } },
  rerunRun: { path: `/v1/runs/${ended}/rerun`, body: {} },
  beginOperation: { path: "/v1/operations", body: { kind: "resume", filter: { task: "there" } } },
  createUser: { path: "/v1/users", body: { name: "bea", password, role: "viewer" } },
  createToken: { path: "/v1/tokens", body: { name: "a:b" } },
  createWorkerKey: { path: "/v1/worker-keys", body: { name: "theirs/key" } },
  silenceAlarms: { path: "/v1/alarm-silences", body: { rule: "late", for: "1h" } },
  createAlarmRule: { path: "/v1/alarm-rules", body: { name: "theirs/ended", kind: "ended" } },
  testAlarmChannel: { path: "/v1/alarm-channels/ops/test", body: {} },
  beginSecondFactor: { path: "/v1/me/second-factor", body: { password }, by: "cookie" },
});

const makes = routeIds.filter((routeId) => [201, 202].includes(shapeOf(routeId).status ?? 200));

test("every route that creates a readable resource has a Location, or a stated reason for having none", () => {
  const told = makes.filter((routeId) => shapeOf(routeId).makes);
  expect([...told, ...Object.keys(without)].sort()).toEqual([...makes].sort());
  expect(Object.keys(requests()).sort()).toEqual([...told].sort());
});

test.each(makes.filter((routeId) => shapeOf(routeId).makes))(
  "the resource made by %s is at its Location",
  async (routeId) => {
    const { method, status, makes } = shapeOf(routeId);
    const { path, body, by } = requests()[routeId] as Request;
    const who: AskOptions = by === "cookie" ? { headers: { cookie, ...own() } } : { token: stage.tokens.admin };
    const made = await stage.ask(method, path, { ...who, body }, server);
    expect([made.status, made.body]).toEqual([status, expect.any(Object)]);
    const location = made.headers.get("location") as string;
    expect(location).toMatch(/^\/v1\/[\w/%.-]+$/);
    const read = await stage.ask("GET", location, who, server);
    expect(read.status).toBe(200);
    for (const field of Object.values(makes?.places ?? {})) expect(read.body[field]).toBe(made.body[field]);
  },
);

test("a repeated request has the first answer's Location; an enqueue whose key matched has the existing run's", async () => {
  const ask = (idempotencyKey: string) =>
    stage.ask("POST", "/v1/tasks/there/runs", {
      token: stage.tokens.operator,
      headers: { "idempotency-key": idempotencyKey },
      body: { in: "1d", key: "same" },
    });
  const first = await ask("k-1");
  const [again, other] = [await ask("k-1"), await ask("k-2")];
  expect([again.headers.get("idempotency-replayed"), other.body.created]).toEqual(["true", false]);
  for (const { headers, status } of [again, other])
    expect([status, headers.get("location")]).toEqual([201, `/v1/runs/${first.body.run}`]);
});

test("an answer that creates nothing has no Location, and neither has a refusal", async () => {
  const token = stage.tokens.admin;
  const paused = await stage.ask("POST", "/v1/tasks/there/pause", { token, body: {} });
  const refused = await stage.ask("PUT", "/v1/tasks/there", { token, body: { options: {} } });
  expect([paused.status, refused.status]).toEqual([200, 409]);
  for (const { headers } of [paused, refused]) expect(headers.get("location")).toBeNull();
});
