import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Barrier } from "../../src/recipes/barrier/barrier.ts";
import { ZooKeeperProxy } from "../support/proxy.ts";
import { ownPath, serverTitle, sharedServer } from "../support/servers.ts";
import { Clients, endingSessionMs, until } from "./stage.ts";

describe(`barrier, ${serverTitle()}`, () => {
  let clients: Clients;
  let path: string;
  beforeEach(() => {
    clients = new Clients();
    path = `${ownPath("barrier")}/of/some/team`;
  });
  afterEach(() => clients.closeAll());

  it("holds clients until it is lowered, and none afterwards", async () => {
    const [a, b] = [new Barrier(await clients.connect(), path), new Barrier(await clients.connect(), path)];
    expect(await a.wait()).toBe(true);
    await a.raise();
    await b.raise();
    expect([await a.wait({ limitMs: 0 }), await a.wait({ limitMs: 50 })]).toEqual([false, false]);
    const stop = new AbortController();
    const givenUp = a.wait({ signal: stop.signal });
    const waiting = [a.wait(), a.wait({ limitMs: 60_000 }), b.wait()];
    stop.abort();
    await expect(givenUp).rejects.toMatchObject({ code: "ABORTED" });
    await b.lower();
    expect(await Promise.all(waiting)).toEqual([true, true, true]);
    await a.lower();
    expect(await a.wait({ limitMs: 0 })).toBe(true);
  });

  it("keeps a wait across sessions", async () => {
    await using proxy = await ZooKeeperProxy.before(sharedServer());
    const zk = await clients.connect({ sessionTimeoutMs: endingSessionMs }, proxy.address);
    const other = new Barrier(await clients.connect(), path);
    await other.raise();
    const { session } = zk;
    const waiting = new Barrier(zk, path).wait();
    proxy.pause();
    await until("the session is over", () => !session.live);
    proxy.resume();
    await zk.established();
    await other.lower();
    expect(await waiting).toBe(true);
  });

  it("cannot be at the root", async () => {
    const zk = await clients.connect();
    expect(() => new Barrier(zk, "/")).toThrow(expect.objectContaining({ code: "PATH_INVALID" }));
  });
});
