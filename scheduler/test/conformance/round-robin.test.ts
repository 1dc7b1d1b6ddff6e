import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { seeded } from "../../src/base/random.ts";
import type { Membership } from "../../src/cluster/membership.ts";
import { Router } from "../../src/engine/router.ts";
import type { AddressWrite } from "../../src/run/route-store.ts";
import type { Store } from "../../src/store/store.ts";
import { StoreClock } from "../../src/store/store-clock.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, type Stage, until } from "../support/store-stage.ts";

/** Tests two routers that address runs concurrently, as happens right after a change of leaders or while a follower stands in. */
describe.each(everyPostgres())("two concurrent routers, on $title", (server) => {
  let stage: Stage;
  let routers: Router[];
  /** The addresses that the store accepted, in the order of its replies. */
  let written: AddressWrite[] = [];

  beforeAll(async () => {
    stage = await openStage(server);
    routers = [routerOn(stage.store), routerOn(await stage.another())];
  });
  afterAll(async () => {
    await Promise.all(routers.map((router) => router.stop()));
    await stage.close();
  });

  function routerOn(store: Store): Router {
    const address: Store["routes"]["address"] = async (writes) => {
      const result = await store.routes.address(writes, stage.nowMs);
      written.push(...writes.filter(({ runId }) => result.addressed.has(runId)));
      return result;
    };
    return new Router({
      store: { ...store, routes: { ...store.routes, address } },
      membership: { trusted: () => true, term: () => 1 } as Membership,
      clock: systemClock,
      storeClock: new StoreClock(systemClock),
      log: silentLog,
      graceMs: 0,
      releaseGraceMs: 0,
      random: seeded(1),
    });
  }

  const join = async (node: string, group: string) => {
    const identity = { node, role: "worker", host: "here", pid: 1, version: "0", timeoutMs: 6_000 } as const;
    const opened = await stage.store.sessions.open({ ...identity, groups: [group], capacity: 10 }, stage.nowMs);
    return (opened as { sessionId: number }).sessionId;
  };

  it.each(["round-robin", "least-recently-used"] as const)(
    "%s: each staying worker gets one run per round, while other workers come and go",
    async (route) => {
      const rounds = 15;
      const ended: number[] = [];
      for (let round = 0; round < rounds; round++) {
        const name = `${route}-${round}`;
        const task = await stage.task(name, { group: name, route });
        const stay = await Promise.all(["a", "c", "e"].map((node) => join(`${node}-${name}`, name)));
        const leaves = await join(`d-${name}`, name);
        written = [];
        const runs = 40;
        // Enqueues a few runs at a time, so that each router sees runs that the other has not seen yet.
        const enqueue = async () => {
          for (let i = 0; i < runs; i += 4) {
            await stage.store.runs.enqueue(
              Array.from({ length: 4 }, () => stage.write(task)),
              stage.nowMs,
            );
            for (const router of routers) router.onDirect(0);
          }
        };
        await Promise.all([
          enqueue(),
          join(`b-${name}`, name),
          stage.store.sessions.end(leaves, null, stage.nowMs, "left").then(() => ended.push(leaves)),
        ]);
        await until("all are addressed", async () => {
          await stage.store.routes.withdraw(null);
          for (const router of routers) router.onDirect(0);
          const waiting =
            "select count(*)::int as n from $s.run where task_id = $1 and (group_id = 0 or group_id = any($2))";
          return (await stage.one(waiting, [task.taskId, ended.map((id) => -id)])).n === 0;
        });
        const turns = written.map(({ turn }) => turn).sort((one, other) => one - other);
        expect(new Set(turns).size, "each turn is taken once").toBe(turns.length);
        const order = written
          .toSorted((one, other) => one.turn - other.turn)
          .filter(({ sessionId }) => stay.includes(sessionId));
        const names = order.map(({ node }) => node[0]).join("");
        expect(names, `of ${name}`).toBe("ace".repeat(runs).slice(0, names.length));
      }
    },
  );
});
