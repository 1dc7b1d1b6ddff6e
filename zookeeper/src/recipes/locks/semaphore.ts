/**
 * A semaphore with a fixed or shared number of leases. It is compatible with Java Curator's InterProcessSemaphoreV2 on the same path: a
 * process that wants a lease acquires the mutex at `<path>/locks`, creates the ephemeral node `<path>/leases/_c_<uuid>-lease-<number>`,
 * and waits until there are no more nodes than leases. So only one process at a time watches the leases, and processes get them in the
 * order of their requests.
 *
 * A process that wants several leases gets all of them while it holds the mutex. If processes took leases one by one, two processes with
 * half of their leases each would deadlock.
 */

import { isZooKeeperError, ZooKeeperError } from "../../base/errors.ts";
import { checkNames } from "../../base/options.ts";
import { checkPath } from "../../base/paths.ts";
import type { Acl } from "../../operations/acl.ts";
import type { CallOptions, Data } from "../../operations/operations.ts";
import type { Session, ZooKeeper } from "../../operations/session.ts";
import { decodeCount } from "../base/count.ts";
import { fenceOf } from "../base/fence.ts";
import { acrossSessions } from "../base/follow.ts";
import { protectedCreate } from "../base/protect.ts";
import { waitFor } from "../base/waiting.ts";
import { checkAcquireOptions, checkTryOptions, limited } from "./acquisition.ts";
import { type Held, Hold } from "./hold.ts";
import type { TurnOptions } from "./line.ts";
import { checkLockPath, type LockOptions, localAddress, lockOptionNames, Mutex, nodesInLine } from "./mutex.ts";

/** The number of leases as a shared count, which can be changed. */
export interface PermitCount {
  readonly countPath: string;
  /** The number of leases while the node at `countPath` does not exist. */
  readonly seed: number;
}

export interface PermitOptions extends CallOptions {
  /**
   * The longest wait in ms. With 0, the default, the call does not wait: it gets the leases only if enough are free and no other process is
   * just acquiring some.
   */
  readonly limitMs?: number;
}

const marker = "lease-";

