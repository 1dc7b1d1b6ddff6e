/**
 * Locks that use the recipes of @carillon/zookeeper, in the ZooKeeper session that lists this process. Nodes under the cluster's path:
 *
 *   locks/<name>/_c_…-lock-…               a Mutex, with the paths of Curator's InterProcessMutex
 *   elections/<name>/_c_…-lock-…           a Mutex, with the paths of Curator's LeaderSelector
 *   semaphores/<name>/leases/_c_…-lease-…  a Semaphore, with the paths of Curator's InterProcessSemaphoreV2
 *   semaphores/<name>/permits              the number of permits, in the format of Curator's SharedCount
 *   grace-locks/<name>/holder              a grace lock
 *
 * A fence consists of a base from the store in its upper 32 bits, and the sequence number that ZooKeeper gave the node in its lower 32. The
 * base is the data of the parent node, whose children are numbered: ZooKeeper cannot lose the counter and keep the base.
 */
import {
  type GraceLock,
  type GraceLockOptions,
  graceLock,
  isZooKeeperError,
  Mutex,
  type Held as Node,
  Semaphore,
  type Session,
  type ZooKeeper,
} from "@carillon/zookeeper";
import { type Clock, limitedTo, pause } from "../../base/clock.ts";
import { CarillonError, isStoreAway, messageOf } from "../../base/errors.ts";
import {
  type Held,
  type LockNeeds,
  type LockPlace,
  type PermitSpec,
  type Permits,
  sizeDiffers,
} from "../../cluster/locks.ts";
import { HeldLock } from "../held-lock.ts";
import type { ClusterPath } from "./path.ts";

export interface ZooKeeperLocksOptions extends LockNeeds {
  readonly zk: ZooKeeper;
  readonly path: ClusterPath;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly log: (line: string) => void;
}

const retryMs = 250;
type Take = (wait: boolean, signal: AbortSignal) => Promise<Node | undefined>;

export class ZooKeeperLocks implements LockPlace {
  readonly title = "ZooKeeper";
  readonly #options: ZooKeeperLocksOptions;
  readonly #held = new Set<HeldLock>();

  constructor(options: ZooKeeperLocksOptions) {
    this.#options = options;
  }

  permits(spec: PermitSpec): Permits {
    const at = `/${spec.kind}s/${encodeURIComponent(spec.name)}`;
    const take = spec.kind === "semaphore" ? this.#lease(spec, at) : this.#turn(at);
    return { acquire: (wait, signal) => (wait ? this.#wait(spec, take, signal) : this.#try(spec, take, signal)) };
  }

  graceLock(name: string, options: GraceLockOptions): GraceLock {
    const { zk, path } = this.#options;
    return graceLock(zk, `/grace-locks/${encodeURIComponent(name)}`, { ...options, acl: path.acl });
  }

  async close(): Promise<void> {
    await Promise.all([...this.#held].map((held) => held.release()));
  }

  async #wait(spec: PermitSpec, take: Take, signal: AbortSignal): Promise<Held> {
    const { clock, log } = this.#options;
    for (let told = false; ; told = true) {
      signal.throwIfAborted();
      try {
        const node = await take(true, signal);
        const held = node && (await this.#hold(spec, node, signal));
        if (held) return held;
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        if (!isPassing(error)) throw this.#options.path.translated(error);
        if (!told) log(`waiting for the ${spec.kind} ${spec.name} goes on: ${messageOf(error)}`);
        await pause(clock, retryMs, signal);
      }
    }
  }

  async #try(spec: PermitSpec, take: Take, signal: AbortSignal): Promise<Held | undefined> {
    const { clock, timeoutMs, path } = this.#options;
    signal.throwIfAborted();
    const untilTaken = async (either: AbortSignal): Promise<Held | undefined> => {
      for (;;) {
        try {
          const node = await take(false, either);
          return node && (await this.#hold(spec, node, either));
        } catch (error) {
          either.throwIfAborted();
          // ZooKeeper was wiped while this process was connected; `#keepPath` creates the cluster's path again.
          if (!isZooKeeperError(error, "NO_NODE")) throw path.translated(error);
          await pause(clock, retryMs, either);
          either.throwIfAborted();
        }
      }
    };
    const late = `ZooKeeper did not answer within ${timeoutMs} ms`;
    return limitedTo(clock, timeoutMs, signal, untilTaken, () => new CarillonError("COORDINATION_UNREACHABLE", late));
  }

  #turn(at: string): Take {
    const { zk, path } = this.#options;
    const mutex = new Mutex(zk, at, { acl: path.acl });
    return (wait, signal) => (wait ? mutex.acquire({ signal }) : mutex.tryAcquire({ signal }));
  }

  #lease(spec: PermitSpec, at: string): Take {
    const { zk, path } = this.#options;
    const countPath = `${at}/permits`;
    const semaphore = new Semaphore(zk, at, { countPath, seed: spec.permits }, { acl: path.acl });
    return async (wait, signal) => {
      await this.#agree(spec, at, signal);
      const lease = wait ? await semaphore.acquire({ signal }) : await semaphore.tryAcquire({ signal });
      if (!lease) return undefined;
      // While this process holds a lease, the size cannot change; another process may have changed it just before.
      const size = await this.#size(countPath, signal);
      if (size === spec.permits) return lease;
      await lease.release();
      throw sizeDiffers(spec, size ?? "other");
    };
  }

  /**
   * Ensures that the semaphore has the number of permits that this caller gave; changes it if no lease exists.
   * @throws LOCK_SIZE_DIFFERS if it has another number and a lease exists or is being taken; errors of ZooKeeper
   */
  async #agree(spec: PermitSpec, at: string, signal: AbortSignal): Promise<void> {
    const { zk, path } = this.#options;
    const countPath = `${at}/permits`;
    const count = Buffer.alloc(4);
    count.writeInt32BE(spec.permits);
    for (;;) {
      const size = await this.#size(countPath, signal);
      if (size === spec.permits) return;
      if (size === undefined) {
        await zk.create(countPath, count, { acl: path.acl, signal }).catch(async (error: unknown) => {
          if (isZooKeeperError(error, "NO_NODE"))
            for (const above of ["/semaphores", at]) await this.#make(above, signal);
          else if (!isZooKeeperError(error, "NODE_EXISTS", "CONNECTION_LOSS")) throw error;
        });
        continue;
      }
      // Taking a lease requires this mutex, so no other process takes one meanwhile.
      const turn = await new Mutex(zk, `${at}/locks`, { acl: path.acl }).tryAcquire({ signal });
      if (!turn) throw sizeDiffers(spec, size);
      try {
        if (await this.#inUse(turn.session, at)) throw sizeDiffers(spec, size);
        await turn.session.set(countPath, count);
      } finally {
        if (turn.held) await turn.release();
      }
    }
  }

  async #make(path: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#options.zk.create(path, "", { acl: this.#options.path.acl, signal });
    } catch (error) {
      if (!isZooKeeperError(error, "NODE_EXISTS", "CONNECTION_LOSS")) throw error;
    }
  }

