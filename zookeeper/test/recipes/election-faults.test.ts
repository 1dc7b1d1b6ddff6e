/**
 * Many contenders, each behind a proxy that fails at random. All run in one process, so that a check can compare which of them believe
 * that they lead. Two contenders must never lead at once, and fences never decrease. After the faults one contender leads, and no node is
 * left over.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LeaderLatch } from "../../src/recipes/leader/latch.ts";
import { LeaderSelector } from "../../src/recipes/leader/selector.ts";
import { nodesInLine } from "../../src/recipes/locks/mutex.ts";
import { Ensemble } from "../../src/testing/ensemble.ts";
import { op, ZooKeeperProxy } from "../support/proxy.ts";
import { randomFrom } from "../support/random.ts";
import { ownPath } from "../support/servers.ts";
import { Clients, until } from "./stage.ts";

const contenders = 5;
const faults = 40;
const sessionTimeoutMs = 3_000;

interface Contender {
  readonly id: string;
  leads(): boolean;
  close(): Promise<void>;
}

describe("elections under faults", () => {
  let ensemble: Ensemble;
  let clients: Clients;
  const proxies: ZooKeeperProxy[] = [];
  beforeAll(async () => {
    ensemble = await Ensemble.start({ servers: 3, tickTime: 100 });
    clients = new Clients(ensemble.connectString());
  });
  afterAll(async () => {
    await clients?.closeAll();
    await Promise.all(proxies.map((proxy) => proxy.close()));
    await ensemble?.stop();
  });

  for (const recipe of ["latch", "selector"] as const) {
    it(`${recipe}: there are never two leaders`, async () => {
      const seed = Number(process.env.CARILLON_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
      const chance = randomFrom(seed);
      const some = (limit: number) => Math.floor(chance() * limit);
      const path = ownPath("faults");
      const terms: { readonly id: string; readonly fence: bigint }[] = [];
      const wrong: string[] = [];

      const all: Contender[] = [];
      /**
       * Called when a contender begins to lead. Checks that no other contender leads and that the fence is larger; a latch that led
       * last may lead again with the same fence.
       */
      const look = (id: string, fence: bigint) => {
        const leading = all.filter((one) => one.leads()).map((one) => one.id);
        if (leading.length > 1) wrong.push(`${leading.join(" and ")} lead at once`);
        const last = terms.at(-1);
        if (last && !(fence > last.fence || (recipe === "latch" && fence === last.fence && id === last.id))) {
          wrong.push(`${id} has fence ${fence} after ${last.id} had ${last.fence}`);
        }
        terms.push({ id, fence });
      };
      const own: ZooKeeperProxy[] = [];
      for (let index = 0; index < contenders; index++) {
        const proxy = await ZooKeeperProxy.before(`127.0.0.1:${ensemble.servers[index % 3]!.port}`);
        own.push(proxy);
        proxies.push(proxy);
        const zk = await clients.connect({ sessionTimeoutMs, connectTimeoutMs: 60_000 }, proxy.address);
        const id = `contender-${index}`;
        if (recipe === "latch") {
          const latch = new LeaderLatch(zk, path, { id });
          latch.listen({ isLeader: ({ fence }) => look(id, fence) });
          await latch.start();
          all.push({ id, leads: () => latch.hasLeadership, close: () => latch.close() });
        } else {
          const selector = new LeaderSelector(
            zk,
            path,
            async ({ fence, signal }) => {
              look(id, fence);
              await new Promise((resolve) => {
                if (signal.aborted) resolve(undefined);
                signal.addEventListener("abort", resolve, { once: true });
                setTimeout(resolve, 200 * chance());
              });
            },
            { id, autoRequeue: true },
          );
          const running = selector.run();
          all.push({
            id,
            leads: () => selector.hasLeadership,
            close: async () => {
              await selector.close();
              await running;
            },
          });
        }
      }

      /** For each proxy, the time (monotonic ms) at which its longest fault ends, so that a shorter fault does not end it early. */
      const healAtMs = new Map<ZooKeeperProxy, number>();
      const healIn = (proxy: ZooKeeperProxy, ms: number) => {
        healAtMs.set(proxy, Math.max(healAtMs.get(proxy) ?? 0, performance.now() + ms));
        const heal = () => {
          const leftMs = (healAtMs.get(proxy) ?? 0) - performance.now();
          if (leftMs > 0) {
            setTimeout(heal, Math.ceil(leftMs));
            return;
          }
          proxy.accept();
          proxy.resume();
        };
        setTimeout(heal, ms);
      };
      const compare = () => {
        const now = all.filter((one) => one.leads()).map((one) => one.id);
        if (now.length > 1) wrong.push(`${now.join(" and ")} lead at once`);
        return now.length > 0;
      };

      try {
        for (let fault = 0; fault < faults; fault++) {
          // While a contender leads, more than half of the faults hit its proxy. Every tenth fault always does, and lasts longer than
          // its session.
          const long = fault % 10 === 0;
          if (long) await until(`one leads before fault ${fault}, seed ${seed}`, compare);
          const leading = all.findIndex((one) => one.leads());
          const proxy = own[leading >= 0 && (long || chance() < 0.5) ? leading : some(contenders)]!;
          const healMs = long ? 1.5 * sessionTimeoutMs : 20 + some(chance() < 0.2 ? 2_500 : 200);
          const kinds = [
            () => proxy.reset(),
            () => {
              proxy.refuse();
              healIn(proxy, healMs);
            },
            () => {
              const direction = (["both", "toServer", "toClient"] as const)[some(3)]!;
              proxy.pause(direction);
              healIn(proxy, healMs);
            },
            () => {
              void proxy.swallowReply([op.create2, op.delete, op.getData, op.getChildren2][some(4)]);
              proxy.retarget(`127.0.0.1:${ensemble.servers[some(3)]!.port}`);
              if (chance() < 0.5) proxy.reset();
            },
          ];
          kinds[long ? 1 + some(2) : some(kinds.length)]!();
          const nextMs = performance.now() + some(300);
          while (performance.now() < nextMs) {
            compare();
            await new Promise((resolve) => setTimeout(resolve, 1));
          }
        }
        for (const proxy of own) {
          proxy.accept();
          proxy.resume();
        }
        expect(wrong, `seed ${seed}`).toEqual([]);
        const zk = await clients.connect({}, ensemble.connectString());
        await until(`one leads again, seed ${seed}`, () => all.some((one) => one.leads()));
        // At least one leader has lost its session, so another one led after it, perhaps only after the faults.
        expect(new Set(terms.map(({ id }) => id)).size, `seed ${seed}`).toBeGreaterThan(1);
        await until(`nobody stands in line twice, seed ${seed}`, async () => {
          const { names } = await zk.children(path);
          const ids = await Promise.all(
            names.map(async (name) => (await zk.exists(`${path}/${name}`))?.ephemeralOwner ?? 0n),
          );
          return names.length <= contenders && new Set(ids).size === ids.length;
        });
        await Promise.all(all.map((one) => one.close()));
        // The check is repeated, because a follower may lag behind, and the client closes a session that it gave up a little later.
        await until(`nothing is left, seed ${seed}`, async () => {
          await zk.sync(path);
          return (await nodesInLine(zk, path, ["latch-", "lock-"])).length === 0;
        });
      } finally {
        await Promise.all(all.map((one) => one.close()));
      }
    });
  }
});
