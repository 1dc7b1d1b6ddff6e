/**
 * Takes over a minute: four tests wait until sessions of several seconds are over (after Redis has lost its data, while idle, and twice
 * while clocks step). Eighteen shorter tests run one after another, each on its own server.
 */
import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";
import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import type { MembershipProvider } from "../../src/cluster/membership-provider.ts";
import { RedisConnection } from "../../src/coordination/redis/connection.ts";
import { RedisLocks } from "../../src/coordination/redis/lock.ts";
import { openRedisProvider, type RedisProviderOptions } from "../../src/coordination/redis/redis.ts";
import { RedisRegistry } from "../../src/coordination/redis/registry.ts";
import { shownAs } from "../support/provider-stage.ts";
import { StoreProxy } from "../support/proxy.ts";
import { RedisServer } from "../support/redis-server.ts";
import { until } from "../support/store-stage.ts";

const patienceMs = 60_000;
const sessionTimeoutMs = 1_500;
/** Session timeout in ms of members that must not lose their session while a busy machine delays this process. */
const steadyMs = 6_000;
/** Session timeout in ms that is longer than any test, so that no session ends or is renewed during a test. */
const lastingMs = 600_000;
/** The value in coordination/membership.ts. */
const trustMarginMs = 500;
/** The ACL rules that docs/coordination/redis.md tells administrators to grant. */
const documentedRights =
  "~{carillon* &{carillon}* +eval +evalsha +info +subscribe +publish +@string +@hash +@sortedset +del +pexpire +pttl +time";
const promptReplication = ["--repl-diskless-sync-delay", "0"];

