/**
 * Group membership. Each member has an ephemeral node `<path>/<id>` with its data, as with Java Curator's GroupMember; a children cache
 * lists the members. The node is created again after its deletion and in each new session. If another session owns a node with this id
 * (this client's previous session, or a second program with the same id), the member waits until that node is deleted.
 */
import { ZooKeeperError } from "../../base/errors.ts";
import { checkPath, childOf } from "../../base/paths.ts";
import type { Data } from "../../operations/operations.ts";
import type { ZooKeeper } from "../../operations/session.ts";
import { Listeners } from "../base/listeners.ts";
import { PersistentNode } from "../base/persistent-node.ts";
import { ChildrenCache } from "../cache/children-cache.ts";

/** Listeners must not throw: an error that a listener throws becomes an uncaught exception. */
export interface GroupListener {
  /** Called when a member joined, left, or changed its data. */
  joined?(id: string, data: Buffer): void;
  left?(id: string): void;
  changed?(id: string, data: Buffer): void;
  /** Called with an error that will be retried, or with the error that ends the list of members. Meant for a log. */
  trouble?(error: unknown): void;
}

export class GroupMember {
  readonly path: string;
  readonly id: string;
  readonly #zk: ZooKeeper;
  readonly #node: PersistentNode;
  readonly #listeners = new Listeners<GroupListener>();
  #cache: ChildrenCache | undefined;
  #started: Promise<void> | undefined;

  /** @throws PATH_INVALID, also if the id is not a valid node name */
  constructor(zk: ZooKeeper, path: string, id: string, data: Data = "") {
    checkPath(path);
    const at = childOf(path, id);
    if (id.includes("/")) {
      const options = { path: at, hint: "an id is one name, without slashes" };
      throw new ZooKeeperError("PATH_INVALID", `the member's id ${JSON.stringify(id)} has a slash in it`, options);
    }
    this.#zk = zk;
    this.path = path;
    this.id = id;
    this.#node = new PersistentNode(zk, at, data, { existing: "wait" });
  }

  /**
   * Joins the group, and joins again in each new session. Resolves when this member has joined and all members have been read.
   * @throws CLOSED; the error that prevents the first join, such as NO_AUTH, after which the membership is closed
   */
  start(): Promise<void> {
    this.#started ??= this.#start();
    return this.#started.then(() => this.#node.start()); // rejects if the node has been closed
  }

  /** Ids and data of the present members, as last read; empty before `start`. */
  get members(): ReadonlyMap<string, Buffer> {
    const found = new Map<string, Buffer>();
    for (const name of this.#cache?.names ?? []) {
      const node = this.#cache?.get(name);
      if (node) found.set(name, node.data);
    }
    return found;
  }

  /** True while `members` is up to date. False while the connection is lost or silent, before `start` and after `close`. */
  get fresh(): boolean {
    return this.#cache?.fresh ?? false;
  }

  /** @returns a function that removes the listener */
  listen(listener: GroupListener): () => void {
    return this.#listeners.add(listener);
  }

  /**
   * Changes this member's data: at once if it has joined, otherwise when it joins. The data is also used when it joins again.
   * @throws CONNECTION_LOSS or SESSION_EXPIRED if it is unknown whether the data was written; it is written again later. NO_AUTH
   */
  setData(data: Data): Promise<void> {
    return this.#node.setData(data);
  }

  /** Leaves the group. Resolves when the member's node is deleted, or will be deleted with its session. Never rejects. */
  async close(): Promise<void> {
    this.#listeners.clear();
    this.#started?.catch(() => undefined); // the caller of `start` receives the error
    await Promise.all([this.#node.close(), this.#cache?.close()]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #start(): Promise<void> {
    const cache = new ChildrenCache(this.#zk, this.path);
    this.#cache = cache;
    cache.listen({
      event: (event) => {
        if (event.type === "added") this.#tell("joined", event.node.path, event.node.data);
        else if (event.type === "changed") this.#tell("changed", event.node.path, event.node.data);
        else if (event.type === "removed") this.#tell("left", event.before.path, event.before.data);
      },
      trouble: (error) => this.#listeners.tell((one) => one.trouble?.(error)),
    });
    this.#node.listen({ trouble: (error) => this.#listeners.tell((one) => one.trouble?.(error)) });
    try {
      await this.#node.start();
      await cache.ready;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  #tell(what: "joined" | "changed" | "left", path: string, data: Buffer): void {
    const id = path.slice(path.lastIndexOf("/") + 1);
    this.#listeners.tell((one) => one[what]?.(id, data));
  }
}