export class Semaphore {
  readonly path: string;
  readonly #zk: ZooKeeper;
  readonly #leases: number | PermitCount;
  readonly #data: Data;
  readonly #acl: readonly Acl[] | undefined;
  readonly #mutex: Mutex;
  readonly #what: string;
  /** Functions that wake the calls of this process that wait for a change. Usually only one call waits, because it holds the mutex. */
  readonly #waiting = new Set<() => void>();
  /** One function for all watches: the client stores each function only once, so watches that never fire do not accumulate. */
  readonly #told = () => {
    for (const wake of [...this.#waiting]) wake();
  };

  /**
   * @param leases the number of leases; it must be the same for all users of the path
   * @throws PATH_INVALID, OPTION_INVALID
   */
  constructor(zk: ZooKeeper, path: string, leases: number | PermitCount, options: LockOptions = {}) {
    checkLockPath(path);
    checkNames(`the semaphore at ${path}`, path, options, lockOptionNames);
    const { data = localAddress(), acl } = options;
    this.#what = `a lease of ${path}`;
    if (typeof leases === "object") checkPath(leases.countPath);
    checkCount(path, "leases", typeof leases === "number" ? leases : leases.seed, 0);
    this.path = path;
    this.#zk = zk;
    this.#leases = leases;
    this.#data = data;
    this.#acl = acl;
    this.#mutex = new Mutex(zk, `${path}/locks`, { data, acl });
  }

  /** Waits for a lease. @throws as `acquireMany` */
  async acquire(options: CallOptions = {}): Promise<Held> {
    const [lease] = await this.acquireMany(1, options);
    if (!lease) throw new Error(`${this.#what}: waited without a limit, and in vain`);
    return lease;
  }

  /** Acquires one lease within `limitMs`. @returns undefined if the limit passes first @throws as `acquireMany` */
  async tryAcquire(options: PermitOptions = {}): Promise<Held | undefined> {
    return (await this.tryAcquireMany(1, options))?.[0];
  }

  /**
   * Waits until it has `count` leases, all at once. If the session ends first, it queues again in the next session. Each lease is released
   * separately.
   * @throws ABORTED, CLOSED, NO_AUTH, OPTION_INVALID; DATA_INVALID if the node of the shared count does not hold a count
   */
  async acquireMany(count: number, options: CallOptions = {}): Promise<Held[]> {
    checkAcquireOptions(this.#what, options);
    const leases = await this.tryAcquireMany(count, { ...options, limitMs: Number.POSITIVE_INFINITY });
    return leases ?? [];
  }

  /** Acquires `count` leases, all or none, within `limitMs`. @returns undefined if the limit passes first @throws as `acquireMany` */
  async tryAcquireMany(count: number, options: PermitOptions = {}): Promise<Held[] | undefined> {
    checkTryOptions(this.#what, options);
    const { limitMs = 0, signal } = options;
    checkCount(this.path, "leases wanted at once", count, 1);
    if (typeof this.#leases === "number" && count > this.#leases) {
      const message = `${count} leases of ${this.path} are wanted at once, and there are ${this.#leases}`;
      throw new ZooKeeperError("OPTION_INVALID", message, { path: this.path, hint: "ask for fewer, or allow more" });
    }
    return limited<Hold[]>(
      this.#what,
      { limitMs, signal },
      (turn) => acrossSessions(this.#zk, turn.signal, () => this.#take(count, turn)),
      (leases) => {
        for (const lease of leases) lease.abandon();
      },
    );
  }

  /** Returns the paths of all lease nodes, oldest first; includes the nodes of a process that still waits. */
  participants(options?: CallOptions): Promise<string[]> {
    return nodesInLine(this.#zk, `${this.path}/leases`, [marker], options);
  }

  async #take(count: number, options: Required<TurnOptions>): Promise<Hold[] | undefined> {
    const { signal, wait } = options;
    for (;;) {
      const turn = await (wait ? this.#mutex.acquire({ signal }) : this.#mutex.tryAcquire({ signal }));
      if (!turn) return undefined;
      const leases: Hold[] = [];
      let got = false;
      try {
        const fences = await this.#add(turn.session, leases, count);
        const room = await this.#room(turn.session, leases, options);
        if (room === "none") return undefined;
        if (room === "enough") {
          const begun = leases.map((lease, index) => lease.begin(fences(index), signal));
          got = (await Promise.all(begun)).every((there) => there);
        }
        // If the leases could not begin, one of the new nodes was deleted meanwhile, and the loop starts again.
        if (got) return leases;
      } finally {
        if (!got) for (const lease of leases) lease.abandon();
        // If the mutex was lost, other processes may have added leases concurrently. The limit is kept, because each process counts
        // all nodes.
        if (turn.held) await turn.release();
      }
    }
  }

  /** Creates `count` lease nodes. @returns a function that computes the fence of the lease with the given index */
  async #add(session: Session, leases: Hold[], count: number): Promise<(index: number) => Promise<bigint>> {
    const czxids: bigint[] = [];
    while (leases.length < count) {
      // No signal is passed, because an aborted creation may leave a node whose name this client has not received: see line.ts.
      const options = { ephemeral: true, acl: this.#acl };
      const node = await protectedCreate(session, `${this.path}/leases`, marker, this.#data, options);
      czxids.push(node.stat.czxid);
      leases.push(new Hold(session, node.path, this.#what));
    }
    return (index) => fenceOf(session, { path: this.path, acl: this.#acl }, czxids[index] ?? 0n);
  }

  /**
   * Waits until there are no more nodes than leases.
   * @returns "gone" if one of the new nodes was deleted; "none" if there are more nodes than leases and `wait` is false
   */
  async #room(
    session: Session,
    leases: readonly Hold[],
    { signal, wait }: Required<TurnOptions>,
  ): Promise<"enough" | "none" | "gone"> {
    const look = async (watch?: () => void) => {
      const most = await this.#most(session, watch, signal);
      const { names } = await session.children(`${this.path}/leases`, { watch, signal });
      const there = new Set(names.map((name) => `${this.path}/leases/${name}`));
      if (!leases.every(({ path }) => there.has(path))) return "gone";
      return there.size <= most ? "enough" : "none";
    };
    // The first check sets no watch, so that no watch remains if there is no need to wait.
    const first = await look();
    if (first !== "none" || !wait) return first;
    for (;;) {
      const found = await waitFor<"enough" | "gone" | "changed">(this.#what, { signal }, (resolve, reject) => {
        // `wake` is also called when the session ends; the next check then rejects.
        const wake = () => resolve("changed");
        this.#waiting.add(wake);
        look(this.#told).then((room) => room === "none" || resolve(room), reject);
        return () => this.#waiting.delete(wake);
      });
      if (found === "enough" || found === "gone") return found;
    }
  }

  async #most(session: Session, watch: (() => void) | undefined, signal: AbortSignal): Promise<number> {
    if (typeof this.#leases === "number") return this.#leases;
    const { countPath, seed } = this.#leases;
    try {
      return decodeCount((await session.get(countPath, { watch, signal })).data, countPath);
    } catch (error) {
      if (!isZooKeeperError(error, "NO_NODE")) throw error;
      // The failed `get` has set no watch, so `exists` sets one on the missing node.
      if (!watch) return seed;
      const stat = await session.exists(countPath, { watch, signal });
      return stat ? this.#most(session, watch, signal) : seed;
    }
  }
}

function checkCount(path: string, what: string, count: number, least: number): void {
  if (Number.isInteger(count) && count >= least) return;
  const options = { path, hint: `give a whole number from ${least} on` };
  throw new ZooKeeperError("OPTION_INVALID", `${path}: the number of ${what} is ${count}`, options);
}
