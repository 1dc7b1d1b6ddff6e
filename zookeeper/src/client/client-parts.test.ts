import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { clientErrors, isZooKeeperError, serverError, serverErrors, ZooKeeperError } from "../base/errors.ts";
import { checkPath, parentOf, withChroot, withoutChroot } from "../base/paths.ts";
import { parseConnectString } from "../connection/connect-string.ts";
import { Hosts, maxConnectMs, type Resolve } from "../connection/hosts.ts";
import { answerChallenge, parseChallenge } from "../connection/sasl.ts";
import { marginMs } from "../session/session-core.ts";
import { checkOptions } from "./options.ts";

describe("connect strings", () => {
  test("hosts, ports, IPv6, chroot", () => {
    expect(parseConnectString("a, b:1,[::1]:2,[fe80::1]/x/y")).toEqual({
      hosts: [
        { host: "a", port: 2181 },
        { host: "b", port: 1 },
        { host: "::1", port: 2 },
        { host: "fe80::1", port: 2181 },
      ],
      chroot: "/x/y",
    });
    expect(parseConnectString("a/")).toEqual({ hosts: [{ host: "a", port: 2181 }], chroot: "" });
  });

  test.each(["", ",", "a,", "a:0", "a:70000", "a:b", "a b", "::1:2181", "zk://a", undefined])("refuses %j", (text) => {
    expect(() => parseConnectString(text as string)).toThrow(
      expect.objectContaining({ code: "CONNECT_STRING_INVALID", hint: expect.stringContaining("zk1:2181") }),
    );
  });

  test.each(["a/x/", "a//x", "a/../b"])("refuses the chroot of %j", (text) => {
    expect(() => parseConnectString(text)).toThrow(expect.objectContaining({ code: "PATH_INVALID" }));
  });
});

describe("paths", () => {
  test("adding and removing a chroot gives the same path", () => {
    const name = fc.stringMatching(/^[a-z.0-9_-]{1,8}x$/);
    const path = fc.array(name, { maxLength: 4 }).map((names) => `/${names.join("/")}`);
    fc.assert(
      fc.property(path, path, (chroot, inner) => {
        const root = chroot === "/" ? "" : chroot;
        expect(withoutChroot(root, withChroot(root, inner))).toBe(inner);
        expect(() => checkPath(withChroot(root, inner))).not.toThrow();
      }),
    );
    expect(withoutChroot("/a", "/ab/c")).toBe("/ab/c");
    expect(parentOf("/a/b")).toBe("/a");
    expect(parentOf("/a")).toBe("/");
  });

  test("a sequential node's path may end in a slash, or in dots followed by the number", () => {
    expect(() => checkPath("/a/", true)).not.toThrow();
    expect(() => checkPath("/a/..", true)).not.toThrow();
    expect(() => checkPath("/a/../b", true)).toThrow(ZooKeeperError);
    expect(() => checkPath("/a/.hidden")).not.toThrow();
    expect(() => checkPath("/a/\u{1f514}")).toThrow(expect.objectContaining({ code: "PATH_INVALID" }));
  });
});

