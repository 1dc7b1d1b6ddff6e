import type { Ensemble, ZooKeeperServer } from "@carillon/zookeeper/testing";
import type { RedisServer } from "../../../scheduler/test/support/redis-server.ts";
import type { Cluster } from "../cluster.ts";
import type { Fault } from "./fault.ts";

function redisOf({ servers: { service } }: Cluster): RedisServer {
  if (service.kind !== "redis") throw new Error("there is no Redis");
  return service.redis;
}

function ensembleOf({ servers: { service } }: Cluster): Ensemble {
  if (service.kind !== "zookeeper") throw new Error("there is no ZooKeeper");
  return service.ensemble;
}

/** Kills ZooKeeper servers together; the returned function restarts them together. */
async function killed(cluster: Cluster, which: readonly ZooKeeperServer[]) {
  const ensemble = ensembleOf(cluster);
  cluster.happened(`ZooKeeper's servers ${which.map(({ id }) => id).join(", ")} are killed`);
  await Promise.all(which.map((server) => server.kill()));
  return () => ensemble.startAll();
}

/** Faults of the coordination service. */
export const serviceFaults: readonly Fault[] = [
  {
    name: "redis-killed",
    what: "Redis is killed, and comes back with nothing",
    needs: "redis",
    async inflict(cluster) {
      cluster.happened("Redis is killed");
      await redisOf(cluster).kill();
      return () => redisOf(cluster).up();
    },
  },
  {
    name: "redis-flushed",
    what: "Redis forgets everything, and lives on",
    momentary: true,
    needs: "redis",
    async inflict(cluster) {
      cluster.happened("Redis is flushed");
      await redisOf(cluster).ask("FLUSHALL");
      return () => undefined;
    },
  },
  {
    name: "redis-hung",
    what: "Redis takes connections and answers nobody",
    needs: "redis",
    async inflict(cluster, _, forMs) {
      cluster.happened(`Redis hangs for ${Math.round(forMs)} ms`);
      await redisOf(cluster).ask("CLIENT", "PAUSE", Math.round(forMs), "ALL");
      return () => undefined;
    },
  },
  {
    name: "zookeeper-leader-killed",
    what: "the ensemble's leader is killed: two servers elect another",
    needs: "zookeeper",
    inflict: async (cluster) => killed(cluster, [await ensembleOf(cluster).leader()]),
  },
  {
    name: "zookeeper-follower-hung",
    what: "a server of the ensemble stands still, its connections open",
    needs: "zookeeper",
    async inflict(cluster, dice) {
      const server = dice.one(await ensembleOf(cluster).followers());
      cluster.happened(`ZooKeeper's server ${server.id} hangs`);
      server.freeze();
      return () => server.thaw();
    },
  },
  {
    name: "zookeeper-quorum-lost",
    what: "two of three servers are killed: nobody is served",
    needs: "zookeeper",
    inflict: (cluster, dice) => {
      const servers = ensembleOf(cluster).servers;
      const spared = dice.one(servers);
      return killed(
        cluster,
        servers.filter((server) => server !== spared),
      );
    },
  },
  {
    name: "zookeeper-all-killed",
    what: "every server of the ensemble is killed, and comes back with its data",
    needs: "zookeeper",
    inflict: (cluster) => killed(cluster, ensembleOf(cluster).servers),
  },
  {
    name: "zookeeper-wiped",
    what: "every server is killed, and comes back with nothing",
    needs: "zookeeper",
    async inflict(cluster) {
      cluster.happened("ZooKeeper is killed and wiped");
      await ensembleOf(cluster).killAll();
      return () => ensembleOf(cluster).wipeAll();
    },
  },
];
