import { Ensemble } from "@carillon/zookeeper/testing";
import { connect } from "../../../zookeeper/src/client/client.ts";
import type { LockPlace } from "../../src/cluster/locks.ts";
import { Locks } from "../../src/coordination/locks.ts";
import { RedisLocks } from "../../src/coordination/redis/lock.ts";
import { StoreLocks } from "../../src/coordination/store/locks.ts";
import { openZooKeeper } from "../../src/coordination/zookeeper/zookeeper.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { type Faults, lineBefore, zooKeeperLineBefore } from "./fault-line.ts";
import type { PausableClock } from "./pausable-clock.ts";
import { RedisServer } from "./redis-server.ts";
import { postgres } from "./servers.ts";
import { type Line, openStage, recordingLog, until } from "./store-stage.ts";

/** The shortest lock timeout that the services accept, in ms. */
export const lockTimeoutMs = 1_500;

/** A service that can hold locks. A driver must pass the tests in locks.test.ts. */
export interface LockDriver {
  readonly title: string;
  /** True if waiters get the lock in the order of their requests even if they do not ask for that (`fair`). */
  readonly alwaysFair: boolean;
  open(): Promise<LockStage>;
}

export interface JoinOptions {
  timeoutMs?: number;
  /** How long the `onLead` function of an election may take to finish, in ms. */
  drainMs?: number;
}

export interface LockStage {
  /** Opens the locks of one process, with its own connection to the service. */
  join(options?: JoinOptions): Promise<LockUser>;
  /** Deletes the service's data about locks. */
  wipe(): Promise<void>;
  /** For a fair lock: resolves when `count` contenders hold the lock or wait for it. */
  inLine(name: string, count: number): Promise<void>;
  close(): Promise<void>;
}

export interface LockUser extends Faults {
  readonly locks: Locks;
  /** Log lines of this process's locks. */
  readonly lines: readonly Line[];
  close(): Promise<void>;
}

function locksOn(place: LockPlace, clock: PausableClock, drainMs = 20_000) {
  const { log, lines } = recordingLog();
  return { lines, locks: new Locks({ open: async () => place, clock, log, drainMs, owner: null, failFast: false }) };
}

const store: LockDriver = {
  title: "PostgreSQL",
  alwaysFair: true,
  async open() {
    const stage = await openStage(postgres());
    return {
      async join({ timeoutMs = lockTimeoutMs, drainMs } = {}) {
        const line = await lineBefore(stage.server.url);
        const { clock } = line;
        const own = await openPostgres({
          url: line.at,
          schema: stage.schema,
          connectionsMax: 3,
          clock,
          answerMs: 2_000,
        });
        const nowMs = () => Date.now();
        const options = { store: own, clock, nowMs, timeoutMs, log: recordingLog().log, era: 0 };
        const { locks, lines } = locksOn(new StoreLocks(options), clock, drainMs);
        return {
          locks,
          lines,
          ...line.faults,
          async close() {
            line.faults.heal();
            line.faults.resume();
            await locks.close();
            await own.close();
            await line.close();
          },
        };
      },
      async wipe() {
        await stage.sql.query(`delete from ${stage.schema}.lock`);
      },
      async inLine(name, count) {
        const look = `select cardinality(line) as n from ${stage.schema}.lock where name = $1`;
        await until(`${count} in line`, async () => (await stage.sql.query(look, [name])).rows[0]?.n === count);
      },
      close: () => stage.close(),
    };
  },
};

const zookeeper: LockDriver = {
  title: "ZooKeeper",
  alwaysFair: true,
  async open() {
    const ensemble = await Ensemble.start({ servers: 1, tickTime: 200 });
    let bases = 0;
    const address = ensemble.server.address;
    return {
      async join({ timeoutMs = lockTimeoutMs, drainMs } = {}) {
        const line = await zooKeeperLineBefore(address);
        const { clock } = line;
        const provider = await openZooKeeper({
          url: `zookeeper://${line.at}/suite`,
          clusterId: "a",
          sessionTimeoutMs: timeoutMs,
          log: () => undefined,
          signal: new AbortController().signal,
          clock,
        });
        const place = await provider.locks({ era: 0, nextBase: async () => ++bases });
        const { locks, lines } = locksOn(place, clock, drainMs);
        return {
          locks,
          lines,
          ...line.faults,
          async close() {
            line.faults.heal();
            line.faults.resume();
            await locks.close();
            await provider.leave();
            await line.close();
          },
        };
      },
      async wipe() {
        await ensemble.killAll();
        await ensemble.wipeAll();
        await ensemble.startAll();
      },
      async inLine(name, count) {
        const zk = await connect(`${address}/suite`, { sessionTimeoutMs: 10_000 });
        const path = `/${name.replace(":", "s/")}`;
        try {
          await until(`${count} in line`, async () => (await zk.children(path)).names.length === count);
        } finally {
          await zk.close();
        }
      },
      close: () => ensemble.stop(),
    };
  },
};

const redis: LockDriver = {
  title: "Redis",
  alwaysFair: false,
  async open() {
    const server = await RedisServer.start();
    let bases = 0;
    return {
      async join({ timeoutMs = lockTimeoutMs, drainMs } = {}) {
        const line = await lineBefore(server.url);
        const { clock } = line;
        const place = await RedisLocks.open({
          url: line.at,
          clusterId: "a",
          fenceBase: async () => ++bases,
          clock,
          log: () => undefined,
          ttlMs: timeoutMs,
        });
        const { locks, lines } = locksOn(place, clock, drainMs);
        return {
          locks,
          lines,
          ...line.faults,
          async close() {
            line.faults.heal();
            line.faults.resume();
            await locks.close();
            await line.close();
          },
        };
      },
      async wipe() {
        await server.ask("FLUSHALL");
      },
      async inLine(name, count) {
        const key = `{carillon:${name}}`;
        await until(`${count} in line`, async () => {
          const counts = await Promise.all([server.ask("ZCARD", key), server.ask("ZCARD", `${key}:queue`)]);
          return Number(counts[0]) + Number(counts[1]) === count;
        });
      },
      close: () => server.close(),
    };
  },
};

export const lockDrivers: readonly LockDriver[] = [store, zookeeper, redis];
