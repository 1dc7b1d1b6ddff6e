/**
 * A mutex. The contenders at a path form a queue, and the first one holds the lock. It is compatible with Java Curator's InterProcessMutex
 * on the same path: each contender is an ephemeral node `<path>/_c_<uuid>-lock-<number>`. Its data is the contender's address (empty if a
 * Java lock is revocable), or `__REVOKE__` once the lock is requested.
 *
 * Three rules prevent two holders at once: an acquisition belongs to one session from the creation of its node to its end; the node must
 * be owned by that session; and the lock counts as held only while the session is live by this process's clock, which ends the session
 * before a server can expire it (for one exception see `Session`). Only the fence protects against a process that was stopped between
 * reading `held` and acting on it.
 */

import { networkInterfaces } from "node:os";
import { isZooKeeperError } from "../../base/errors.ts";
import { checkNames } from "../../base/options.ts";
import { checkPath } from "../../base/paths.ts";
import type { Acl } from "../../operations/acl.ts";
import type { CallOptions, Data } from "../../operations/operations.ts";
import type { ZooKeeper } from "../../operations/session.ts";
import { acrossSessions } from "../base/follow.ts";
import { type AcquireOptions, Acquisition, type Lock, type TryOptions, takeHold } from "./acquisition.ts";
import { type Held, revokeRequest } from "./hold.ts";
import { placeIn } from "./line.ts";

export interface LockOptions {
  /** The data of the lock's nodes, for people to read; default: this host's address. */
  readonly data?: Data;
  /** The ACL of all nodes of the lock and of created parents. Default: every client has all permissions. */
  readonly acl?: readonly Acl[];
}

const marker = "lock-";

export const lockOptionNames: ReadonlySet<string> = new Set<keyof LockOptions>(["data", "acl"]);

export class Mutex implements Lock {
  readonly path: string;
  readonly #zk: ZooKeeper;
  readonly #acquisition: Acquisition;

  /** @throws PATH_INVALID, OPTION_INVALID */
  constructor(zk: ZooKeeper, path: string, options: LockOptions = {}) {
    checkLockPath(path);
    checkNames(`the lock at ${path}`, path, options, lockOptionNames);
    const { data = localAddress(), acl } = options;
    this.path = path;
    this.#zk = zk;
    const what = `the lock at ${path}`;
    const line = { path, marker, data, acl, blockedBy: [marker] };
    this.#acquisition = new Acquisition(what, (turn) =>
      acrossSessions(zk, turn.signal, (session) => takeHold(session, line, what, turn)),
    );
  }

  acquire(options: AcquireOptions = {}): Promise<Held> {
    return this.#acquisition.acquire(options);
  }

  tryAcquire(options: TryOptions = {}): Promise<Held | undefined> {
    return this.#acquisition.tryAcquire(options);
  }

  /** True if this owner holds the lock through this object. */
  heldBy(owner: unknown): boolean {
    return this.#acquisition.of(owner) !== undefined;
  }

  participants(options?: CallOptions): Promise<string[]> {
    return nodesInLine(this.#zk, this.path, [marker], options);
  }
}

/**
 * Asks a holder, in any program, to release its lock. The holder's `revocation` aborts, and the holder decides whether to release.
 * @param path the path of the holder's node; see `participants`
 * @returns false if the node does not exist any more
 */
export async function revoke(zk: ZooKeeper, path: string, options: CallOptions = {}): Promise<boolean> {
  for (;;) {
    try {
      await zk.set(path, revokeRequest, options);
      return true;
    } catch (error) {
      if (isZooKeeperError(error, "NO_NODE")) return false;
      // The loop sends the request again, because the answer was lost and a repeated request does no harm.
      if (!isZooKeeperError(error, "CONNECTION_LOSS")) throw error;
    }
  }
}

/** Returns the paths of the nodes in the order of the queue. */
export async function nodesInLine(
  zk: ZooKeeper,
  path: string,
  markers: readonly string[],
  options: CallOptions = {},
): Promise<string[]> {
  try {
    const { names } = await zk.children(path, options);
    return names
      .flatMap((name) => {
        const place = placeIn(name, markers);
        return place === undefined ? [] : [{ name, place }];
      })
      .sort((a, b) => (a.place < b.place ? -1 : 1))
      .map(({ name }) => `${path}/${name}`);
  } catch (error) {
    if (isZooKeeperError(error, "NO_NODE")) return [];
    throw error;
  }
}

/** Checks a lock's path. The root is refused, because clients use the root's children for other purposes too. @throws PATH_INVALID */
export function checkLockPath(path: string): void {
  checkPath(path === "/" ? "//" : path);
}

/** Returns this host's first external IPv4 address (127.0.0.1 if there is none), the default data of a lock's node, as in Curator. */
export function localAddress(): string {
  const outward = Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .find(({ family, internal }) => family === "IPv4" && !internal);
  return outward?.address ?? "127.0.0.1";
}
