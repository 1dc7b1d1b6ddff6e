import { connect } from "../../../zookeeper/src/client/client.ts";
import type { GraceLockOptions } from "../../../zookeeper/src/recipes/grace-lock/grace-lock.ts";
import { GraceLock } from "../../../zookeeper/src/recipes/grace-lock/grace-lock.ts";
import { graceLock } from "../../../zookeeper/src/recipes/grace-lock/nodes.ts";
import type { LockRecord } from "../../../zookeeper/src/recipes/grace-lock/place.ts";
import type { GraceLockState } from "../../../zookeeper/src/recipes/grace-lock/states.ts";
import type { TakenOver, Use } from "../../../zookeeper/src/recipes/grace-lock/use.ts";
import { GraceLockRow } from "../../src/coordination/grace-lock.ts";
import { StoreProxy } from "./proxy.ts";
import { postgres } from "./servers.ts";
import { openStage, type Stage } from "./store-stage.ts";

/**
 * Session timeout of contenders whose session has to end, in ms. It is as short as possible, but long enough for a contender to take the
 * lock first on a busy machine.
 */
export const timeoutMs = 2_000;
export const graceMs = 1_000;

/** An event that a contender reported, with its time by this process's monotonic clock, which all contenders share. */
export interface Happening {
  readonly what: "state" | "took over" | "lost";
  readonly detail: unknown;
  readonly atMs: number;
}

/** A contender for the lock, with its own connection to the server, which a test can disturb. */
export interface Contender {
  readonly lock: GraceLock;
  readonly happened: Happening[];
  /** Makes the connection hang: no byte arrives, and the connection stays open. */
  hang(): void;
  /** Breaks the connection; a new one can be opened at once. */
  break(): void;
  /**
   * Loses the reply to the next request that takes or releases the lock, and cuts the connection. The server has carried out the request by
   * then.
   */
  swallow(): void;
  /** The number of replies lost so far. */
  readonly swallowed: number;
  heal(): void;
  /** Ends the contender's possession of the lock on the server while the contender is connected. */
  expire(): Promise<void>;
  close(): Promise<void>;
}

/** A service that can hold the lock. */
export interface Driver {
  readonly title: string;
  open(): Promise<DriverStage>;
}

export interface ContenderOptions extends Partial<GraceLockOptions> {
  /**
   * Session timeout in ms; default `timeoutMs`. A test in which no session may end needs a timeout that exceeds a busy machine's
   * delays.
   */
  sessionMs?: number;
}

export interface DriverStage {
  /** @param name the name of the lock */
  contender(name: string, owner: string, options?: ContenderOptions): Promise<Contender>;
  close(): Promise<void>;
}

function recorder(owner: string, options: Partial<GraceLockOptions>) {
  const happened: Happening[] = [];
  const note = (what: Happening["what"]) => (detail: GraceLockState | TakenOver | Error) =>
    void happened.push({ what, detail, atMs: performance.now() });
  const told = { onState: note("state"), onTakenOver: note("took over"), onLost: note("lost") };
  return { happened, options: { owner, graceMs, ...told, ...options } };
}

/** Returns the address of the ZooKeeper server that `npm test` starts. */
export function zooKeeperServer(): string {
  const server = process.env.CARILLON_TEST_ZOOKEEPER_URL;
  if (!server) throw new Error("CARILLON_TEST_ZOOKEEPER_URL is not set: run the tests with `npm test`");
  return server;
}

const zooKeeper: Driver = {
  title: "ZooKeeper",
  async open() {
    const run = `/grace-${process.pid}-${Date.now().toString(36)}`;
    return {
      async contender(name, owner, { sessionMs = timeoutMs, ...given } = {}) {
        const proxy = await StoreProxy.before(`zookeeper://${zooKeeperServer()}`);
        const client = await connect(new URL(proxy.url).host, {
          sessionTimeoutMs: sessionMs,
          connectTimeoutMs: 20_000,
        });
        const { happened, options } = recorder(owner, given);
        const lock = graceLock(client, `${run}/${name}`, options);
        return {
          lock,
          happened,
          hang: () => proxy.hang(),
          break: () => proxy.cut(),
          swallow: () => proxy.swallowReply(isMultiReply),
          get swallowed() {
            return proxy.swallowed;
          },
          heal: () => proxy.heal(),
          async expire() {
            // Deletes the holder's node, as an operator would to end its possession of the lock.
            const operator = await connect(zooKeeperServer(), { sessionTimeoutMs: 10_000 });
            await operator.delete(`${run}/${name}/holder`);
            await operator.close();
          },
          async close() {
            proxy.heal();
            await lock.close();
            await client.close();
            await proxy.close();
          },
        };
      },
      async close() {
        const operator = await connect(zooKeeperServer(), { sessionTimeoutMs: 10_000 });
        for (const { path } of await tree(operator, run)) await operator.delete(path);
        await operator.close();
      },
    };
  },
};

/**
 * True if the reply is that of a multi request. It has length, xid, zxid and err, and then the header of the first part: its type (create,
 * delete, set or check) and a zero byte, because more parts follow.
 */
function isMultiReply(reply: Buffer): boolean {
  return reply.length > 30 && [1, 2, 5, 13].includes(reply.readInt32BE(20)) && reply[24] === 0;
}

async function tree(client: Awaited<ReturnType<typeof connect>>, path: string): Promise<{ path: string }[]> {
  const { names } = await client.children(path);
  const below = await Promise.all(names.map((name) => tree(client, `${path}/${name}`)));
  return [...below.flat(), { path }];
}

const postgreSql: Driver = {
  title: "PostgreSQL",
  async open() {
    const stage: Stage = await openStage(postgres());
    return {
      async contender(name, owner, { sessionMs = timeoutMs, ...given } = {}) {
        const proxy = await StoreProxy.before(stage.server.url);
        const { openPostgres } = await import("../../src/store/postgres/postgres.ts");
        const store = await openPostgres({
          url: proxy.url,
          schema: stage.schema,
          connectionsMax: 2,
        });
        const times = { timeoutMs: sessionMs, beatMs: sessionMs / 8, pollMs: 25 };
        const { happened, options } = recorder(owner, given);
        const lock = new GraceLock(new GraceLockRow<LockRecord>(store.graceLocks, name, times), options);
        return {
          lock,
          happened,
          hang: () => proxy.hang(),
          break: () => proxy.cut(),
          swallow: () => proxy.swallowReply((reply) => /(?:INSERT|UPDATE) (?:0 )?1/.test(reply.toString("latin1"))),
          get swallowed() {
            return proxy.swallowed;
          },
          heal: () => proxy.heal(),
          async expire() {
            await stage.sql.query(
              `update ${stage.schema}.grace_lock set holder = null, version = version + 1 where name = $1`,
              [name],
            );
          },
          async close() {
            proxy.heal();
            await lock.close();
            await store.close();
            await proxy.close();
          },
        };
      },
      close: () => stage.close(),
    };
  },
};

export const drivers: readonly Driver[] = [zooKeeper, postgreSql];

export async function mustLock(contender: Contender): Promise<Use> {
  const use = await contender.lock.tryLock();
  if (!use) throw new Error(`${contender.lock.owner} did not get the lock`);
  return use;
}
