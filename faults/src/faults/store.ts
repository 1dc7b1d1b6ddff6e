import { setTimeout as pause } from "node:timers/promises";
import type { Cluster } from "../cluster.ts";
import { accept, refuse, type StoreTrouble } from "../store-troubles.ts";
import type { Fault, Heal } from "./fault.ts";

/** Repeats `act` until the returned function is called. */
function repeated(everyMs: number, act: () => Promise<unknown>): Heal {
  let over = false;
  const acting = (async () => {
    while (!over) {
      await act();
      await pause(everyMs);
    }
  })();
  return async () => {
    over = true;
    await acting;
  };
}

const terminate = (cluster: Cluster, who: string) =>
  cluster.ask("select pg_terminate_backend(pid) from pg_stat_activity where application_name like $1", [who]);

function refusing(name: string, what: string, trouble: StoreTrouble, chance: number): Fault {
  return {
    name,
    what,
    async inflict(cluster) {
      cluster.happened(`the store refuses writes: ${trouble}`);
      await cluster.ask(refuse(cluster.schema, trouble, chance));
      return () => cluster.ask(accept(cluster.schema)).then(() => undefined);
    },
  };
}

/** Faults of PostgreSQL. */
export const storeFaults: readonly Fault[] = [
  {
    name: "store-restarted",
    what: "PostgreSQL is stopped at once in the midst of transactions (-m immediate), and started again",
    momentary: true,
    async inflict(cluster) {
      cluster.happened("the store is stopped, and started again");
      await cluster.servers.postgres.crash();
      await cluster.servers.postgres.up();
      return () => undefined;
    },
  },
  {
    name: "store-down",
    what: "PostgreSQL is stopped at once, and stays away",
    async inflict(cluster) {
      cluster.happened("the store is down");
      await cluster.servers.postgres.crash();
      return () => cluster.servers.postgres.up();
    },
  },
  {
    name: "store-connections-killed",
    what: "PostgreSQL ends every connection, in the midst of whatever it does, again and again",
    inflict: async (cluster) => repeated(700, () => terminate(cluster, "carillon%")),
  },
  {
    name: "signals-lost",
    what: "the connections by which processes hear signals are ended again and again",
    inflict: async (cluster) => repeated(100, () => terminate(cluster, "carillon listener")),
  },
  {
    name: "store-locked",
    what: "somebody holds the table of runs: every statement waits, and every pool is used up",
    async inflict(cluster) {
      const client = await cluster.connection();
      cluster.happened("the table of runs is locked");
      await client.query("begin");
      await client.query(`lock table ${cluster.schema}.run in access exclusive mode`);
      return async () => {
        await client.query("rollback");
        await client.end();
      };
    },
  },
  refusing("store-full", "every write is refused, as by a full disk", "disk full", 1),
  refusing("store-conflicts", "a third of all writes fail: serialization failures", "serialization failure", 0.3),
  refusing("store-deadlocks", "a third of all writes fail: deadlocks", "deadlock", 0.3),
];
