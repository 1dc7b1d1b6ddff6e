import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { ZooKeeper } from "../../src/operations/session.ts";
import type { QueueItem } from "../../src/recipes/queue/consuming.ts";
import { DelayQueue } from "../../src/recipes/queue/delay-queue.ts";
import { PriorityQueue } from "../../src/recipes/queue/priority-queue.ts";
import { Queue } from "../../src/recipes/queue/queue.ts";
import { type Java, startJava } from "../support/java.ts";
import { ownPath, serverTitle, sharedServer } from "../support/servers.ts";
import { Clients, until } from "./stage.ts";

const flushMs = 30_000;

describe(`queues shared with Java Curator on ${serverTitle()}`, () => {
  let java: Java;
  let clients: Clients;
  let zk: ZooKeeper;
  let path: string;
  let texts: string[];
  const note = ({ data }: { data: Buffer }) => texts.push(data.toString());
  beforeAll(async () => {
    java = await startJava(sharedServer());
  });
  afterAll(() => java.kill());
  beforeEach(async () => {
    clients = new Clients();
    zk = await clients.connect();
    path = ownPath("queue");
    texts = [];
  });
  afterEach(() => clients.closeAll());

  const empty = async () => (await zk.exists(path))?.childCount === 0;

  describe.each(["without", "with"])("%s a lock path", (locked) => {
    const lockPath = () => (locked === "with" ? `${path}-locks` : undefined);
    const javaLocks = () => lockPath() ?? "-";
    const options = () => ({ lockPath: lockPath() });

    it("queue: Java puts, this client consumes", async () => {
      const producer = await java.make("queue", path, javaLocks(), "produces");
      await producer.do("start");
      for (const text of ["a", "ö"]) await producer.do("put", text);
      await producer.do("putMany", "c,d");
      expect(await producer.ask("flush", flushMs)).toBe(true);
      const queue = new Queue(zk, path, options());
      await queue.consume(note);
      await producer.do("put", "e");
      await until("all are consumed", () => texts.length === 5);
      expect(texts).toEqual(["a", "ö", "c", "d", "e"]);
      await until("the queue is empty", empty);
      await Promise.all([queue.close(), producer.do("close")]);
    });

    it("queue: this client puts, Java consumes", async () => {
      const queue = new Queue(zk, path, options());
      await queue.put("a");
      await queue.putAll(["ö", "c"]);
      const consumer = await java.make("queue", path, javaLocks(), "consumes");
      await consumer.do("start");
      await queue.put("d");
      for (const text of ["a", "ö", "c", "d"]) expect(await consumer.next("item")).toBe(text);
      await until("the queue is empty", empty);
      await consumer.do("close");
    });

    it("queue with ids: both directions, and each side removes an item of the other", async () => {
      const producer = await java.make("idQueue", path, javaLocks(), "produces");
      await producer.do("start");
      await producer.do("put", "from Java", "id-1");
      await producer.do("flush", flushMs);
      const queue = new Queue(zk, path, options());
      await queue.put("removed", { id: "id-2" });
      expect(await producer.do("remove", "id-2")).toEqual(["1"]);
      await producer.do("put", "removed by us", "id-4");
      await producer.do("flush", flushMs);
      expect(await queue.remove("id-4")).toBe(1);
      const ids: (string | undefined)[] = [];
      const ours = await queue.consume((item) => {
        ids.push(item.id);
        note(item);
      });
      await until("it is consumed", () => texts.length === 1);
      expect([texts, ids]).toEqual([["from Java"], ["id-1"]]);
      await ours.close();
      await queue.put("to Java", { id: "id-3" });
      const consumer = await java.make("idQueue", path, javaLocks(), "consumes");
      await consumer.do("start");
      expect(await consumer.next("item")).toBe("to Java");
      await Promise.all([producer.do("close"), consumer.do("close")]);
    });

    it("priority queue: Java puts, this client consumes", async () => {
      const producer = await java.make("priorityQueue", path, javaLocks(), "produces");
      await producer.do("start");
      for (const priority of [5, -7, 0, 2_147_483_647]) await producer.do("put", String(priority), priority);
      expect(await producer.ask("flush", flushMs)).toBe(true);
      const queue = new PriorityQueue(zk, path, options());
      await queue.consume(note);
      await until("all are consumed", () => texts.length === 4);
      expect(texts).toEqual(["-7", "0", "5", "2147483647"]);
      await Promise.all([queue.close(), producer.do("close")]);
    });

    it("priority queue: this client puts, Java consumes", async () => {
      const queue = new PriorityQueue(zk, path, options());
      for (const priority of [5, -7, 0, 2_147_483_647]) await queue.put(String(priority), { priority });
      const consumer = await java.make("priorityQueue", path, javaLocks(), "consumes");
      await consumer.do("start");
      for (const text of ["-7", "0", "5", "2147483647"]) expect(await consumer.next("item")).toBe(text);
      await consumer.do("close");
    });

    it("delay queue: Java puts, this client consumes", async () => {
      const producer = await java.make("delayQueue", path, javaLocks(), "produces");
      await producer.do("start");
      const queue = new DelayQueue(zk, path, options());
      const due: (number | undefined)[] = [];
      await queue.consume((item) => {
        due.push(item.dueMs);
        expect(Date.now()).toBeGreaterThanOrEqual(item.dueMs ?? Number.POSITIVE_INFINITY);
        note(item);
      });
      const at = Date.now() + 4_000; // long enough for all puts, even if the machine pauses in between
      await producer.do("put", "late", at);
      await producer.do("put", "early", at - 300);
      await producer.do("putMany", "x,y", at + 100);
      await until("all are consumed", () => texts.length === 4);
      expect(texts).toEqual(["early", "late", "x", "y"]);
      expect(due).toEqual([at - 300, at, at + 100, at + 100]);
      await Promise.all([queue.close(), producer.do("close")]);
    });

    it("delay queue: this client puts, Java consumes", async () => {
      const queue = new DelayQueue(zk, path, options());
      const consumer = await java.make("delayQueue", path, javaLocks(), "consumes");
      await consumer.do("start");
      const at = Date.now() + 4_000; // long enough for all puts, as above
      await queue.put("late", { at });
      await queue.put("early", { at: at - 300 });
      expect(await consumer.next("item")).toBe("early");
      expect(await consumer.next("item")).toBe("late");
      expect(Date.now()).toBeGreaterThanOrEqual(at - 1);
      await consumer.do("close");
    });

    it("delay queue: both consume, and each item is delivered once", async () => {
      const count = 200;
      const consumer = await java.make("delayQueue", path, javaLocks(), "consumes");
      await consumer.do("start");
      const queue = new DelayQueue(zk, path, options());
      await queue.consume(note, { claimAheadMs: 0, concurrency: 2 });
      const at = Date.now() + 300;
      const puts = Array.from({ length: count }, (_, i) => queue.put(String(i), { at: at + i }));
      await Promise.all(puts);
      const all = () => [...texts, ...consumer.untaken("item")];
      await until("all are consumed", () => all().length >= count);
      await until("the queue is empty", empty);
      expect(
        all()
          .map(Number)
          .toSorted((a, b) => a - b),
      ).toEqual(Array.from({ length: count }, (_, i) => i));
      await Promise.all([queue.close(), consumer.do("close")]);
    });
  });

  describe("with a lock path", () => {
    const locks = () => `${path}-locks`;

    it("an item that Java fails and returns without its time is run at once", async () => {
      const queue = new DelayQueue(zk, path, { lockPath: locks() });
      const consumer = await java.make("delayQueue", path, locks(), "consumes");
      await consumer.do("fail", 1_000_000);
      await consumer.do("start");
      await queue.put("a", { at: Date.now() });
      expect(await consumer.next("failed")).toBe("a");
      const items: QueueItem[] = [];
      await queue.consume((item) => items.push(item));
      await until("it is ours", () => items.length === 1);
      expect(items[0]).toMatchObject({ dueMs: 0, attempt: 1, name: expect.stringMatching(/^queue-\d{10}$/) });
      expect(items[0]?.data.toString()).toBe("a");
      await Promise.all([queue.close(), consumer.do("close")]);
    });

    it("an item that fails here is returned with its time, and Java waits for that time", async () => {
      const queue = new DelayQueue(zk, path, { lockPath: locks() });
      let retryAtMs = 0;
      const ours = await queue.consume(
        () => {
          throw new Error("no");
        },
        {
          backoffMs: () => 1_000,
          onFailure: (failure) => {
            retryAtMs = failure.retryAtMs ?? 0;
          },
        },
      );
      await queue.put("a", { at: Date.now() });
      await until("it went back", () => retryAtMs > 0);
      await ours.close();
      const consumer = await java.make("delayQueue", path, locks(), "consumes");
      await consumer.do("start");
      expect(await consumer.next("item")).toBe("a");
      expect(Date.now()).toBeGreaterThanOrEqual(retryAtMs - 1);
      await consumer.do("close");
    });

    it.each(["queue", "delayQueue"] as const)(
      "%s: Java is killed while it holds an item, and this client runs it",
      async (kind) => {
        const victim = await startJava(sharedServer(), { sessionTimeout: 6_000 });
        const consumer = await victim.make(kind, path, locks(), "consumes");
        await consumer.do("hold", 1);
        await consumer.do("start");
        const at = Date.now();
        const queue =
          kind === "queue"
            ? new Queue(zk, path, { lockPath: locks() })
            : new DelayQueue(zk, path, { lockPath: locks() });
        const put = (text: string) => (queue instanceof DelayQueue ? queue.put(text, { at }) : queue.put(text));
        await put("a");
        expect(await consumer.next("held")).toBe("a");
        await queue.consume(note);
        await put("b");
        await until("ours goes on with the next", () => texts.length === 1);
        await victim.kill();
        await until("it is ours", () => texts.length === 2);
        expect(texts).toEqual(["b", "a"]);
        await until("the queue is empty", empty);
        await queue.close();
      },
    );
  });

  it.each(["queue", "delayQueue"] as const)(
    "%s: this client is killed while it holds an item, and Java runs it",
    async (kind) => {
      const lockPath = `${path}-locks`;
      const queue = kind === "queue" ? new Queue(zk, path, { lockPath }) : new DelayQueue(zk, path, { lockPath });
      const at = Date.now();
      const name = await (queue instanceof DelayQueue ? queue.put("a", { at }) : queue.put("a"));
      const order = { hosts: sharedServer(), kind, path, lockPath, sessionTimeoutMs: 6_000 };
      const victim = spawn(process.execPath, [fileURLToPath(new URL("./programs/item-holder.mjs", import.meta.url))], {
        env: { ...process.env, CARILLON_TEST_HOLDER: JSON.stringify(order) },
        stdio: ["ignore", "pipe", "inherit"],
      });
      try {
        const [line] = await once(createInterface({ input: victim.stdout }), "line");
        expect(line).toBe("held a");
      } finally {
        victim.kill("SIGKILL");
      }
      await until("its lock is gone", async () => !(await zk.exists(`${lockPath}/${name}`)));
      const consumer = await java.make(kind, path, lockPath, "consumes");
      await consumer.do("start");
      expect(await consumer.next("item")).toBe("a");
      await until("the queue is empty", empty);
      await consumer.do("close");
    },
  );
});