/** Tests what only Redis does. membership-provider.test.ts tests every coordination provider. */
describe("coordination provider on Redis", () => {
  const closing: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  const start = async (...args: string[]): Promise<RedisServer> => {
    const server = await RedisServer.start(args);
    closing.push(() => server.close());
    return server;
  };
  const log: string[] = [];
  const open = async (url: string, options: Partial<RedisProviderOptions> = {}): Promise<MembershipProvider> => {
    const provider = await openRedisProvider({
      url,
      clusterId: "cluster-a",
      sessionTimeoutMs,
      failFast: true,
      log: (line) => void log.push(line),
      signal: new AbortController().signal,
      ...options,
    });
    closing.push(() => provider.leave());
    return provider;
  };
  const soon = (what: string, condition: () => boolean | Promise<boolean>) => until(what, condition, patienceMs);
  const first = (provider: MembershipProvider) => provider.sure() && provider.first();
  const isShown = (provider: MembershipProvider) => provider.shownUntil() > performance.now();
  const contender = async (
    url: string,
    id: number,
    options: Partial<RedisProviderOptions> = {},
  ): Promise<MembershipProvider> => {
    const provider = await open(url, options);
    provider.announce(shownAs(id));
    provider.contend();
    await soon("it is shown", () => isShown(provider));
    return provider;
  };

  /** Simulates a process on its own machine, which can be suspended before it reads a reply: then its monotonic clock is set back. */
  const machine = async ({ url }: RedisServer) => {
    let stoodMs = 0;
    const clock = { ...systemClock, monotonic: () => performance.now() - stoodMs };
    const connection = await RedisConnection.open({ url, timeoutMs: 5_000, failFast: true, log: () => undefined });
    closing.push(async () => connection.close());
    const registry = new RedisRegistry(connection, clock, "cluster-a", sessionTimeoutMs);
    const standsStill = (ms: number) => {
      stoodMs += ms;
    };
    return { registry, standsStill };
  };
  const renewal = (sessionId: number) => ({ shown: shownAs(sessionId), contender: undefined, dropped: [] });

  describe("at start", () => {
    it.each([
      ["a wrong password", "COORDINATION_REFUSED", "redis://:wrong@", ""],
      ["no password", "COORDINATION_REFUSED", "redis://", ""],
      ["an unknown user", "COORDINATION_REFUSED", "redis://nobody:x@", ""],
      ["a user without rights", "COORDINATION_REFUSED", "redis://poor:p@", ""],
      ["a user without rights to our keys", "COORDINATION_REFUSED", "redis://rich:p@", "?prefix=other"],
      ["a database that is not there", "COORDINATION_UNSUPPORTED", "redis://:good@", "/999"],
      ["a wrong URL", "OPTION_INVALID", "redys://", ""],
    ] as const)("refuses %s", async (_, code, scheme, rest) => {
      const server = await start("--requirepass", "good");
      const admin = new Redis(server.port, "127.0.0.1", { password: "good" });
      await admin.acl("SETUSER", "poor", "on", ">p", "~*", "&*", "+ping", "+info");
      await admin.acl("SETUSER", "rich", "on", ">p", ...documentedRights.split(" "));
      admin.disconnect();
      const address = `127.0.0.1:${server.port}`;
      await expect(open(`${scheme}${address}${rest}`)).rejects.toMatchObject({
        code,
        message: expect.not.stringContaining("wrong@"),
        hint: expect.stringMatching(/\w/),
      });
      const allowed = await contender(`redis://rich:p@${address}`, 1);
      await soon("it follows the members", () => allowed.shown()?.has(1) === true);
      const locks = await RedisLocks.open({
        url: `redis://rich:p@${address}`,
        clusterId: "cluster-a",
        fenceBase: async () => 1,
        log: (line) => void log.push(line),
      });
      for (const fair of [false, true]) {
        const held = await locks.lock("a", { fair }).acquire();
        expect(await held.release()).toBe(true);
      }
      await locks.close();
    });

    it("refuses a Redis that evicts keys", async () => {
      const server = await start("--maxmemory-policy", "allkeys-lru");
      await expect(open(server.url)).rejects.toMatchObject({
        code: "COORDINATION_UNSUPPORTED",
        message: expect.stringContaining("allkeys-lru"),
      });
    });

    it("refuses another cluster's data, and foreign data, unless the prefix differs", async () => {
      const server = await start();
      await open(server.url);
      await expect(open(server.url, { clusterId: "cluster-b" })).rejects.toMatchObject({
        code: "COORDINATION_FOREIGN",
        message: expect.stringContaining("cluster-a"),
        hint: expect.stringContaining("prefix"),
      });
      await open(`${server.url}?prefix=b`, { clusterId: "cluster-b" });
      await server.ask("SET", "{c}:state", "somebody else's");
      await expect(open(`${server.url}?prefix=c`)).rejects.toMatchObject({ code: "COORDINATION_FOREIGN" });
    });

    it("retries while Redis is unreachable, and logs that; ends on the signal, or at once", async () => {
      const server = await start();
      await server.kill();
      await expect(open(server.url)).rejects.toMatchObject({ code: "COORDINATION_UNREACHABLE" });
      const end = new AbortController();
      log.length = 0;
      const given = open(server.url, { failFast: false, signal: end.signal });
      const waiting = open(server.url, { failFast: false });
      await soon("it says so", () => log.filter((line) => /cannot be reached.*trying on/.test(line)).length === 2);
      end.abort();
      await expect(given).rejects.toMatchObject({ code: "COORDINATION_UNREACHABLE" });
      await server.up();
      expect((await waiting).title).toBe("Redis");
      expect(log.filter((line) => line.includes("trying on"))).toHaveLength(2);
    });
  });

  it("distrusts a Redis that starts to evict keys, logs that, and continues once it is corrected", async () => {
    const server = await start();
    let ahead = 0;
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + ahead };
    const provider = await contender(server.url, 1, { clock });
    await soon("it is sure", () => provider.sure());
    await server.ask("CONFIG", "SET", "maxmemory-policy", "volatile-lru");
    log.length = 0;
    ahead = 31_000; // the provider reads Redis's settings every 30 s
    await soon("it says so", () => log.some((line) => line.includes("maxmemory-policy volatile-lru")));
    expect([provider.sure(), provider.first()]).toEqual([false, false]);
    expect(log.filter((line) => line.includes("maxmemory-policy"))).toHaveLength(1);
    await server.ask("CONFIG", "SET", "maxmemory-policy", "noeviction");
    await soon("it is sure again, and first", () => first(provider));
  });

  it("isolates clusters with different prefixes or databases", async () => {
    const server = await start();
    const urls = ["/0", "/1", "/0?prefix=other", "/1?prefix=other"].map((rest) => server.url + rest);
    const alone = await Promise.all(urls.map((url, index) => contender(url, index + 1)));
    for (const provider of alone) await soon("each is first", () => first(provider));
    const seen = () => JSON.stringify(alone.map((provider) => [...(provider.shown() ?? [])]));
    await soon("each sees itself, and no other", () => seen() === "[[1],[2],[3],[4]]");
  });

  const asked = async (server: RedisServer) =>
    Number(/cmdstat_evalsha:calls=(\d+)/.exec(String(await server.ask("INFO", "commandstats")))?.[1] ?? 0);
  const twenty = (server: RedisServer, timeoutMs: number) =>
    Promise.all(
      Array.from({ length: 20 }, (_, index) => contender(server.url, index + 1, { sessionTimeoutMs: timeoutMs })),
    );

  it("sends at most one request a second when idle", async () => {
    const server = await start();
    const many = await twenty(server, steadyMs);
    await soon("one is first", () => many.some(first));
    const began = performance.now();
    const before = await asked(server);
    await pause(steadyMs);
    const idle = (await asked(server)) - before;
    // The bound uses the time that has really passed, and one renewal more per member, because a renewal may have been about to be sent.
    const seconds = (performance.now() - began) / 1_000;
    expect(idle).toBeLessThanOrEqual(many.length * (seconds + 1));
  });

  it("wakes one of many candidates when the leader steps down", async () => {
    const server = await start();
    const many = await twenty(server, lastingMs);
    const ahead = (provider: MembershipProvider) => provider.sure() && provider.ahead();
    // For one session timeout after its start, Redis reports no node as the first, but its queue has a head already.
    await soon("one is ahead", () => many.some(ahead));
    await soon("those who joined have nothing more to ask", async () => {
      const before = await asked(server);
      await pause(300);
      return (await asked(server)) === before;
    });
    for (let round = 0; round < 3; round++) {
      const leader = many.find(ahead);
      const from = await asked(server);
      await leader?.stepDown();
      await soon("another is ahead", () => many.some((provider) => provider !== leader && ahead(provider)));
      // One request steps down and one comes from the next in the queue. If all members were woken, they would send twenty more.
      expect((await asked(server)) - from).toBe(2);
    }
  });

  it("recovers from lost messages, even if their connection died silently", async () => {
    const server = await start();
    const proxy = await StoreProxy.before(server.url);
    closing.push(() => proxy.close());
    const [a, b] = [await contender(proxy.url, 1), await contender(server.url, 2)];
    await soon("both are seen", () => a.shown()?.size === 2);
    for (let round = 0; round < 3; round++) {
      await server.ask("CLIENT", "KILL", "TYPE", "pubsub");
      const c = await contender(server.url, 10 + round);
      await soon(
        "the one who came is seen",
        () => a.shown()?.has(10 + round) === true && b.shown()?.has(10 + round) === true,
      );
      await server.ask("CLIENT", "KILL", "TYPE", "pubsub");
      await c.leave();
      await soon("the one who went is not", () => a.shown()?.size === 2 && b.shown()?.size === 2);
    }
    // Open connections stay silent for ever; new connections work.
    proxy.hang();
    proxy.reopen();
    const c = await contender(server.url, 20);
    await soon("it is seen by new connections", () => a.shown()?.has(20) === true);
    await c.leave();
    await soon("and told by them", () => !a.shown()?.has(20) === true);
  });

  it("distrusts data that may be older than acknowledged writes: a promoted replica", async () => {
    const master = await start(...promptReplication);
    const replica = await start("--replicaof", "127.0.0.1", String(master.port));
    await soon("the replica is connected", async () =>
      String(await replica.ask("INFO", "replication")).includes("master_link_status:up"),
    );
    await expect(open(replica.url)).rejects.toMatchObject({
      code: "COORDINATION_UNREACHABLE",
      message: expect.stringContaining("replica"),
    });
    const proxy = await StoreProxy.before(master.url);
    closing.push(() => proxy.close());
    const a = await contender(proxy.url, 1);
    await soon("it is first", () => first(a));
    // From now on, writes that the master acknowledges do not reach the replica.
    await replica.ask("REPLICAOF", "NO", "ONE");
    const late = await contender(master.url, 2);
    // The time is taken before the first request to the promoted replica, because its period of doubt begins with that request.
    const promoted = performance.now();
    const onReplica = await open(replica.url);
    onReplica.contend();
    while (performance.now() < promoted + sessionTimeoutMs * 3) {
      const claims = [a.shownUntil(), late.shownUntil()];
      const gone = await onReplica.gone([1, 2]).catch(() => []); // `gone` rejects while it cannot know which sessions ended.
      const now = performance.now();
      if (performance.now() < promoted + sessionTimeoutMs * 0.9) {
        expect([gone, onReplica.first()]).toEqual([[], false]);
      }
      // From here on the old master's answers are no longer valid, and its clients cannot notice it. The docs say that this is unavoidable.
      if (now > promoted + sessionTimeoutMs) break;
      expect(gone.filter((id) => (claims[id - 1] as number) > now)).toEqual([]);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await soon("those who stayed behind are gone", async () =>
      JSON.stringify(await onReplica.gone([1, 2]).catch(() => [])).includes("1,2"),
    );
    await soon("the next is first", () => first(onReplica));
  });

  it("after losing its data, reports the candidate in line before it leads, and has no leader for a timeout", async () => {
    const server = await start();
    const steady = { sessionTimeoutMs: steadyMs };
    const both = [await contender(server.url, 1, steady), await contender(server.url, 2, steady)];
    await soon("one is first", () => both.some(first));
    await server.kill();
    await soon("both are in doubt", () => both.every((provider) => !provider.sure()));
    const told: { what: string; atMs: number }[] = [];
    for (const [at, provider] of both.entries())
      provider.onChange(() => {
        if (!provider.sure() || !provider.ahead()) return;
        told.push({ what: `${at} is ${provider.first() ? "first" : "ahead"}`, atMs: performance.now() });
      });
    const restarted = performance.now();
    await server.up();
    await soon("one is first", () => both.some(first));
    const ahead = both.findIndex((provider) => provider.ahead());
    expect([...new Set(told.map(({ what }) => what))]).toEqual([`${ahead} is ahead`, `${ahead} is first`]);
    expect(told.find(({ what }) => what.endsWith("first"))?.atMs).toBeGreaterThan(restarted + steadyMs);
    expect(both.map((provider) => provider.ahead())).toEqual(both.map((_, at) => at === ahead));
    await both[ahead]?.stepDown();
    expect([both[ahead]?.ahead(), both[ahead]?.first()]).toEqual([false, false]);
  });

  it("follows the sentinels to another master", async () => {
    const master = await start(...promptReplication);
    const replica = await start("--replicaof", "127.0.0.1", String(master.port), "--replica-priority", "1");
    await soon("the replica is connected", async () =>
      String(await replica.ask("INFO", "replication")).includes("master_link_status:up"),
    );
    const file = join(tmpdir(), `carillon-sentinel-${process.pid}-${master.port}.conf`);
    closing.push(async () => rmSync(file, { force: true }));
    writeFileSync(
      file,
      `sentinel monitor main 127.0.0.1 ${master.port} 1\nsentinel down-after-milliseconds main 500\n` +
        "sentinel failover-timeout main 3000\n",
    );
    const sentinel = await start(file, "--sentinel");
    await soon("the sentinel knows the replica", async () =>
      JSON.stringify(await sentinel.ask("SENTINEL", "REPLICAS", "main")).includes(String(replica.port)),
    );
    const url = `redis+sentinel://127.0.0.1:1,127.0.0.1:${sentinel.port}/main`;
    const both = [await contender(url, 1), await contender(url, 2)];
    await soon("one is first", () => both.some(first));
    await master.kill();
    await soon("they are shown by the new one", async () =>
      both.every((provider) => provider.sure() && isShown(provider)),
    );
    await soon("one is first again", () => both.some(first));
    // Answers of the old connection still count until the client notices the loss of the master; in between it can query no server.
    await soon("the new one tells who is gone", async () => {
      const gone = await both[0]?.gone([1, 2, 3]).catch(() => undefined); // `gone` rejects while it cannot know which sessions ended.
      return gone?.join() === "3";
    });
    await expect(open(`redis+sentinel://127.0.0.1:${sentinel.port}/unknown`)).rejects.toMatchObject({
      code: "COORDINATION_UNREACHABLE",
    });
  });

  it("works on a Redis Cluster", async () => {
    const own = ["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"];
    const server = await start(...own, "--cluster-announce-ip", "127.0.0.1"); // a single node does not learn its own address
    await server.ask("CLUSTER", "ADDSLOTSRANGE", 0, 16_383);
    await soon("the cluster is up", async () =>
      String(await server.ask("CLUSTER", "INFO")).includes("cluster_state:ok"),
    );
    const url = `redis+cluster://127.0.0.1:1,127.0.0.1:${server.port}`;
    const both = [await contender(url, 1), await contender(url, 2)] as const;
    await soon("one is first", () => both.some(first));
    for (const provider of both) await soon("both are seen", () => provider.shown()?.size === 2);
    const leader = both.find(first);
    await leader?.stepDown();
    await soon("the other is first", () => both.some((provider) => provider !== leader && first(provider)));
    await server.ask("CLIENT", "KILL", "TYPE", "normal");
    await soon("they come back", () => both.every((provider) => provider.sure()) && both.some(first));
    await both[0].leave();
    await soon("it went", async () => (await both[1].gone([1, 2])).join() === "1");
  });

  it("does not declare a member gone too early if its last answer was slow and another member's quick", async () => {
    const server = await start();
    const [prompt, late] = [await machine(server), await machine(server)];
    await late.registry.renew(renewal(2));
    await until("it can tell who is gone", () =>
      prompt.registry.gone([7]).then(
        () => true,
        () => false, // `gone` rejects while the data of Redis is new
      ),
    );
    await late.registry.renew(renewal(2));
    await prompt.registry.renew(renewal(1));
    const standstillMs = sessionTimeoutMs - 300;
    await pause(standstillMs);
    // Sets this process's clock back, as if it had been suspended before it read the last reply. So its requests do not advance `clock`,
    // the time that Redis counts by the clocks of its clients.
    late.standsStill(standstillMs);
    const began = performance.now();
    await late.registry.renew(renewal(2));
    // The other process queries continuously, so that it sees the end of the session at once.
    await until("it is gone", async () => (await prompt.registry.gone([2])).length === 1);
    expect(performance.now() - began, "not within its timeout").toBeGreaterThanOrEqual(sessionTimeoutMs - 1);
  });

  it.each([86_400_000, -86_400_000])(
    "a wall clock step of %i ms ends no session, and does not extend the sessions of dead members",
    async (stepMs) => {
      const server = await start();
      const { registry } = await machine(server);
      const steady = { sessionTimeoutMs: steadyMs };
      const [a, b] = [await contender(server.url, 1, steady), await contender(server.url, 2, steady)];
      await soon("one is first", () => first(a) || first(b));
      // Deadlines count from Redis's wall clock plus `lead`, so a change of `lead` by `stepMs` has the effect of a step of the wall clock.
      await server.ask("HINCRBY", "{carillon}:state", "lead", stepMs);
      const began = performance.now();
      await registry.renew(renewal(3));
      const dead = async () => (await registry.gone([1, 2, 3])).join();
      // If the end of a session depended on the wall clock, a step forward would make this take a day.
      const seen = await until("the dead is gone", dead);
      expect(seen, "nobody but who says no more").toBe("3");
      const took = performance.now() - began;
      // After a step back, `clock`, the time that the clients' requests count, lags by an unknown time, at most as long as a reply takes.
      // The tolerance covers that: a member trusts its session for half a second less than its timeout.
      expect(took).toBeGreaterThanOrEqual(sessionTimeoutMs - (stepMs < 0 ? trustMarginMs / 2 : 1));
      expect([isShown(a), isShown(b)]).toEqual([true, true]);
      expect(await server.ask("TTL", "{carillon}:state"), "nothing expires by it").toBe(-1);
    },
  );
});
