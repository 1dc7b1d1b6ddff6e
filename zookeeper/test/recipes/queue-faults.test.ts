import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { creatorAcl } from "../../src/operations/acl.ts";
import type { ZooKeeper } from "../../src/operations/session.ts";
import { DelayQueue } from "../../src/recipes/queue/delay-queue.ts";
import { encodeItems } from "../../src/recipes/queue/items.ts";
import { PriorityQueue } from "../../src/recipes/queue/priority-queue.ts";
import { Queue } from "../../src/recipes/queue/queue.ts";
import { Ensemble } from "../../src/testing/ensemble.ts";
import { namesUnder } from "../support/names-under.ts";
import { op, ZooKeeperProxy } from "../support/proxy.ts";
import { ownPath, serverTitle, sharedServer } from "../support/servers.ts";
import { Clients, endingSessionMs, until } from "./stage.ts";

describe(`queues under faults on ${serverTitle()}`, () => {
  let clients: Clients;
  let zk: ZooKeeper;
  let proxy: ZooKeeperProxy;
  let proxied: ZooKeeper;
  let path: string;
  let lockPath: string;
  let texts: string[];
  const note = ({ data }: { data: Buffer }) => texts.push(data.toString());
  beforeEach(async () => {
    clients = new Clients();
    proxy = await ZooKeeperProxy.before(sharedServer());
    zk = await clients.connect();
    proxied = await clients.connect({}, proxy.address);
    path = ownPath("queue");
    lockPath = `${path}-locks`;
    texts = [];
  });
  afterEach(async () => {
    await clients.closeAll();
    await proxy.close();
  });

  const empty = async () => (await zk.exists(path))?.childCount === 0;

  it("refuse invalid paths and options", async () => {
    expect(() => new Queue(zk, "no/slash")).toThrow(expect.objectContaining({ code: "PATH_INVALID" }));
    expect(() => new Queue(zk, "/q", { lockPath: "/q" })).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
    expect(() => new Queue(zk, "/q", { poisonPath: "/" })).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
    const queue = new DelayQueue(zk, path);
    await expect(queue.put("x", { at: -1 })).rejects.toMatchObject({ code: "OPTION_INVALID" });
    await expect(queue.putAll([], { at: 0 })).rejects.toMatchObject({ code: "OPTION_INVALID", path });
    await expect(new PriorityQueue(zk, path).put("x", { priority: 0.5 })).rejects.toMatchObject({
      code: "OPTION_INVALID",
    });
    for (const options of [{ concurrency: 0 }, { attempts: 1.5 }, { claimAheadMs: -1 }]) {
      const refused = new DelayQueue(zk, path, { lockPath }).consume(note, options);
      await expect(refused).rejects.toMatchObject({ code: "OPTION_INVALID" });
    }
    expect(await zk.exists(path)).toBeUndefined();
    expect(await queue.size()).toBe(0);
  });

  it("report missing permissions to producer and consumer", async () => {
    const owner = await clients.connect();
    await owner.addAuth("digest", "owner:secret");
    await owner.create(path, undefined, { acl: creatorAcl });
    const queue = new Queue(zk, path);
    await expect(queue.put("x")).rejects.toMatchObject({ code: "NO_AUTH", path: expect.stringContaining(path) });
    await expect(queue.consume(note)).rejects.toMatchObject({ code: "NO_AUTH", path: expect.stringContaining(path) });
  });

  it("give the nodes that they create the queue's ACL, so that a stranger can neither add nor delete an item", async () => {
    const owner = await clients.connect();
    await owner.addAuth("digest", "owner:secret");
    const queue = new Queue(owner, path, { lockPath, acl: creatorAcl });
    await queue.put("x");
    const [name] = (await owner.children(path)).names;
    await expect(zk.delete(`${path}/${name}`)).rejects.toMatchObject({ code: "NO_AUTH" });
    await expect(zk.create(`${path}/queue-0000000009`, "y")).rejects.toMatchObject({ code: "NO_AUTH" });
    await expect(zk.create(`${lockPath}/${name}`, "z", { ephemeral: true })).rejects.toMatchObject({ code: "NO_AUTH" });
    const fail = () => {
      throw new Error("no");
    };
    const consumer = await queue.consume(fail, { attempts: 1 });
    await until("it is aside", async () => (await owner.exists(`${path}-poison`))?.childCount === 1);
    await expect(zk.create(`${path}-poison/a`)).rejects.toMatchObject({ code: "NO_AUTH" });
    await consumer.close();
  });

  it("report to a consumer that it lost its permission during a lost connection", async () => {
    const owner = await clients.connect();
    await owner.addAuth("digest", "owner:secret");
    const short = await clients.connect({ sessionTimeoutMs: endingSessionMs }, proxy.address);
    const consumer = await new Queue(short, path).consume(note);
    const first = short.session;
    proxy.pause();
    await until("its session has ended", () => !first.live);
    await owner.setAcl(path, creatorAcl);
    proxy.resume();
    await expect(consumer.ended).rejects.toMatchObject({ code: "NO_AUTH" });
    await consumer.close();
  });

  it("report that an item is too large, for this client or for a server with a lower limit", async () => {
    const queue = new Queue(zk, path, { lockPath });
    const tooLarge = queue.put(Buffer.alloc(1_048_576));
    await expect(tooLarge).rejects.toMatchObject({
      code: "DATA_TOO_LARGE",
      path,
      hint: expect.stringMatching(/store/),
    });
    await using ensemble = await Ensemble.start({ juteMaxBuffer: 60_000 });
    const small = new Queue(await clients.connect({}, ensemble.connectString()), path);
    const refused = await small.put(Buffer.alloc(100_000)).catch((error) => error);
    expect(refused).toMatchObject({ code: "CONNECTION_LOSS", path, hint: expect.stringMatching(/jute\.maxbuffer/) });
    await small.put("fits");
    await small.consume(note);
    await until("what fits is consumed", () => texts.length === 1);
  });

  it("deliver an item of the maximum size, and count its attempts", async () => {
    const queue = new Queue(zk, path, { lockPath });
    const large = Buffer.alloc(1_048_575 - 16 * 1_024 - 10, "x");
    await queue.put(large);
    const attempts: number[] = [];
    await queue.consume(
      ({ data, attempt }) => {
        expect(data.equals(large)).toBe(true);
        attempts.push(attempt);
        if (attempt < 3) throw new Error("again");
      },
      { backoffMs: () => 0 },
    );
    await until("it is consumed", empty);
    expect(attempts).toEqual([1, 2, 3]);
    await queue.close();
  });

  it("leave the decision to the producer if a put's answer is lost, and put nothing twice", async () => {
    const queue = new Queue(proxied, path);
    await queue.put("a");
    const lost = proxy.swallowReply(op.create2);
    const put = expect(queue.put("b")).rejects.toMatchObject({
      code: "CONNECTION_LOSS",
      path,
      message: expect.stringMatching(/may be there or not/),
    });
    await lost;
    await put;
    await queue.put("c");
    expect(await queue.size()).toBe(3);
  });

  it.each([
    ["claiming", 0],
    ["ending", 1],
  ])("run an item once when the answer to %s it is lost", async (_, before) => {
    const queue = new Queue(proxied, path, { lockPath });
    const failures: unknown[] = [];
    await queue.put("a");
    let lost: Promise<void> | undefined;
    if (before === 0) lost = proxy.swallowReply(op.multi);
    await queue.consume(
      (item) => {
        note(item);
        if (before === 1) lost = proxy.swallowReply(op.multi);
      },
      { onFailure: (failure) => failures.push(failure), onTrouble: (error) => failures.push(error) },
    );
    await until("it is gone", empty);
    await lost;
    await proxied.exists(path); // reads are repeated, so after this the next connection serves
    await queue.put("b");
    await until("the next is consumed", () => texts.includes("b"));
    expect(texts).toEqual(["a", "b"]);
    expect(failures).toEqual([]);
    await queue.close();
    expect(await namesUnder(zk, lockPath)).toEqual([]);
  });

  it("return a failed item once if the answer to that is lost", async () => {
    const queue = new Queue(proxied, path, { lockPath });
    const attempts: number[] = [];
    await queue.put("a");
    await queue.consume(
      ({ attempt }) => {
        attempts.push(attempt);
        if (attempt > 1) return;
        void proxy.swallowReply(op.multi);
        throw new Error("no");
      },
      { backoffMs: () => 0 },
    );
    await until("it is gone", empty);
    expect(attempts).toEqual([1, 2]);
    await queue.close();
  });

  it("without a lock return a failed item also if no permission to create receipts exists", async () => {
    const owner = await clients.connect();
    await owner.addAuth("digest", "owner:secret");
    await zk.create(path);
    await zk.create(`${path}/queue`);
    await owner.setAcl(path, creatorAcl);
    const queue = new Queue(zk, `${path}/queue`);
    const runs: string[] = [];
    await queue.put("a");
    const consumer = await queue.consume(
      ({ data, attempt }) => {
        runs.push(`${data} ${attempt}`);
        if (attempt === 1) throw new Error("no");
      },
      { backoffMs: () => 0 },
    );
    await until("the item was consumed again", () => runs.includes("a 2"));
    expect(await namesUnder(owner, path)).toEqual(["queue"]);
    await consumer.close();
  });

  it("without a lock, return a failed item once if the answer to that is lost, in its old place", async () => {
    const queue = new Queue(proxied, path);
    const runs: string[] = [];
    await queue.put("a");
    const consumer = await queue.consume(
      ({ data, attempt }) => {
        runs.push(`${data} ${attempt}`);
        if (attempt > 1) return;
        void proxy.swallowReply();
        throw new Error("no");
      },
      { backoffMs: () => 4_000 }, // longer than the delay of the check below
    );
    await until("it has been sent back", async () => (await zk.children(path)).names.some((name) => name[6] === "r"));
    expect((await zk.children(path)).names).toEqual([expect.stringMatching(/^queue-r1,[0-9A-F]+-0000000000$/)]);
    await until("it is gone", empty);
    await queue.put("last");
    await until("the next runs", () => runs.includes("last 1"));
    expect(runs).toEqual(["a 1", "a 2", "last 1"]);
    await consumer.close();
  });

  it("without a lock send nothing back again that another consumer took before the lost answer was noticed", async () => {
    const queue = new Queue(proxied, path);
    const other = new Queue(zk, path);
    const runs: string[] = [];
    let swallowed: Promise<void> | undefined;
    await zk.create(`${path}-receipts`, undefined, { container: true }); // otherwise the swallowed reply could be that it is missing
    await queue.put("a");
    const consumer = await queue.consume(
      ({ data, attempt }) => {
        runs.push(`${data} ${attempt}`);
        swallowed = proxy.swallowReply(op.multi, "silence");
        throw new Error("no");
      },
      { backoffMs: () => 0 },
    );
    await until("the answer is lost", () => swallowed !== undefined);
    await swallowed;
    proxy.pause("toClient");
    const second = await other.consume(({ data, attempt }) => runs.push(`${data} ${attempt} elsewhere`));
    await until("the other consumer has it", () => runs.includes("a 2 elsewhere"));
    const repeated = proxy.next(op.sync);
    proxy.reset();
    proxy.resume();
    await repeated;
    await other.put("last");
    await until("the next runs", () => runs.some((run) => run.startsWith("last")));
    await until("no receipt is left", async () => (await namesUnder(zk, `${path}-receipts`)).length === 0);
    expect(runs.filter((run) => run.startsWith("a"))).toEqual(["a 1", "a 2 elsewhere"]);
    await Promise.all([consumer.close(), second.close()]);
  });

  it("without a lock, also set aside an item with the name of an older one", async () => {
    const queue = new Queue(zk, path, { poisonPath: `${path}-aside` });
    await zk.create(`${path}-aside`);
    await zk.create(`${path}-aside/queue-r1,00000000-0000000000`, "of a queue that was removed");
    await queue.put("a");
    const fail = () => {
      throw new Error("no");
    };
    await queue.consume(fail, { attempts: 1 });
    await until("it is aside", async () => (await zk.exists(`${path}-aside`))?.childCount === 2);
    expect((await zk.children(`${path}-aside`)).names).toContain("queue-r1,00000001-0000000000");
    await queue.close();
  });

  it("set an item aside if its lock was deleted, and do not retry without a pause", async () => {
    const queue = new Queue(proxied, path, { lockPath });
    const troubles: unknown[] = [];
    const failures: unknown[] = [];
    const name = await queue.put("a");
    await queue.consume(
      async (item) => {
        note(item);
        await zk.delete(`${lockPath}/${name}`);
        throw new Error("no");
      },
      {
        attempts: 1,
        onTrouble: (error) => troubles.push(error),
        onFailure: ({ retryAtMs }) => failures.push(retryAtMs),
      },
    );
    await until("it is aside", async () => (await zk.exists(`${path}-poison`))?.childCount === 1);
    await until("its second end is told", () => failures.length > 1);
    expect(texts).toEqual(["a"]);
    expect(troubles).toEqual([expect.objectContaining({ code: "NO_NODE", path: `${lockPath}/${name}` })]);
    expect(failures).toEqual([expect.any(Number), undefined]);
    expect(proxy.requests(op.multi)).toBeLessThan(10);
    await queue.close();
  });

  it("leave an item that is too large to move in its place, report that, and keep the connection", async () => {
    const queue = new Queue(proxied, path, { lockPath });
    await queue.put("a");
    await proxied.create(`${path}/queue-`, encodeItems([Buffer.alloc(1_048_575 - 200)]), { sequential: true });
    await queue.put("b");
    const accepted = proxy.accepted;
    const troubles: unknown[] = [];
    const failures: unknown[] = [];
    await queue.consume(
      (item) => {
        if (item.data.length > 1) throw new Error("no");
        note(item);
      },
      { onTrouble: (error) => troubles.push(error), onFailure: (failure) => failures.push(failure) },
    );
    await until("the others are consumed", () => texts.length === 2);
    expect(failures).toEqual([expect.objectContaining({ attempt: 1, retryAtMs: expect.any(Number) })]);
    expect(troubles).toEqual([expect.objectContaining({ code: "DATA_TOO_LARGE" })]);
    expect(await queue.size()).toBe(1);
    expect(proxy.accepted).toBe(accepted);
    await queue.close();
    expect(await namesUnder(zk, lockPath)).toEqual([]);
  });

  it("set aside items above the servers' default limit if the servers allow more", async () => {
    await using ensemble = await Ensemble.start({ juteMaxBuffer: 4_000_000 });
    const wide = await clients.connect({ maxRequestBytes: 4_000_000 }, ensemble.connectString());
    const queue = new Queue(wide, path, { lockPath });
    await queue.put("a");
    await wide.create(`${path}/queue-`, encodeItems([Buffer.alloc(2_000_000)]), { sequential: true });
    await queue.consume(
      (item) => {
        if (item.data.length > 1) throw new Error("no");
        note(item);
      },
      { attempts: 1 },
    );
    await until("it is aside", async () => (await wide.exists(`${path}-poison`))?.childCount === 1);
    expect(texts).toEqual(["a"]);
    await queue.close();
  });

  it("find items added and removed during a lost connection", async () => {
    const queue = new DelayQueue(zk, path, { lockPath });
    const soon = Date.now() + 60_000;
    const gone = await queue.put("gone", { at: soon });
    for (let i = 0; i < 5; i++) await queue.put(`later ${i}`, { at: soon });
    const consumer = await new DelayQueue(proxied, path, { lockPath }).consume(note);
    expect(consumer.known).toBe(6);
    const session = proxied.session;
    proxy.refuse();
    await zk.delete(`${path}/${gone}`);
    await queue.put("now", { at: 0 });
    await queue.put("later", { at: soon });
    proxy.accept();
    await until("what came is consumed", () => texts.includes("now"));
    await until("it knows the others", () => consumer.known === 6);
    expect(texts).toEqual(["now"]);
    expect(proxied.session).toBe(session);
    await consumer.close();
  });

  it("continue in the next session", async () => {
    const short = await clients.connect({ sessionTimeoutMs: endingSessionMs }, proxy.address);
    const queue = new DelayQueue(short, path, { lockPath });
    const consumer = await queue.consume(note);
    const first = short.session;
    await queue.put("a", { at: 0 });
    await until("the first is consumed", empty);
    proxy.pause();
    await until("the session has ended", () => first.state === "ended");
    await new DelayQueue(zk, path, { lockPath }).put("b", { at: 0 });
    proxy.resume();
    await until("the next is consumed", () => texts.includes("b"));
    expect(texts).toEqual(["a", "b"]);
    expect(short.session).not.toBe(first);
    await consumer.close();
    await consumer.ended;
  });

  it("create their nodes again if they were deleted", async () => {
    const queue = new Queue(zk, path, { lockPath });
    const consumer = await queue.consume(note);
    await queue.put("a");
    await until("it is consumed", empty);
    await zk.delete(lockPath);
    await zk.delete(path);
    await queue.put("b");
    await until("the next is consumed", () => texts.length === 2);
    await consumer.close();
  });

  it.each(["without", "with"])(
    "%s a lock path, take back a stopped item, and do not count it as failed",
    async (locked) => {
      const queue = new Queue(zk, path, locked === "with" ? { lockPath } : {});
      const stop = new AbortController();
      const failures: unknown[] = [];
      const consumer = await queue.consume(
        async ({ signal }) => {
          texts.push("runs");
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          signal.throwIfAborted();
        },
        { signal: stop.signal, onFailure: (failure) => failures.push(failure) },
      );
      await queue.put("a");
      await until("it runs", () => texts.length === 1);
      stop.abort();
      await consumer.ended;
      expect(failures).toEqual([]);
      expect(await queue.size()).toBe(1);
      await queue.consume(note);
      await until("it is consumed", () => texts.length === 2);
      expect(texts).toEqual(["runs", "a"]);
      await queue.close();
    },
  );

  it("end with their client, and by their abort signal", async () => {
    const queue = new Queue(zk, path, { lockPath });
    const stop = new AbortController();
    let aborted = false;
    const consumer = await queue.consume(
      async ({ signal }) => {
        texts.push("runs");
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        aborted = true;
      },
      { signal: stop.signal },
    );
    await queue.put("a");
    await until("it runs", () => texts.length === 1);
    stop.abort();
    await consumer.ended;
    expect(aborted).toBe(true);
    await expect(queue.consume(note, { signal: stop.signal })).rejects.toMatchObject({ code: "ABORTED", path });

    const other = await new Queue(proxied, path, { lockPath }).consume(note);
    await proxied.close();
    await other.ended;
    await queue.close();
    await expect(queue.consume(note)).rejects.toMatchObject({ code: "CLOSED", path });
  });
});
