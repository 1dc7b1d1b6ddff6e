import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RedisConnection } from "../../src/coordination/redis/connection.ts";
import { RedisServer } from "../support/redis-server.ts";
import { until } from "../support/store-stage.ts";

const patienceMs = 60_000;

describe("Pub/Sub messages of a Redis Cluster", () => {
  let server: RedisServer;
  let connection: RedisConnection;
  let lost = 0;
  const log: string[] = [];
  const soon = (what: string, condition: () => boolean | Promise<boolean>) => until(what, condition, patienceMs);
  const isUp = async () => String(await server.ask("CLUSTER", "INFO")).includes("cluster_state:ok");

  beforeEach(async () => {
    server = await RedisServer.start(["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"]);
    await server.ask("CLUSTER", "ADDSLOTSRANGE", 0, 16_383);
    await soon("the cluster is up", isUp);
    const url = `redis+cluster://127.0.0.1:${server.port}`;
    connection = await RedisConnection.open({ url, timeoutMs: 2_000, log: (line) => void log.push(line) });
    connection.onLost = () => lost++;
  });
  afterEach(async () => {
    connection.close();
    await server.close();
  });

  /** Subscribes to the channel "news". @returns an object that collects the messages and counts the subscriptions */
  const follow = () => {
    const heard: string[] = [];
    const told = { heard, following: 0 };
    connection.follow(
      "news",
      (text) => heard.push(text),
      () => told.following++,
    );
    return told;
  };
  const hears = async ({ heard, following }: ReturnType<typeof follow>) => {
    expect(following).toBeGreaterThan(0);
    await server.ask("PUBLISH", "news", "hello");
    await soon("it is heard", () => heard.includes("hello"));
  };

  it("arrive once subscribing is allowed, and requests continue meanwhile", async () => {
    await server.ask("ACL", "SETUSER", "default", "resetchannels");
    const told = follow();
    await soon("it was refused", () => log.some((line) => line.includes("refused")));
    await server.ask("ACL", "SETUSER", "default", "allchannels");
    await soon("it is followed", () => told.following > 0);
    await hears(told);
    expect(lost).toBe(0);
  });

  it("arrive if subscribed to while the cluster was unreachable", async () => {
    await server.kill();
    await soon("that is noticed", () => lost > 0);
    const told = follow();
    await server.up();
    await soon("it is followed", () => told.following > 0);
    await hears(told);
  });
});