describe("hosts", () => {
  const limitMs = 20_000;
  const never = new AbortController().signal;
  const one: Resolve = async (name) => [`address of ${name}`];

  test("all hosts are tried in a round; then follows a growing pause with jitter, reset after a success", async () => {
    const seed = 5;
    let state = seed;
    const random = () => {
      state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
      return state / 2 ** 31;
    };
    const all = ["a", "b", "c"];
    const hosts = new Hosts(
      all.map((host) => ({ host, port: 1 })),
      random,
      one,
    );
    const take = () => hosts.take(limitMs, never);
    const pauses: number[] = [];
    for (let round = 0; round < 10; round++) {
      const tried = [await take(), await take(), await take()];
      expect(new Set(tried.map(({ name }) => name))).toEqual(new Set(all));
      expect([hosts.failed(), hosts.failed()]).toEqual([0, 0]);
      pauses.push(hosts.failed());
    }
    expect(pauses[0]).toBeLessThanOrEqual(20);
    expect(pauses[9]).toBeGreaterThan(1_000);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(2_000);
    await take();
    hosts.served();
    expect([hosts.failed(), hosts.failed()]).toEqual([0, 0]);
    expect(hosts.failed()).toBeLessThanOrEqual(20);
  });

  test("all addresses of a name are tried in a round, shuffled, and the name is resolved again for the next", async () => {
    let addresses = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];
    let asked = 0;
    const resolve: Resolve = async (name) => {
      asked += 1;
      return name === "many" ? addresses : ["10.9.9.9"];
    };
    const named = ["many", "single"].map((host) => ({ host, port: 2181 }));
    const hosts = new Hosts([...named, { host: "::1", port: 1 }], Math.random, resolve);
    const round = async () => {
      const tried: string[] = [];
      for (let paused = false; !paused; paused = hosts.failed() > 0)
        tried.push((await hosts.take(limitMs, never)).host);
      return tried.sort();
    };
    expect(hosts.count).toBe(3);
    expect(await round()).toEqual(["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.9.9.9", "::1"]);
    expect([hosts.count, asked]).toEqual([5, 2]);
    addresses = ["10.0.0.4"];
    expect(await round()).toEqual(["10.0.0.4", "10.9.9.9", "::1"]);
    const firsts = new Set<string>();
    addresses = ["10.0.0.1", "10.0.0.2"];
    for (let times = 0; times < 60; times++) {
      const alone = new Hosts([{ host: "many", port: 2181 }], Math.random, resolve);
      firsts.add((await alone.take(limitMs, never)).host);
    }
    expect(firsts.size).toBe(2);
  });

  test("a name that is unknown, empty or not resolved in time fails, and the next host is tried", async () => {
    const resolve: Resolve = (name) => {
      if (name === "unknown") return Promise.reject(new Error("ENOTFOUND"));
      return name === "empty" ? Promise.resolve([]) : new Promise(() => undefined);
    };
    const of = (host: string) => new Hosts([{ host, port: 1 }], Math.random, resolve);
    await expect(of("unknown").take(limitMs, never)).rejects.toThrow("ENOTFOUND");
    await expect(of("empty").take(limitMs, never)).rejects.toThrow("empty has no address");
    await expect(of("slow").take(1, never)).rejects.toThrow("no address of slow in time");
    await expect(of("slow").take(limitMs, AbortSignal.abort())).rejects.toThrow("given up");
    const hosts = new Hosts([...["unknown", "::1"].map((host) => ({ host, port: 1 }))], () => 0.99, resolve);
    const tried: string[] = [];
    for (let times = 0; times < 2; times++) {
      const taken = await hosts.take(limitMs, never).catch((error: Error) => ({ host: error.message }));
      tried.push(taken.host);
    }
    expect(tried.sort()).toEqual(["::1", "ENOTFOUND"]);
  });

  test("a new session's connect timeout doubles after each failed round; a live session's does not", () => {
    const first = maxConnectMs(30_000, 3, true, 0);
    expect(first).toBe(30_000 / 9);
    expect([1, 2, 3, 16].map((rounds) => maxConnectMs(30_000, 3, true, rounds))).toEqual([
      2 * first,
      4 * first,
      8 * first,
      30_000,
    ]);
    expect(maxConnectMs(30_000, 3, false, 3)).toBe(first);
    expect([maxConnectMs(100, 1, true, 9), maxConnectMs(600_000, 1, false, 0)]).toEqual([250, 5_000]);
  });

  test("clients are spread over the servers", async () => {
    const first = new Map<string, number>();
    for (let index = 0; index < 3_000; index++) {
      const hosts = new Hosts(
        [..."abc"].map((host) => ({ host, port: 1 })),
        Math.random,
        one,
      );
      const { name } = await hosts.take(limitMs, never);
      first.set(name, (first.get(name) ?? 0) + 1);
    }
    for (const count of first.values()) expect(count).toBeGreaterThan(800);
  });
});

