import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ZooKeeper } from "../../src/operations/session.ts";
import { Queue } from "../../src/recipes/queue/queue.ts";
import { op, ZooKeeperProxy } from "../support/proxy.ts";
import { ownPath, serverTitle, sharedServer } from "../support/servers.ts";
import { Clients, until } from "./stage.ts";

describe.each(["without", "with"])(`items removed by their id, %s a lock path, on ${serverTitle()}`, (locked) => {
  let clients: Clients;
  let zk: ZooKeeper;
  let path: string;
  beforeEach(async () => {
    clients = new Clients();
    zk = await clients.connect();
    path = ownPath("queue");
  });
  afterEach(() => clients.closeAll());

  const options = () => (locked === "with" ? { lockPath: `${path}-locks` } : {});

  it("all items with that id, and no others", async () => {
    const queue = new Queue(zk, path, options());
    expect(await queue.remove("a")).toBe(0);
    await queue.putAll(["1", "2"], { id: "a/b" });
    await queue.put("3", { id: "a_b" }); // names contain this id in the same form as a/b, also in Java
    await queue.put("4", { id: "b" });
    await queue.put("5");
    expect([await queue.remove("a|b"), await queue.remove("a"), await queue.size()]).toEqual([2, 0, 2]);
    const texts: string[] = [];
    const consumer = await queue.consume(({ data }) => texts.push(data.toString()));
    await until("the rest is consumed", () => texts.length === 2);
    expect(texts).toEqual(["4", "5"]);
    await consumer.close();
    await expect(queue.remove("")).rejects.toMatchObject({ code: "OPTION_INVALID" });
    await queue.close();
    await expect(queue.remove("b")).rejects.toMatchObject({ code: "CLOSED" });
  });

  it("also an item that failed and waits for its next attempt, even at a consumer", async () => {
    const queue = new Queue(zk, path, options());
    await queue.put("bad", { id: "a" });
    let failures = 0;
    const texts: string[] = [];
    await queue.consume(
      ({ data, attempt, id }) => {
        if (id === "a" && attempt === 1) throw new Error("no");
        texts.push(data.toString());
      },
      { backoffMs: () => 2_000, onFailure: () => failures++ },
    );
    await until("it has failed, and is back", async () => failures === 1 && (await queue.size()) === 1);
    expect(await queue.remove("a")).toBe(1);
    await queue.put("good", { id: "b" });
    await until("the other is consumed", () => texts.length === 1);
    expect([texts, await queue.size()]).toEqual([["good"], 0]);
    await queue.close();
  });

  it("not an item that a consumer processes", async () => {
    const queue = new Queue(zk, path, options());
    await queue.put("slow", { id: "a" });
    let begun = 0;
    let finish: () => void = () => undefined;
    await queue.consume(() => {
      begun++;
      return new Promise<void>((resolve) => {
        finish = resolve;
      });
    });
    await until("it runs", () => begun === 1);
    expect(await queue.remove("a")).toBe(0);
    finish();
    await until("it is done", async () => (await queue.size()) === 0);
    expect(begun).toBe(1);
    await queue.close();
  });

  it("once if the answer is lost; whether it was removed or consumed is then unknown", async () => {
    await using proxy = await ZooKeeperProxy.before(sharedServer());
    const queue = new Queue(await clients.connect({}, proxy.address), path, options());
    await queue.put("1", { id: "a" });
    const swallowed = proxy.swallowReply(op.multi);
    const removed = queue.remove("a").catch((error) => error);
    await swallowed;
    expect(await removed).toMatchObject({ code: "CONNECTION_LOSS" });
    expect(await queue.size()).toBe(0);
    if (locked === "with") expect((await zk.children(`${path}-locks`)).names).toEqual([]);
    await queue.close();
  });
});
