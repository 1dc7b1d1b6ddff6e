import { countersIn, Ensemble, fourLetter } from "@carillon/zookeeper/testing";
import type { MembershipProvider, Shown } from "../../src/cluster/membership-provider.ts";
import { openRedisProvider } from "../../src/coordination/redis/redis.ts";
import { openZooKeeper } from "../../src/coordination/zookeeper/zookeeper.ts";
import { type Faults, lineBefore, zooKeeperLineBefore } from "./fault-line.ts";
import { RedisServer } from "./redis-server.ts";

/** A kind of coordination provider under test. A driver must pass the tests in membership-provider.test.ts. */
export interface ProviderDriver {
  readonly title: string;
  open(): Promise<ProviderStage>;
}

export const longestTimeoutMs = 600_000;

export interface ProviderStage {
  /** The shortest session timeout that the service accepts, in ms. */
  readonly sessionTimeoutMs: number;
  /** Opens the provider of one process, with its own connection to the service. Its session is not announced yet. */
  make(options?: { clusterId?: string; sessionTimeoutMs?: number }): Promise<ProviderMember>;
  /** Kills the service and starts it again at the same address. The service determines whether its data survives. */
  restartService(): Promise<void>;
  /**
   * Lets the service become so old that it reports which sessions have ended and which member is the first, even with the longest
   * session timeout. Call this before any process joins.
   */
  ages(): Promise<void>;
  /** Deletes all data of the service: in Redis while it runs, in ZooKeeper between a stop and a new start of the servers. */
  wipeService(): Promise<void>;
  /** Resolves with the number of requests of all processes so far, as the server counts them; the call itself adds at most one. */
  requests(): Promise<number>;
  close(): Promise<void>;
}

export interface ProviderMember extends Faults {
  readonly provider: MembershipProvider;
  readonly log: readonly string[];
  /** Makes the member leave if its connection works, and closes the connection. */
  close(): Promise<void>;
}

export function shownAs(sessionId: number, more: Partial<Shown> = {}): Shown {
  const node = `node-${sessionId}`;
  return { sessionId, node, role: "node", host: "here", pid: sessionId, version: "1", groups: ["default"], ...more };
}

const redis: ProviderDriver = {
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
        const provider = await openRedisProvider({
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
          provider,
          log,
          ...line.faults,
          async close() {
            line.faults.resume();
            await provider.leave();
            await line.close();
          },
        };
      },
      async restartService() {
        await server.kill();
        await server.up();
      },
      async ages() {
        // Advances the clock that the scripts keep in Redis, and that otherwise only their calls advance.
        await server.ask("HINCRBY", "{carillon}:state", "clock", 2 * longestTimeoutMs);
      },
      async wipeService() {
        await server.ask("FLUSHALL");
      },
      async requests() {
        const stats = String(await server.ask("INFO", "commandstats"));
        const calls = (name: string) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
        // Other commands do not count, because scripts call them as parts of one request.
        return calls("evalsha") + calls("eval") + calls("subscribe");
      },
      close: () => server.close(),
    };
  },
};

const zookeeper: ProviderDriver = {
  title: "ZooKeeper",
  async open() {
    const ensemble = await Ensemble.start({ servers: 1, tickTime: 200 });
    const sessionTimeoutMs = 1_500;
    return {
      sessionTimeoutMs,
      async make(options = {}) {
        const line = await zooKeeperLineBefore(ensemble.server.address);
        const log: string[] = [];
        const provider = await openZooKeeper({
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
          provider,
          log,
          ...line.faults,
          async close() {
            line.faults.heal();
            line.faults.resume();
            await provider.leave();
            await line.close();
          },
        };
      },
      async restartService() {
        await ensemble.server.restart();
      },
      // ZooKeeper needs no age: each process waits for its own session timeout before it reports that a session has ended.
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

export const providerDrivers: readonly ProviderDriver[] = [redis, zookeeper];
