/**
 * A barrier: processes wait while a node exists, and continue when it is deleted. Compatible with Java Curator's DistributedBarrier on
 * the same path. The node is persistent, so it remains when the process that created it dies.
 */

import { isZooKeeperError } from "../../base/errors.ts";
import { callNames, checkNames, waitNames } from "../../base/options.ts";
import type { Acl } from "../../operations/acl.ts";
import type { CallOptions } from "../../operations/operations.ts";
import type { ZooKeeper } from "../../operations/session.ts";
import { acrossSessions } from "../base/follow.ts";
import { departure } from "../base/node-watch.ts";
import { createContainers } from "../base/protect.ts";
import type { WaitOptions } from "../base/waiting.ts";
import { limited } from "../locks/acquisition.ts";
import { checkLockPath } from "../locks/mutex.ts";

const optionNames: ReadonlySet<string> = new Set(["acl"]);

export class Barrier {
  readonly path: string;
  readonly #zk: ZooKeeper;
  readonly #acl: readonly Acl[] | undefined;

  /**
   * @param options.acl the ACL of the node and of created parents; default: every client has all permissions
   * @throws PATH_INVALID, OPTION_INVALID
   */
  constructor(zk: ZooKeeper, path: string, options: { readonly acl?: readonly Acl[] } = {}) {
    checkLockPath(path);
    checkNames(`the barrier ${path}`, path, options, optionNames);
    this.path = path;
    this.#zk = zk;
    this.#acl = options.acl;
  }

  /**
   * Creates the node, and missing parents, if it does not exist (Curator: setBarrier).
   * @throws NO_AUTH, ABORTED, SESSION_EXPIRED, CLOSED
   */
  async raise(options: CallOptions = {}): Promise<void> {
    checkNames(`the barrier ${this.path}`, this.path, options, callNames);
    const { signal } = options;
    for (;;) {
      try {
        await this.#zk.create(this.path, "", { acl: this.#acl, signal });
        return;
      } catch (error) {
        if (isZooKeeperError(error, "NODE_EXISTS")) return;
        if (isZooKeeperError(error, "CONNECTION_LOSS")) continue;
        const parent = this.path.slice(0, this.path.lastIndexOf("/"));
        if (!isZooKeeperError(error, "NO_NODE") || parent === "") throw error;
        await createContainers(await this.#zk.established(signal), parent, signal, this.#acl);
      }
    }
  }

  /**
   * Deletes the node, so that all waiting processes continue (Curator: removeBarrier); a missing node is no error.
   * @throws NO_AUTH, ABORTED, SESSION_EXPIRED, CLOSED
   */
  async lower(options: CallOptions = {}): Promise<void> {
    checkNames(`the barrier ${this.path}`, this.path, options, callNames);
    const { signal } = options;
    for (;;) {
      try {
        await this.#zk.delete(this.path, { signal });
        return;
      } catch (error) {
        if (isZooKeeperError(error, "NO_NODE")) return;
        if (!isZooKeeperError(error, "CONNECTION_LOSS")) throw error;
      }
    }
  }

  /**
   * Waits until the node does not exist, across sessions (Curator: waitOnBarrier).
   * @param options.limitMs default: no limit; 0: only checks whether the node exists
   * @returns false if the limit passes first @throws ABORTED, CLOSED, OPTION_INVALID, NO_AUTH
   */
  async wait(options: WaitOptions = {}): Promise<boolean> {
    checkNames(`the barrier ${this.path}`, this.path, options, waitNames);
    const { limitMs = Number.POSITIVE_INFINITY, signal } = options;
    const gone = await limited<true>(
      `the barrier ${this.path}`,
      { limitMs, signal },
      ({ signal: givenUp, wait }) =>
        acrossSessions(this.#zk, givenUp, async (session) => {
          if (wait) await departure(session, this.path, givenUp);
          else if (await session.exists(this.path, { signal: givenUp })) return undefined;
          return true;
        }),
      () => undefined,
    );
    return gone ?? false;
  }
}
