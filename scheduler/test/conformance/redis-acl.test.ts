/** Tests a Redis user with exactly the rights that docs/coordination/redis.md names. */
import { readFileSync } from "node:fs";
import { Redis } from "ioredis";
import { afterEach, describe, expect, it } from "vitest";
import { RedisLocks } from "../../src/coordination/redis/lock.ts";
import { openRedisProvider } from "../../src/coordination/redis/redis.ts";
import { shownAs } from "../support/provider-stage.ts";
import { RedisServer } from "../support/redis-server.ts";
import { until } from "../support/store-stage.ts";

const page = readFileSync(new URL("../../../docs/coordination/redis.md", import.meta.url), "utf8");
/** The ACL rules in the page's example, without the user's name and password. */
const rules = (/^ACL SETUSER \S+ on >\S+ (.*)$/m.exec(page)?.[1] ?? "").split(" ");
const select = /also needs `(\+select)`/.exec(page)?.[1] ?? "";
const cluster = (/Redis Cluster `([^`]*)`/.exec(page)?.[1] ?? "").split(" ");

let server: RedisServer;
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  await server.close();
});

async function begin(rights: readonly string[], args: readonly string[] = []): Promise<void> {
  server = await RedisServer.start(args);
  await server.ask("ACL", "SETUSER", "limited", "on", ">secret", "resetkeys", "resetchannels", "nocommands", ...rights);
}

const at = (rest: string, scheme = "redis") => `${scheme}://limited:secret@127.0.0.1:${server.port}${rest}`;

async function provider(url: string) {
  const log: string[] = [];
  const signal = new AbortController().signal;
  const options = { url, clusterId: "a", sessionTimeoutMs: 1_500, log: (line: string) => void log.push(line), signal };
  const opened = await openRedisProvider({ ...options, failFast: true });
  closing.push(() => opened.leave());
  return { provider: opened, log };
}

async function locks(url: string) {
  let bases = 0;
  const log: string[] = [];
  const opened = await RedisLocks.open({
    url,
    clusterId: "a",
    fenceBase: async () => ++bases,
    log: (line) => void log.push(line),
    failFast: true,
  });
  closing.push(() => opened.close());
  return { locks: opened, log };
}

/** Uses every kind of lock, with unordered waiters and with a queue of waiters. */
async function usesLocks(url: string): Promise<void> {
  const [a, b] = [await locks(url), await locks(url)];
  for (const kind of ["lock", "semaphore", "election"] as const)
    for (const fair of [false, true]) {
      const lock = ({ locks }: typeof a) => locks.lock(`invoices-${fair}`, { kind, fair });
      const held = await lock(a).acquire();
      const waiting = lock(b).acquire();
      expect(await lock(a).tryAcquire()).toBeUndefined();
      await held.release();
      await (await waiting).release();
    }
  expect([...a.log, ...b.log]).toEqual([]);
}

describe("a Redis user with the documented rights", () => {
  it("coordinates and uses locks, also in another database", async () => {
    await begin([...rules, select]);
    const url = at("/1");
    const [a, b] = [await provider(url), await provider(url)];
    for (const [index, one] of [a, b].entries()) {
      one.provider.announce(shownAs(index + 1));
      one.provider.contend();
    }
    await until("one is first", () => a.provider.first() || b.provider.first());
    const [first, second] = a.provider.first() ? [a, b] : [b, a];
    await until("both are shown", () => first.provider.shown()?.size === 2);
    expect(await first.provider.gone([1, 2, 3])).toEqual([3]);
    expect(await first.provider.described(2)).toMatchObject({ node: "node-2" });
    await first.provider.stepDown();
    await until("the other is first", () => second.provider.first());
    expect([...a.log, ...b.log]).toEqual([]);
    await usesLocks(url);
  });

  it("coordinates and uses locks on a Redis Cluster", async () => {
    await begin([...rules, ...cluster], ["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"]);
    await server.ask("CLUSTER", "ADDSLOTSRANGE", 0, 16_383);
    await until("it is up", async () => String(await server.ask("CLUSTER", "INFO")).includes("cluster_state:ok"));
    const url = at("", "redis+cluster");
    const a = await provider(url);
    a.provider.announce(shownAs(1));
    await until("it is shown", () => a.provider.shownUntil() > 0);
    await usesLocks(url);
  });

  it.each(["carillon2", "carillon:x", "carillon:locks"])("has no access to keys with the prefix %s", async (prefix) => {
    await begin(rules);
    await expect(provider(at(`?prefix=${prefix}`))).rejects.toMatchObject({ code: "COORDINATION_REFUSED" });
    await expect(locks(at(`?prefix=${prefix}`))).rejects.toMatchObject({ code: "COORDINATION_REFUSED" });
    const raw = new Redis(server.port, "127.0.0.1", {
      username: "limited",
      password: "secret",
      enableReadyCheck: false,
    });
    closing.push(async () => raw.disconnect());
    for (const key of [`{${prefix}}:cluster`, `{${prefix}:lock:x}`, `{${prefix}:election:x}:fence`])
      await expect(raw.set(key, "x")).rejects.toThrow(/NOPERM/);
    await expect(raw.subscribe(`{${prefix}}:changes:0`)).rejects.toThrow(/NOPERM/);
    await expect(raw.publish(`{${prefix}}:turns:0`, "x")).rejects.toThrow(/NOPERM/);
    expect(await raw.set("{carillon}:state", "x")).toBe("OK");
  });

  it("gets an error that names the missing right: of another database", async () => {
    await begin(rules);
    await expect(locks(at("/1"))).rejects.toMatchObject({
      code: "COORDINATION_REFUSED",
      message: expect.stringContaining("'select'"),
      hint: expect.stringContaining("+select"),
    });
  });

  it("gets an error that names the missing right: of a key", async () => {
    await begin(rules.filter((rule) => !rule.startsWith("~")));
    await expect(locks(at(""))).rejects.toMatchObject({
      code: "COORDINATION_REFUSED",
      hint: expect.stringContaining(rules.filter((rule) => /^[~&]/.test(rule)).join(" ")),
    });
  });
});
