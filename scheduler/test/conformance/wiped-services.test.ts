/** Tests a cluster and its locks when ZooKeeper or Redis has lost all data. */
import { Ensemble } from "@carillon/zookeeper/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isCarillonError } from "../../src/base/errors.ts";
import type { Held } from "../../src/cluster/locks.ts";
import { lookAtCoordination } from "../../src/coordination/open.ts";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import type { CarillonOptions } from "../../src/settings/settings.ts";
import { StoreProxy } from "../support/proxy.ts";
import { RedisServer } from "../support/redis-server.ts";
import { postgres } from "../support/servers.ts";
import { type Line, openStage, recordingLog, type Stage, until } from "../support/store-stage.ts";

interface Service {
  /**
   * Returns a coordination URL.
   * @param part the path or prefix that a cluster uses in the service
   * @param address the address of the service, or of a proxy before it; default: the service
   */
  url(part: string, address?: string): string;
  readonly address: string;
  wipe(): Promise<void>;
  close(): Promise<void>;
}

async function zooKeeper(): Promise<Service> {
  const ensemble = await Ensemble.start({ servers: 1, tickTime: 200 });
  const { address } = ensemble.server;
  return {
    address,
    url: (part, at = address) => `zookeeper://${at}/${part}`,
    async wipe() {
      await ensemble.killAll();
      await ensemble.wipeAll();
      await ensemble.startAll();
    },
    close: () => ensemble.stop(),
  };
}

async function redis(): Promise<Service> {
  const server = await RedisServer.start();
  const address = new URL(server.url).host;
  return {
    address,
    url: (part, at = address) => `redis://${at}?prefix=${part}`,
    async wipe() {
      await server.ask("FLUSHALL");
    },
    close: () => server.close(),
  };
}

describe.each([
  ["ZooKeeper", zooKeeper],
  ["Redis", redis],
])("%s, wiped", (_, start) => {
  let stage: Stage;
  let service: Service;
  const closing: (() => Promise<unknown>)[] = [];
  beforeEach(async () => {
    stage = await openStage(postgres());
    service = await start();
  });
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
    await service.close();
    await stage.close();
  });

  const make = (options: CarillonOptions): { tower: Carillon; lines: Line[] } => {
    const { log, lines } = recordingLog();
    const tower = carillon({ store: stage.server.url, schema: stage.schema, handleSignals: false, log, ...options });
    closing.push(() => tower.stop());
    return { tower, lines };
  };
  /** Creates an instance that has not started. */
  const user = (part = "cluster") => make({ coordination: service.url(part) }).tower;

  /** Takes the lock. The only accepted failure is that the service is not reachable yet. */
  async function tried(tower: Carillon, name: string): Promise<Held> {
    let held: Held | undefined;
    await until("it is had", async () => {
      held = await tower
        .lock(name)
        .tryAcquire()
        .catch((error: unknown) => {
          if (!isCarillonError(error, "COORDINATION_UNREACHABLE")) throw error;
          return undefined;
        });
      return held !== undefined;
    });
    return held as Held;
  }

  it("under a process that only uses locks, grants them again, with higher fences, to one holder at a time", async () => {
    const a = user();
    const before = await a.lock("invoices").acquire();
    await before.release();
    await service.wipe();
    const first = await tried(a, "invoices");
    const second = await a.semaphore("gpu", { permits: 1 }).acquire({ wait: "60s" });
    expect(first.fence).toBeGreaterThan(before.fence);
    const b = user();
    expect(await b.lock("invoices").tryAcquire()).toBeUndefined();
    await Promise.all([first.release(), second.release()]);
    const next = await b.lock("invoices").acquire({ wait: "60s" });
    expect(next.fence).toBeGreaterThan(first.fence);
  });

  it("while no process lives, is set up again by a process that only uses locks, and used by all later ones", async () => {
    const first = user();
    const before = await first.lock("invoices").acquire();
    await first.stop();
    await service.wipe();
    const [a, b] = [user(), user()];
    const [one, other] = await Promise.all([tried(a, "invoices"), tried(b, "letters")]);
    expect(one.fence).toBeGreaterThan(before.fence);
    expect([other.held, await b.lock("invoices").tryAcquire()]).toEqual([true, undefined]);
    const node = make({ coordination: service.url("cluster") }).tower;
    await node.start();
    expect(await node.lock("letters").tryAcquire()).toBeUndefined();
  });

  it("is distinguished from another empty service: a process that would use that is refused, and writes nothing", async () => {
    const a = user();
    await a.lock("invoices").acquire();
    await expect(user("other").lock("invoices").acquire()).rejects.toMatchObject({ code: "COORDINATION_DIFFERS" });
    expect(await lookAtCoordination(service.url("other"))).toBeUndefined();
    await a.stop();
    await expect(user("other").lock("invoices").tryAcquire()).rejects.toMatchObject({ code: "COORDINATION_DIFFERS" });
  });

  it("under a live node, keeps the node's cluster id: a newcomer waits until the node has written it", async () => {
    const url = service.url("cluster");
    const proxy = await StoreProxy.before(`tcp://${service.address}`);
    closing.push(() => proxy.close());
    const node = make({ coordination: service.url("cluster", new URL(proxy.url).host), sessionTimeout: "4s" }).tower;
    await node.start();
    // The recorded address is that of the proxy, which a new process does not use, so it is replaced by the real address.
    await stage.rows(`update $s.cluster set coordination_at = replace(coordination_at, $1, $2)`, [
      new URL(proxy.url).host,
      service.address,
    ]);
    const known = await lookAtCoordination(url);
    proxy.hang();
    await service.wipe();
    const { tower, lines } = make({ coordination: url, sessionTimeout: "60s" });
    const asked = tower.lock("invoices").acquire();
    const waits = ({ fields }: Line) => String(fields.error).includes("holds nothing of this cluster");
    await until("the newcomer waits", () => lines.some(waits));
    expect(await lookAtCoordination(url)).toBeUndefined();
    proxy.heal();
    expect((await asked).held).toBe(true);
    expect(await lookAtCoordination(url)).toEqual(known);
  });
});