  async #size(countPath: string, signal: AbortSignal): Promise<number | undefined> {
    try {
      const { data } = await this.#options.zk.get(countPath, { signal });
      return data.length === 4 ? data.readInt32BE() : Number.NaN;
    } catch (error) {
      if (isZooKeeperError(error, "NO_NODE")) return undefined;
      throw error;
    }
  }

  async #inUse(session: Session, at: string): Promise<boolean> {
    try {
      return (await session.children(`${at}/leases`)).names.length > 0;
    } catch (error) {
      if (isZooKeeperError(error, "NO_NODE")) return false;
      throw error;
    }
  }

  /** Wraps the node as a held lock with its fence. @returns undefined if the lock was lost meanwhile */
  async #hold({ kind, name }: PermitSpec, node: Node, signal: AbortSignal): Promise<Held | undefined> {
    let fence: bigint;
    try {
      fence = await this.#fence(node);
      signal.throwIfAborted();
    } catch (error) {
      await this.#letGo(name, node);
      throw error;
    }
    const held = new HeldLock(name, `the ${kind} ${name}`, fence, {
      sure: () => node.held,
      letGo: () => this.#letGo(name, node),
    });
    this.#held.add(held);
    held.signal.addEventListener("abort", () => this.#held.delete(held), { once: true });
    const lost = () => held.lose(messageOf(node.signal.reason), node.signal.reason);
    if (node.signal.aborted) lost();
    else node.signal.addEventListener("abort", lost, { once: true });
    return held.held ? held : undefined;
  }

  async #letGo(name: string, node: Node): Promise<boolean> {
    if (!node.held) return false;
    try {
      await node.release();
      return true;
    } catch (error) {
      if (!isZooKeeperError(error, "NOT_HELD"))
        this.#options.log(`${name} was released, and stays taken until the session ends: ${messageOf(error)}`);
      return false;
    }
  }

  /** Computes the fence. Called while the lock is held, so the parent node, which has the base, cannot disappear. */
  async #fence({ session, path }: Node): Promise<bigint> {
    const { era, nextBase } = this.#options;
    const parent = path.slice(0, path.lastIndexOf("/"));
    const number = BigInt.asUintN(32, BigInt(/-(-?\d{10})$/.exec(path)?.[1] ?? 0));
    // If ZooKeeper has gone back to older data, it may issue the same sequence numbers again, so a new base is needed.
    const rewound = session.rewoundFrom ?? 0n;
    for (;;) {
      const { data, stat } = await session.get(parent);
      const [, base, baseEra, baseRewound] = /^(\d+) (\d+) (\d+)$/.exec(data.toString("latin1")) ?? [];
      if (base && Number(baseEra) === era && BigInt(baseRewound ?? 0) >= rewound) return (BigInt(base) << 32n) | number;
      const next = `${await nextBase()} ${era} ${rewound}`;
      try {
        await session.set(parent, next, { version: stat.version });
      } catch (error) {
        if (!isZooKeeperError(error, "BAD_VERSION", "CONNECTION_LOSS")) throw error;
      }
    }
  }
}

/** True for errors after which another attempt may succeed. */
function isPassing(error: unknown): boolean {
  return (
    isZooKeeperError(error, "SESSION_EXPIRED", "CONNECTION_LOSS", "UNREACHABLE", "NOT_HELD", "NO_NODE") ||
    isStoreAway(error)
  );
}
