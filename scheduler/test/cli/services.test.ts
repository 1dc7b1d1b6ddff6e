import { Ensemble } from "@carillon/zookeeper/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RedisServer } from "../support/redis-server.ts";
import { ask, here, json, objects, reliesOnService, start, until } from "./process.ts";

/** Expects that the command refuses this address with the given code and a hint, and that its output contains no password. */
const refuses = async (coordination: string, code: string, message = /./) => {
  const refused = await ask("server", "--json", "--coordination", coordination);
  const stderr = objects(refused.stderr);
  expect([coordination, refused.code, stderr]).toMatchObject([
    coordination,
    4,
    [{ code, message: expect.stringMatching(message), hint: expect.stringMatching(/\w/) }],
  ]);
  expect(refused.stderr + refused.stdout).not.toContain("secret");
};
const serverReady = async (coordination: string) => {
  const server = start(["server", ...here(), "--coordination", coordination]);
  await server.says(/"server is ready"/);
  return server;
};
const coordinationCheck = async (coordination: string) => {
  const { checks } = await json("doctor", "--coordination", coordination);
  return (checks as { what: string }[]).find(({ what }) => what === "coordination");
};

describe("Redis as coordination provider, from the command line", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await RedisServer.start(["--requirepass", "right"]);
  });
  afterAll(() => redis.close());
  const at = (credentials: string, rest = "") => `redis://${credentials}@127.0.0.1:${redis.port}${rest}`;

  it("refuses invalid settings, each with its own code and a hint, and prints no password", async () => {
    const evicting = await RedisServer.start(["--maxmemory-policy", "allkeys-lfu"]);
    try {
      await evicting.ask("ACL", "SETUSER", "poor", "on", ">secret", "~*", "&*", "+ping", "+info");
      await evicting.ask("SET", "{theirs}:cluster", "another-cluster");
      await evicting.ask("SET", "{foreign}:state", "not ours");
      const there = `127.0.0.1:${evicting.port}`;
      await Promise.all([
        refuses(at(":secret"), "COORDINATION_REFUSED", /WRONGPASS|invalid/i),
        refuses(at("nobody:secret"), "COORDINATION_REFUSED"),
        refuses(at("").replace("@", ""), "COORDINATION_REFUSED", /NOAUTH/),
        refuses(`redis://${there}`, "COORDINATION_UNSUPPORTED", /allkeys-lfu/),
      ]);
      await evicting.ask("CONFIG", "SET", "maxmemory-policy", "noeviction");
      await Promise.all([
        refuses(`redis://poor:secret@${there}`, "COORDINATION_REFUSED", /permission/),
        refuses(`redis://${there}?prefix=theirs`, "COORDINATION_FOREIGN", /another-cluster/),
        refuses(`redis://${there}?prefix=foreign`, "COORDINATION_FOREIGN"),
      ]);
      const server = await serverReady(`redis://${there}`);
      await until(reliesOnService);
      expect(await json("nodes")).toMatchObject({ coordinationPlace: `Redis at ${there}` });
      expect(await coordinationCheck(`redis://${there}`)).toMatchObject({ verdict: "good" });
      await evicting.ask("CONFIG", "SET", "maxmemory-policy", "volatile-ttl");
      expect(await coordinationCheck(`redis://${there}`)).toMatchObject({
        verdict: "problem",
        found: expect.stringMatching(/COORDINATION_UNSUPPORTED: .*volatile-ttl/),
      });
      expect((await server.end("SIGTERM")).code).toBe(0);
    } finally {
      await evicting.close();
    }
  });

  it("retries while Redis is unreachable and logs that once; with --fail-fast it exits", async () => {
    const own = await RedisServer.start();
    await own.kill();
    const failing = await ask("server", "--coordination", own.url, "--fail-fast", "--json");
    expect([failing.code, objects(failing.stderr)]).toMatchObject([4, [{ code: "COORDINATION_UNREACHABLE" }]]);
    const server = start(["server", ...here(), "--coordination", own.url]);
    await server.says(/the coordination service is away; going on trying/);
    await own.up();
    await server.says(/"server is ready"/);
    expect(server.stdout.match(/going on trying/g)).toHaveLength(1);
    expect((await server.end("SIGTERM")).code).toBe(0);
    await own.close();
  });
});

describe("a ZooKeeper that requires authentication", () => {
  let ensemble: Ensemble;
  beforeAll(async () => {
    ensemble = await Ensemble.start({ servers: 1, tickTime: 200, sasl: { users: { ann: "right" }, required: true } });
  });
  afterAll(() => ensemble.stop());

  it("admits clients with valid credentials and refuses all other clients, with a hint for each refusal", async () => {
    const at = (credentials: string, rest = "") => `zookeeper://${credentials}${ensemble.server.address}/sasl${rest}`;
    await Promise.all([
      refuses(at("ann:secret@", "?auth=sasl"), "COORDINATION_REFUSED"),
      refuses(at("ann:secret@"), "COORDINATION_REFUSED", /SASL/),
      refuses(at(""), "COORDINATION_REFUSED", /SASL/),
    ]);
    for (const wrong of [at("", "?auth=sasl"), at("ann:secret@", "?auth=kerberos")])
      expect((await ask("server", "--coordination", wrong)).code).toBe(2);
    const server = await serverReady(at("ann:right@", "?auth=sasl"));
    await until(reliesOnService);
    expect((await server.end("SIGTERM")).code).toBe(0);
  });
});
