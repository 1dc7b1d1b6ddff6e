import { countersIn, Ensemble, fourLetter } from "@carillon/zookeeper/testing";
import type { Shown, Witness } from "../../src/cluster/witness.ts";
import { openRedisWitness } from "../../src/coordination/redis/redis.ts";
import { openZooKeeper } from "../../src/coordination/zookeeper/zookeeper.ts";
import { type Faults, lineBefore, zooKeeperLineBefore } from "./fault-line.ts";
import { RedisServer } from "./redis-server.ts";

/** One technology that a witness can rest on. A driver passes the suite of witness.test.ts, or is none. */
export interface WitnessDriver {
  readonly title: string;
  open(): Promise<WitnessStage>;
}

export const longestTimeoutMs = 600_000;

export interface WitnessStage {
  /** As short as the service takes it. */
  readonly sessionTimeoutMs: number;
  /** One process's witness with a line of its own to the service; nothing is announced yet. */
  make(options?: { clusterId?: string; sessionTimeoutMs?: number }): Promise<WitnessMember>;
  /** Ends it without a farewell and starts it again where it was. What it remembers is its affair. */
  restartService(): Promise<void>;
  /** Has been up for so long that it knows who is gone, and who is first, also by the longest timeout. To call before anybody joins. */
  ages(): Promise<void>;
  /** Everything that it keeps is lost, while it runs. */
  wipeService(): Promise<void>;
  /** From everybody so far, by the server's own count; a look adds at most one. */
  requests(): Promise<number>;
  close(): Promise<void>;
}

export interface WitnessMember extends Faults {
  readonly witness: Witness;
  readonly log: readonly string[];
  /** Leaves, if its line allows. */
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
        // The time that it counts, which nothing but requests moves on.
        await server.ask("HINCRBY", "{carillon}:state", "clock", 2 * longestTimeoutMs);
      },
      async wipeService() {
        await server.ask("FLUSHALL");
      },
      async requests() {
        const stats = String(await server.ask("INFO", "commandstats"));
        const calls = (name: string) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
        // The others are called by the scripts: parts of one request.
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
      // What each process knows of it by itself, and for as long as its own timeout.
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
