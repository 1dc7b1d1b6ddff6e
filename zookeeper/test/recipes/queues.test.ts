import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ZooKeeper } from "../../src/operations/session.ts";
import type { ConsumeOptions, ItemFailure, QueueItem } from "../../src/recipes/queue/consuming.ts";
import { DelayQueue } from "../../src/recipes/queue/delay-queue.ts";
import { PriorityQueue } from "../../src/recipes/queue/priority-queue.ts";
import { Queue } from "../../src/recipes/queue/queue.ts";
import { op, ZooKeeperProxy } from "../support/proxy.ts";
import { ownPath, serverTitle, sharedServer } from "../support/servers.ts";
import { Clients, endingSessionMs, until } from "./stage.ts";

const soon = { backoffMs: () => 1 };

/** Records consumed items and failures; the handler records each item as `TEXT` by default. */
class Notes {
  readonly texts: string[] = [];
  readonly items: QueueItem[] = [];
  readonly failures: ItemFailure[] = [];
  readonly handler = (item: QueueItem) => {
    this.items.push(item);
    this.texts.push(item.data.toString());
  };
  readonly options: ConsumeOptions = { ...soon, onFailure: (failure) => this.failures.push(failure) };
}

describe(`queues on ${serverTitle()}`, () => {
  let clients: Clients;
  let zk: ZooKeeper;
  let path: string;
  let notes: Notes;
  beforeEach(async () => {
    clients = new Clients();
    zk = await clients.connect();
    path = ownPath("queue");
    notes = new Notes();
  });
  afterEach(() => clients.closeAll());

  const names = async (at = path) => (await zk.children(at)).names.sort();
  const empty = async () => (await zk.exists(path))?.childCount === 0;

  describe.each(["without", "with"])("%s a lock path", (locked) => {
    const options = () => (locked === "with" ? { lockPath: `${path}-locks` } : {});

    it("consume in the order of puts, one item after the other", async () => {
      const queue = new Queue(zk, path, options());
      for (const text of ["a", "b", "c"]) await queue.put(text);
      expect(await names()).toEqual(["queue-0000000000", "queue-0000000001", "queue-0000000002"]);
      expect((await zk.get(`${path}/queue-0000000000`)).data.toString("hex")).toBe("0001000101000000016102");
      let running = 0;
      const consumer = await queue.consume(async (item) => {
        expect(++running).toBe(1);
        await sleep(2);
        running--;
        notes.handler(item);
      }, notes.options);
      await queue.put("d");
      await queue.putAll(["e", "f"]);
      await until("all are consumed", () => notes.texts.length === 6);
      expect(notes.texts).toEqual(["a", "b", "c", "d", "e", "f"]);
      expect(notes.items[0]).toMatchObject({ name: "queue-0000000000", attempt: 1 });
      await until("the queue is empty", empty);
      expect(await queue.size()).toBe(0);
      await consumer.close();
      await consumer.ended;
      if (locked === "with") expect(await names(`${path}-locks`)).toEqual([]);
      expect(notes.failures).toEqual([]);
    });

    it("deliver the lowest priority number first", async () => {
      const queue = new PriorityQueue(zk, path, options());
      for (const priority of [7, -3, 0, 2 ** 31 - 1, -(2 ** 31), 7]) await queue.put(String(priority), { priority });
      await queue.consume(notes.handler, notes.options);
      await until("all are consumed", () => notes.texts.length === 6);
      expect(notes.texts).toEqual(["-2147483648", "-3", "0", "7", "7", "2147483647"]);
      expect(notes.items[1]?.priority).toBe(-3);
      await queue.close();
    });

    it("deliver items at their time and not earlier", async () => {
      const queue = new DelayQueue(zk, path, options());
      const late: number[] = [];
      const now = Date.now();
      for (const wait of [300, 100, 200, -1_000]) await queue.put(String(wait), { at: now + wait });
      await queue.consume((item) => {
        late.push(Date.now() - (item.dueMs ?? Number.NaN));
        notes.handler(item);
      });
      await until("all are consumed", () => notes.texts.length === 4);
      expect(notes.texts).toEqual(["-1000", "100", "200", "300"]);
      expect(Math.min(...late)).toBeGreaterThanOrEqual(0);
      expect(notes.items.map(({ dueMs }) => dueMs)).toEqual([-1_000, 100, 200, 300].map((wait) => now + wait));
      await queue.close();
      await expect(queue.put("x", { at: 0 })).rejects.toMatchObject({ code: "CLOSED", path });
    });

    it("return a failed item with its data, and finally set it aside", async () => {
      const queue = new DelayQueue(zk, path, options());
      const at = Date.now();
      await queue.put("bad", { at });
      await queue.put("good", { at });
      await queue.consume(
        (item) => {
          notes.handler(item);
          if (item.data.toString() === "bad") throw new Error(`no ${item.attempt}`);
        },
        { ...notes.options, attempts: 3 },
      );
      await until("it is put aside", () => notes.failures.length === 3);
      expect(notes.texts.toSorted()).toEqual(["bad", "bad", "bad", "good"]);
      const bad = notes.items.filter(({ data }) => data.toString() === "bad");
      expect(bad.map(({ attempt, dueMs }) => [attempt, dueMs])).toEqual([1, 2, 3].map((attempt) => [attempt, at]));
      expect(notes.failures.map(({ error }) => String(error))).toEqual(["Error: no 1", "Error: no 2", "Error: no 3"]);
      expect(notes.failures.map(({ retryAtMs }) => typeof retryAtMs)).toEqual(["number", "number", "undefined"]);
      if (locked === "with") {
        const fences = bad.map(({ fence }) => fence ?? 0n);
        expect(fences.every((fence, i) => fence > (fences[i - 1] ?? 0n))).toBe(true);
      } else expect(bad.every(({ fence }) => fence === undefined)).toBe(true);
      await until("the queue is empty", empty);

      // The poison path can be consumed as a queue.
      const aside = new DelayQueue(zk, `${path}-poison`, options().lockPath ? { lockPath: `${path}-more-locks` } : {});
      const mended = new Notes();
      await aside.consume(mended.handler, { attempts: 10 });
      await until("it is mended", () => mended.texts.length === 1);
      expect(mended.items[0]).toMatchObject({ attempt: 4, dueMs: at });
      await Promise.all([queue.close(), aside.close()]);
    });

    it("delay a failed item, and deliver other items meanwhile", async () => {
      const queue = new PriorityQueue(zk, path, options());
      await queue.put("bad", { priority: 1 });
      await queue.put("good", { priority: 2 });
      const before = Date.now();
      const times: number[] = [];
      await queue.consume(
        (item) => {
          notes.handler(item);
          if (item.data.toString() !== "bad") return;
          times.push(Date.now());
          if (item.attempt === 1) throw new Error("no");
        },
        { ...notes.options, backoffMs: () => 3_000 },
      );
      await until("all are consumed", () => times.length === 2);
      expect(notes.texts).toEqual(["bad", "good", "bad"]);
      expect(notes.items[2]).toMatchObject({ attempt: 2, priority: 1 });
      expect(times[1]).toBeGreaterThanOrEqual(before + 3_000);
      await queue.close();
    });

    it("repeat only the unfinished ones of several items in a node", async () => {
      const queue = new Queue(zk, path, options());
      await queue.putAll(["a", "b", "c"], { id: "x" });
      await queue.consume((item) => {
        notes.handler(item);
        if (notes.texts.length === 2) throw new Error("not b yet");
      }, notes.options);
      await until("all are consumed", () => notes.texts.length === 4);
      expect(notes.texts).toEqual(["a", "b", "b", "c"]);
      expect(notes.items.map(({ id }) => id)).toEqual(["x", "x", "x", "x"]);
      await queue.close();
    });

    it("set aside nodes that are not items, and ignore nodes with other names", async () => {
      const queue = new Queue(zk, path, options());
      await queue.put("a");
      await zk.create(`${path}/queue-`, "not an item", { sequential: true });
      await zk.create(`${path}/other`, "nobody's");
      await queue.put("b");
      await queue.consume(notes.handler, notes.options);
      await until("all are consumed", () => notes.texts.length === 2 && notes.failures.length === 1);
      expect(notes.failures[0]).toMatchObject({ error: { code: "DATA_INVALID" }, retryAtMs: undefined });
      const [aside = ""] = await names(`${path}-poison`);
      expect((await zk.get(`${path}-poison/${aside}`)).data.toString()).toBe("not an item");
      await until("only the other node is left", async () => (await names()).join() === "other");
      await queue.close();
    });

    it("give each item to one of several consumers, and each consumer gets some", async () => {
      const count = 600;
      const takers: Notes[] = [];
      for (let i = 0; i < 3; i++) {
        const taker = new Notes();
        const queue = new DelayQueue(await clients.connect(), path, options());
        await queue.consume(
          async (item) => {
            await sleep(5);
            taker.handler(item);
          },
          { ...taker.options, concurrency: 10 },
        );
        takers.push(taker);
      }
      const queue = new DelayQueue(zk, path, options());
      const at = Date.now() + 200;
      await Promise.all(Array.from({ length: count }, (_, i) => queue.put(String(i), { at: at + (i % 50) })));
      await until("all are consumed", () => takers.reduce((sum, { texts }) => sum + texts.length, 0) >= count);
      await until("the queue is empty", empty);
      const all = takers.flatMap(({ texts }) => texts).map(Number);
      expect(all.toSorted((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, i) => i));
      for (const { texts, failures } of takers) {
        expect(texts.length).toBeGreaterThan(0);
        expect(failures).toEqual([]);
      }
    });

    it("return items that were not begun when closing", async () => {
      const queue = new DelayQueue(zk, path, options());
      const release: (() => void)[] = [];
      const consumer = await queue.consume(
        (item) => {
          notes.handler(item);
          return new Promise<void>((resolve) => release.push(resolve));
        },
        { concurrency: 2, claimAheadMs: 60_000 },
      );
      for (let i = 0; i < 5; i++) await queue.put(String(i), { at: i < 2 ? 0 : Date.now() + 30_000 });
      await until("two run", () => release.length === 2);
      let closed = false;
      const closing = consumer.close().then(() => {
        closed = true;
      });
      await zk.sync(path);
      await new Promise(setImmediate);
      expect(closed).toBe(false);
      for (const resolve of release) resolve();
      await closing;
      expect(notes.texts).toEqual(["0", "1"]);
      expect(await queue.size()).toBe(3);
      if (locked === "with") expect(await names(`${path}-locks`)).toEqual([]);
    });
  });

  describe("with a lock path", () => {
    const options = () => ({ lockPath: `${path}-locks` });

    it("lock before the due time, at the place where Java looks for the lock", async () => {
      const queue = new DelayQueue(zk, path, options());
      await queue.consume(notes.handler, { claimAheadMs: 60_000 });
      const at = Date.now() + 5_000; // the check below comes earlier, even on a busy machine
      const name = await queue.put("a", { at });
      await until("it is locked", () => zk.exists(`${path}-locks/${name}`));
      expect(notes.texts).toEqual([]);
      await until("it is consumed", () => notes.texts.length === 1);
      expect(Date.now()).toBeGreaterThanOrEqual(at);
      await queue.close();
    });

    it("pass an item on if its consumer's session ends, abort the handler, and count the attempt", async () => {
      await using proxy = await ZooKeeperProxy.before(sharedServer());
      const first = await clients.connect({ sessionTimeoutMs: endingSessionMs }, proxy.address);
      let runs = 0;
      let aborted: unknown;
      const slow = new Queue(first, path, options());
      await slow.consume(async ({ signal }) => {
        runs++;
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        aborted = signal.aborted;
      });
      const queue = new Queue(zk, path, options());
      await queue.put("a");
      await until("it runs", () => runs === 1);
      await queue.consume(notes.handler, notes.options);
      // Once the second consumer has taken the later item, it has skipped the locked one.
      await queue.put("b");
      await until("the later one is consumed", () => notes.texts.length === 1);
      expect(notes.texts).toEqual(["b"]);
      proxy.pause();
      await until("the other has it", () => notes.texts.length === 2);
      expect(notes.texts).toEqual(["b", "a"]);
      expect(aborted).toBe(true);
      expect(notes.items[1]?.attempt).toBe(2);
      await until("the queue is empty", empty);
      proxy.resume();
      await Promise.all([slow.close(), queue.close()]);
    });

    it("never give one item to both of two consumers of one client", async () => {
      const count = 200;
      const queue = new DelayQueue(zk, path, options());
      const both = [new Notes(), new Notes()];
      for (const { handler, options: more } of both) await queue.consume(handler, { ...more, concurrency: 5 });
      await Promise.all(Array.from({ length: count }, (_, i) => queue.put(String(i), { at: Date.now() })));
      await until("all are consumed", empty);
      const all = both.flatMap(({ texts }) => texts).map(Number);
      expect(all.toSorted((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, i) => i));
      expect(both.map(({ failures }) => failures)).toEqual([[], []]);
      await queue.close();
    });

    it("detect an item that kills its consumer at each attempt", async () => {
      const queue = new Queue(zk, path, options());
      const name = await queue.put("deadly");
      // This is the state that a consumer would leave that died during each of five attempts.
      const { data } = await zk.get(`${path}/${name}`);
      for (let attempt = 0; attempt < 5; attempt++) await zk.set(`${path}/${name}`, data);
      await queue.consume(notes.handler, { ...notes.options, attempts: 5 });
      await until("it is put aside", () => notes.failures.length === 1);
      expect(notes.texts).toEqual([]);
      expect(notes.failures[0]).toMatchObject({ attempt: 5, retryAtMs: undefined });
      expect(await names(`${path}-poison`)).toHaveLength(1);
      await queue.close();
    });

    it("wait for a lock's end without polling", async () => {
      const queue = new Queue(zk, path, options());
      await zk.create(`${path}-locks`);
      const lock = `${path}-locks/${await queue.put("a")}`;
      await zk.create(lock, undefined, { ephemeral: true });
      await using proxy = await ZooKeeperProxy.before(sharedServer());
      const other = new Queue(await clients.connect({}, proxy.address), path, options());
      await other.consume(notes.handler, notes.options);
      await queue.put("b");
      await until("the other item is consumed", () => notes.texts.length === 1);
      await sleep(100); // time for requests that must not be sent
      expect(proxy.requests(op.multi)).toBeLessThanOrEqual(3); // the claim that failed, and the lock and end of the other item
      await zk.delete(lock);
      await until("it is consumed", () => notes.texts.length === 2);
      expect(notes.texts).toEqual(["b", "a"]);
      await Promise.all([queue.close(), other.close()]);
    });
  });
});