describe("options", () => {
  test.each([
    { sessionTimeoutMs: 0 },
    { sessionTimeoutMs: 1.5 },
    { sessionTimeoutMs: 2 ** 31 },
    { connectTimeoutMs: -1 },
    { maxReplyBytes: 10 },
    { sessionTimeout: 10_000 },
    "10s",
  ])("refuses %j", (options) => {
    expect(() => checkOptions(options as object)).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
  });

  test("the session ends on the client before it can end on the servers", () => {
    for (const timeoutMs of [100, 4_000, 30_000, 600_000]) {
      expect(marginMs(timeoutMs)).toBeGreaterThan(0);
      expect(marginMs(timeoutMs)).toBeLessThanOrEqual(timeoutMs / 4);
    }
  });
});

describe("errors", () => {
  test("every error number of the server has exactly one code", () => {
    const numbers = Object.values(serverErrors).map(([number]) => number);
    expect(new Set(numbers).size).toBe(numbers.length);
    for (const [code, [number]] of Object.entries(serverErrors)) {
      expect(serverError(number, "get /a", "/a")).toMatchObject({
        code,
        path: "/a",
        message: expect.stringContaining("get /a"),
      });
    }
    expect(serverError(-99, "get /a", "/a")).toMatchObject({ code: "UNKNOWN" });
    expect(Object.keys(clientErrors).filter((code) => code in serverErrors)).toEqual([]);
  });

  test("are distinguished by code", () => {
    const error = new ZooKeeperError("NO_NODE", "x");
    expect([isZooKeeperError(error), isZooKeeperError(error, "NO_NODE"), isZooKeeperError(error, "CLOSED")]).toEqual([
      true,
      true,
      false,
    ]);
    expect(isZooKeeperError(new Error("NO_NODE"))).toBe(false);
  });
});

describe("DIGEST-MD5", () => {
  test("computes the answer of RFC 2831, with ZooKeeper's uri", () => {
    const challenge = 'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8';
    const { answer, proof } = answerChallenge(
      { username: "chris", password: "secret" },
      Buffer.from(challenge),
      "OA6MHXh6VqTrRk",
    );
    const parts = parseChallenge(answer.toString());
    expect(parts).toMatchObject({
      username: "chris",
      nc: "00000001",
      qop: "auth",
      "digest-uri": "zookeeper/zk-sasl-md5",
    });
    expect(parts.response).toMatch(/^[0-9a-f]{32}$/);
    expect(proof).toMatch(/^[0-9a-f]{32}$/);
    expect(proof).not.toBe(parts.response);
  });

  test.each([
    { username: "jürgen", realm: "geheim", password: "gr\xfcn", encodings: ["latin1", "latin1", "latin1"] as const },
    { username: "chris", realm: "日本", password: "se€ret", encodings: ["latin1", "utf8", "utf8"] as const },
    { username: "žofie", realm: "realm", password: "\x80", encodings: ["utf8", "latin1", "latin1"] as const },
  ])(
    "hashes each part of $username's credentials as ISO 8859-1 if possible",
    ({ username, realm, password, encodings }) => {
      const md5 = (data: string | Buffer) => createHash("md5").update(data);
      const [name, domain, secret] = [username, realm, password].map((text, index) =>
        Buffer.from(text, encodings[index]),
      );
      const colon = Buffer.from(":");
      const who = Buffer.concat([name!, colon, domain!, colon, secret!]);
      const a1 = Buffer.concat([md5(who).digest(), Buffer.from(":n:c")]);
      const uri = md5("AUTHENTICATE:zookeeper/zk-sasl-md5").digest("hex");
      const response = md5(`${md5(a1).digest("hex")}:n:00000001:c:auth:${uri}`).digest("hex");
      const challenge = Buffer.from(`realm="${realm}",nonce="n",qop="auth",algorithm=md5-sess,charset=utf-8`);
      const parts = parseChallenge(answerChallenge({ username, password }, challenge, "c").answer.toString("utf8"));
      expect(parts).toMatchObject({ username, realm, response });
    },
  );

  test("refuses any other challenge, and quotes special characters", () => {
    expect(() => answerChallenge({ username: "a", password: "b" }, Buffer.from("nonce=x,algorithm=md5"))).toThrow(
      expect.objectContaining({ code: "AUTH_FAILED" }),
    );
    expect(parseChallenge('a="x\\"y",b=z')).toEqual({ a: 'x"y', b: "z" });
  });
});
