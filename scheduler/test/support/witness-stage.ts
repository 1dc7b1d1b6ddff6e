import { countersIn, Ensemble, fourLetter } from "@carillon/zookeeper/testing";
import type { Shown, Witness } from "../../src/cluster/witness.ts";
import { openRedisWitness } from "../../src/coordination/redis/redis.ts";
import { openZooKeeper } from "../../src/coordination/zookeeper/zookeeper.ts";
import { type Faults, lineBefore, zooKeeperLineBefore } from "./fault-line.ts";
import { RedisServer } from "./redis-server.ts";

/** One kind of witness (coordination provider) under test. A driver must pass the suite of witness.test.ts. */
export interface WitnessDriver {
  readonly title: string;
  open(): Promise<WitnessStage>;
}

export const longestTimeoutMs = 600_000;

export interface WitnessStage {
  /** The shortest timeout that the service accepts. */
  readonly sessionTimeoutMs: number;
  /** One process's witness with a line of its own to the service; nothing is announced yet. */
  make(options?: { clusterId?: string; sessionTimeoutMs?: number }): Promise<WitnessMember>;
  /** Kills it and starts it again at the same place. Whether it keeps data depends on the service. */
  restartService(): Promise<void>;
  /**
   * Waits until it has been up long enough to report, even for the longest timeout, which processes are gone and which is first. Call it
   * before any process joins.
   */
  ages(): Promise<void>;
  /** Deletes all its data, while it runs. */
  wipeService(): Promise<void>;
  /** The requests of all processes so far, by the server's own count; this call adds at most one. */
  requests(): Promise<number>;
  close(): Promise<void>;
}

export interface WitnessMember extends Faults {
  readonly witness: Witness;
  readonly log: readonly string[];
  /** Lets a member leave, if its connection allows that. */
  close(): Promise<void>;
}

export function shownAs(sessionId: number, more: Partial<Shown> = {}): Shown {
  const node = `node-${sessionId}`;
  return { sessionId, node, role: "node", host: "here", pid: sessionId, version: "1", groups: ["default"], ...more };
}

const redis: WitnessDriver = {
  title: "Redis",
  async open() {
    const server = await RedisServer.start();
    const sessionTimeoutMs = 1_500;
    return {
      sessionTimeoutMs,
      async make(options = {}) {
        const line = await lineBefore(server.url);
        const end = new AbortController();
        const log: string[] = [];
        const witness = await openRedisWitness({
          url: line.at,
          clusterId: "cluster-a",
          sessionTimeoutMs,
          log: (line) => void log.push(line),
          signal: end.signal,
          clock: line.clock,
          ...options,
        }).catch(async (error: unknown) => {
          await line.close();
          throw error;
        });
        return {
          witness,
          log,
          ...line.faults,
          async close() {
            line.faults.resume();
            await witness.leave();
            await line.close();
          },
        };
      },
      async restartService() {
        await server.kill();
        await server.up();
      },
      async ages() {
        // The service's own counted time, which only requests advance.
        await server.ask("HINCRBY", "{carillon}:state", "clock", 2 * longestTimeoutMs);
      },
      async wipeService() {
        await server.ask("FLUSHALL");
      },
      async requests() {
        const stats = String(await server.ask("INFO", "commandstats"));
        const calls = (name: string) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
        // The other commands are called by the scripts: they are parts of one request.
        return calls("evalsha") + calls("eval") + calls("subscribe");
      },
      close: () => server.close(),
    };
  },
};

const zookeeper: WitnessDriver = {
  title: "ZooKeeper",
  async open() {
    const ensemble = await Ensemble.start({ servers: 1, tickTime: 200 });
    const sessionTimeoutMs = 1_500;
    return {
      sessionTimeoutMs,
      async make(options = {}) {
        const line = await zooKeeperLineBefore(ensemble.server.address);
        const log: string[] = [];
        const witness = await openZooKeeper({
          url: `zookeeper://${line.at}/suite`,
          clusterId: "cluster-a",
          sessionTimeoutMs,
          log: (line) => void log.push(line),
          signal: new AbortController().signal,
          clock: line.clock,
          ...options,
        }).catch(async (error: unknown) => {
          await line.close();
          throw error;
        });
        return {
          witness,
          log,
          ...line.faults,
          async close() {
            line.faults.heal();
            line.faults.resume();
            await witness.leave();
            await line.close();
          },
        };
      },
      async restartService() {
        await ensemble.server.restart();
      },
      // Nothing to age: each process waits for its own timeout before it reports a death.
      ages: () => Promise.resolve(),
      async wipeService() {
        await ensemble.killAll();
        await ensemble.wipeAll();
        await ensemble.startAll();
      },
      async requests() {
        return countersIn(await fourLetter(ensemble.server.port, "mntr")).get("packets_received") ?? Number.NaN;
      },
      close: () => ensemble.stop(),
    };
  },
};

export const witnessDrivers: readonly WitnessDriver[] = [redis, zookeeper];
