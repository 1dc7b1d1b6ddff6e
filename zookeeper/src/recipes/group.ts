/**
 * Group membership: while a member is in, there is an ephemeral node `<path>/<id>` with its data, as Java Curator's
 * GroupMember makes it; who is in is seen through a children cache. The node is made again when somebody deletes it and
 * in each new session. A node with our id that another session owns, our own last one's or that of a second program with
 * this id, is left alone until it goes: then the place is ours.
 */
import { isZooKeeperError, ZooKeeperError } from "../errors.ts";
import type { Data } from "../operations.ts";
import { checkPath } from "../paths.ts";
import type { Session, ZooKeeper } from "../session.ts";
import { ChildrenCache } from "./children-cache.ts";
import { follow, isPassing } from "./follow.ts";
import { Listeners } from "./listeners.ts";
import { unwatch, watchExistence } from "./node-watch.ts";
import { createContainers, deleteSurely } from "./protect.ts";

/** None of them may throw; what they throw becomes an uncaught exception. */
export interface GroupListener {
  /** A member came, went, or changed its data. */
  joined?(id: string, data: Buffer): void;
  left?(id: string): void;
  changed?(id: string, data: Buffer): void;
  /** Something went wrong that is tried again: for a log. */
  trouble?(error: unknown): void;
}

export class GroupMember {
  readonly path: string;
  readonly id: string;
  readonly #zk: ZooKeeper;
  readonly #at: string;
  readonly #listeners = new Listeners<GroupListener>();
  readonly #closing = new AbortController();
  #data: Data;
  #cache: ChildrenCache | undefined;
  #running: Promise<void> | undefined;
  #started: Promise<void> | undefined;
  #failure: unknown;
  #session: Session | undefined;
  /** What the node of this session is known to hold. */
  #written: Data | undefined;

  /** @throws PATH_INVALID, also when the id is no name */
  constructor(zk: ZooKeeper, path: string, id: string, data: Data = "") {
    checkPath(path);
    this.#at = `${path === "/" ? "" : path}/${id}`;
    checkPath(this.#at);
    if (id.includes("/")) {
      const options = { path: this.#at, hint: "an id is one name, without slashes" };
      throw new ZooKeeperError("PATH_INVALID", `the member's id ${JSON.stringify(id)} has a slash in it`, options);
    }
    this.#zk = zk;
    this.path = path;
    this.id = id;
    this.#data = data;
  }

  /**
   * Joins, and stays in from session to session.
   * @returns when it is in and all members have been read
   * @throws CLOSED; and what keeps it from joining at first, as NO_AUTH: then it is closed
   */
  start(): Promise<void> {
    if (this.#closing.signal.aborted) return Promise.reject(this.#endedError());
    this.#started ??= this.#start();
    return this.#started;
  }

  /** Ids and data of those that are in, as last read; empty before `start`. */
  get members(): ReadonlyMap<string, Buffer> {
    const found = new Map<string, Buffer>();
    for (const name of this.#cache?.names ?? []) {
      const node = this.#cache?.get(name);
      if (node) found.set(name, node.data);
    }
    return found;
  }

  /** False while the connection is in doubt: the members may be others by now. */
  get fresh(): boolean {
    return this.#cache?.fresh ?? false;
  }

  /** @returns a function that ends it */
  listen(listener: GroupListener): () => void {
    return this.#listeners.add(listener);
  }

  /**
   * Changes this member's data, now if it is in, else as it joins, and for each time that it joins again.
   * @throws CONNECTION_LOSS: it may be written or not; SESSION_EXPIRED: it will be, in the next session
   */
  async setData(data: Data): Promise<void> {
    this.#data = data;
    if (this.#session) await this.#write(this.#session);
  }

  async #write(session: Session): Promise<void> {
    const data = this.#data;
    try {
      await session.set(this.#at, data);
      this.#written = data;
    } catch (error) {
      if (!isZooKeeperError(error, "NO_NODE")) throw error; // deleted: it is about to be made again, with this data
    }
  }

  /** Leaves. @returns when its node is gone, at the latest with the session. Never rejects. */
  async close(): Promise<void> {
    this.#listeners.clear();
    this.#closing.abort();
    this.#started?.catch(() => undefined); // whoever waits for the start hears of it
    await Promise.all([this.#running, this.#cache?.close()]);
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
    const joined = new Promise<void>((resolve, reject) => {
      this.#running = this.#run(resolve).finally(() => reject(this.#endedError()));
    });
    try {
      await joined;
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

  #endedError(): unknown {
    if (this.#failure !== undefined) return this.#failure;
    const options = { path: this.#at, hint: "make a new member" };
    return new ZooKeeperError("CLOSED", `the member ${this.#at} has been closed`, options);
  }

  async #run(joined: () => void): Promise<void> {
    let wasIn = false;
    try {
      await follow(
        this.#zk,
        this.#closing.signal,
        async (session) => {
          await this.#stay(session, () => {
            wasIn = true;
            joined();
          });
          return "again";
        },
        (error) => {
          if (!wasIn && !isPassing(error)) throw error;
          this.#listeners.tell((one) => one.trouble?.(error));
        },
      );
    } catch (error) {
      if (!this.#zk.signal.aborted) this.#failure = error;
    } finally {
      this.#closing.abort();
    }
  }

  /** Makes the node, and again when it goes; returns when the session has ended or this member closes. */
  async #stay(session: Session, joined: () => void): Promise<void> {
    let wake: () => void = () => undefined;
    const onChange = () => wake();
    this.#written = undefined;
    this.#closing.signal.addEventListener("abort", onChange);
    try {
      while (!this.#closing.signal.aborted && session.state !== "ended") {
        const woken = new Promise<void>((resolve) => {
          wake = resolve;
        });
        await this.#join(session);
        const stat = await watchExistence(session, this.#at, onChange);
        if (!stat) continue;
        this.#session = stat.ephemeralOwner === session.id ? session : undefined;
        if (this.#session) {
          // It may have been set anew while the node was being made.
          if (this.#written !== this.#data)
            await this.#write(session).catch((error) => {
              // Written or not: it goes round once more, and stays in.
              if (!isZooKeeperError(error, "CONNECTION_LOSS")) throw error;
              wake();
            });
          joined();
        }
        await woken;
      }
    } finally {
      this.#closing.signal.removeEventListener("abort", onChange);
      if (this.#session) await this.#leave(session);
      else unwatch(session, this.#at, onChange);
    }
  }

  /** Unless some node with this id is there. */
  async #join(session: Session): Promise<void> {
    const data = this.#data;
    try {
      await session.create(this.#at, data, { ephemeral: true });
      this.#written = data;
    } catch (error) {
      if (isZooKeeperError(error, "NO_NODE")) await createContainers(session, this.path);
      else if (!isZooKeeperError(error, "NODE_EXISTS", "CONNECTION_LOSS")) throw error;
    }
  }

  async #leave(session: Session): Promise<void> {
    this.#session = undefined;
    try {
      await deleteSurely(session, this.#at);
    } catch (error) {
      if (session.live) throw error; // an ended session takes its node along
    }
  }
}
