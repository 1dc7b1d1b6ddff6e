/**
 * A node that this object keeps in existence: it creates the node at the start, after each deletion, and in each new session, with the
 * last data. The semantics are those of Java Curator's PersistentNode; docs/coordination/zookeeper.md lists the states and events.
 */
import { isZooKeeperError, ZooKeeperError } from "../../base/errors.ts";
import { checkNames } from "../../base/options.ts";
import { checkPath, parentOf } from "../../base/paths.ts";
import type { Acl } from "../../operations/acl.ts";
import type { CreateOptions, Data } from "../../operations/operations.ts";
import type { Session, ZooKeeper } from "../../operations/session.ts";
import type { Stat } from "../../operations/stat.ts";
import { acrossSessions, follow, isPassing } from "./follow.ts";
import { Listeners } from "./listeners.ts";
import { unwatch, watchExistence } from "./node-watch.ts";
import { createContainers, deleteSurely, protectedCreate } from "./protect.ts";

export interface PersistentNodeOptions {
  /** Default: `ephemeral`. The server deletes a container some time after its last child was deleted; then it is created again. */
  readonly mode?: "ephemeral" | "persistent" | "container";
  /**
   * If true, the server appends a number. The name also contains a random token, as with Curator's `useProtection`, so that a lost answer
   * does not lead to a second node. The node keeps its name in later sessions.
   */
  readonly sequential?: boolean;
  /** Only with mode `persistent`: the server deletes the node after this many ms without a change; then it is created again. */
  readonly ttlMs?: number;
  /** The ACL of the node and of created parents. Default: every client has all permissions. */
  readonly acl?: readonly Acl[];
  /**
   * What to do if the node exists and this session did not create it. `write` (the default, as in Curator) writes the data to the existing
   * node. `wait` leaves the existing node alone until it is deleted, and then creates the node; only for ephemeral nodes.
   */
  readonly existing?: "write" | "wait";
}

const names: ReadonlySet<string> = new Set<keyof PersistentNodeOptions>([
  "mode",
  "sequential",
  "ttlMs",
  "acl",
  "existing",
]);

/** Listeners must not throw: an error that a listener throws becomes an uncaught exception. */
export interface PersistentNodeListener {
  /**
   * Called when the node exists with the current data: for the first time, after it has been created again, and in each new session. It
   * may be called again after an error.
   */
  created?(path: string): void;
  /**
   * Called with an error that will be retried, with the error of a failed deletion at the end, or if a node of another kind (ephemeral,
   * persistent) is at the path. Meant for a log.
   */
  trouble?(error: unknown): void;
}

/** The data that this client wrote last, and the czxid of the node that got them. */
interface Written {
  readonly data: Data;
  readonly czxid: bigint;
}

export class PersistentNode {
  readonly #zk: ZooKeeper;
  readonly #given: string;
  readonly #options: PersistentNodeOptions;
  readonly #ephemeral: boolean;
  readonly #listeners = new Listeners<PersistentNodeListener>();
  readonly #closing = new AbortController();
  /** The node's path; undefined until a sequential node has been created. */
  #at: string | undefined;
  #data: Data;
  #written: Written | undefined;
  #session: Session | undefined;
  /** The last session in which this client may have created or written the node. */
  #touched: Session | undefined;
  /** Set while the node exists with the current data: its session and its czxid. */
  #placed: { readonly session: Session; readonly czxid: bigint } | undefined;
  #wake: () => void = () => undefined;
  #running: Promise<void> | undefined;
  #started: Promise<void> | undefined;
  #failure: unknown;

  /** @param path the node's path; with `sequential`, the part before the number @throws PATH_INVALID, OPTION_INVALID */
  constructor(zk: ZooKeeper, path: string, data: Data = "", options: PersistentNodeOptions = {}) {
    checkPath(path === "/" ? "//" : path);
    checkNames(`the persistent node ${path}`, path, options, names);
    const { mode = "ephemeral", sequential = false, ttlMs, existing = "write" } = options;
    const invalid = (problem: string, hint: string) => {
      return new ZooKeeperError("OPTION_INVALID", `the persistent node ${path}: ${problem}`, { path, hint });
    };
    if (!["ephemeral", "persistent", "container"].includes(mode))
      throw invalid(`mode is ${JSON.stringify(mode)}`, "give ephemeral, persistent or container");
    if (existing !== "write" && existing !== "wait")
      throw invalid(`existing is ${JSON.stringify(existing)}`, "give write or wait");
    if (existing === "wait" && mode !== "ephemeral")
      throw invalid("only an ephemeral node can wait", "leave out `existing`");
    if (ttlMs !== undefined && mode !== "persistent")
      throw invalid(`ttlMs with mode ${mode}`, "only persistent nodes have a time to live");
    if (sequential && mode === "container") throw invalid("a container cannot be sequential", "choose one of them");
    this.#zk = zk;
    this.#given = path;
    this.#at = sequential ? undefined : path;
    this.#data = data;
    this.#options = options;
    this.#ephemeral = mode === "ephemeral";
  }

  /** The node's path; for a sequential node it includes the number once the node has been created. */
  get path(): string {
    return this.#at ?? this.#given;
  }

  /**
   * Creates the node, and creates it again whenever it is missing, until `close`. Resolves when the node exists for the first time.
   * @throws CLOSED; the error that prevents the first creation, such as NO_AUTH, after which this object is closed
   */
  start(): Promise<void> {
    if (this.#closing.signal.aborted) return Promise.reject(this.#endedError());
    this.#started ??= new Promise<void>((resolve, reject) => {
      this.#running = this.#run(resolve).finally(() => reject(this.#endedError()));
    });
    return this.#started;
  }

  /** @returns a function that removes the listener */
  listen(listener: PersistentNodeListener): () => void {
    return this.#listeners.add(listener);
  }

  /**
   * Changes the data. Writes it now if the node exists, and again each time the node is created again.
   * @throws CONNECTION_LOSS or SESSION_EXPIRED if it is unknown whether the data was written; it is written again later. NO_AUTH
   */
  async setData(data: Data): Promise<void> {
    this.#data = data;
    if (!this.#placed) return;
    try {
      await this.#write(this.#placed.session, this.path);
    } catch (error) {
      this.#wake();
      throw error;
    }
  }

  /**
   * Deletes the node, if this client has created or written it; with the option `existing: "wait"`, only if the node belongs to this
   * client's session. If the deletion fails, an ephemeral node is deleted with its session. Never rejects.
   */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#started?.catch(() => undefined); // the caller of `start` receives the error
    await this.#running;
    this.#listeners.clear();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #endedError(): unknown {
    if (this.#failure !== undefined) return this.#failure;
    const options = { path: this.path, hint: "make a new one" };
    return new ZooKeeperError("CLOSED", `the node ${this.path} is not kept any more: it has been closed`, options);
  }

  async #run(placed: () => void): Promise<void> {
    let wasPlaced = false;
    try {
      await follow(
        this.#zk,
        this.#closing.signal,
        async (session) => {
          await this.#keep(session, () => {
            wasPlaced = true;
            placed();
          });
          return "again";
        },
        (error) => {
          if (!wasPlaced && !isPassing(error)) throw error;
          this.#trouble(error);
        },
      );
    } catch (error) {
      if (!this.#zk.signal.aborted) this.#failure = error;
    } finally {
      this.#closing.abort();
    }
    await this.#leave();
  }

  #trouble(error: unknown): void {
    this.#listeners.tell((one) => one.trouble?.(error));
  }

  /**
   * Keeps the node in existence during one session; returns when the session has ended or this object is closed.
   * @throws errors of requests, except those that a new try can settle at once
   */
  async #keep(session: Session, placed: () => void): Promise<void> {
    const onChange = () => this.#wake();
    const { signal } = this.#closing;
    if (this.#session !== session) {
      this.#session = session;
      this.#written = undefined;
      if (this.#ephemeral) this.#touched = undefined; // the server deletes the ephemeral nodes of the former session
    }
    signal.addEventListener("abort", onChange);
    try {
      while (!signal.aborted && session.state !== "ended") {
        const woken = new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        const at = this.#at;
        const stat = at === undefined ? undefined : await watchExistence(session, at, onChange);
        if (at === undefined || !stat) {
          await this.#create(session);
          continue;
        }
        const foreign = this.#ephemeral && stat.ephemeralOwner !== session.id;
        if (!foreign || this.#options.existing !== "wait") {
          if (!(await this.#refresh(session, at, stat))) continue;
          placed();
        }
        await woken;
      }
    } finally {
      this.#placed = undefined;
      signal.removeEventListener("abort", onChange);
      if (this.#at !== undefined) unwatch(session, this.#at, onChange);
    }
  }

  /** Writes the data, unless this client already wrote them to this node. @returns false if the node must be read again */
  async #refresh(session: Session, at: string, stat: Stat): Promise<boolean> {
    if (this.#written?.czxid !== stat.czxid) this.#written = undefined; // another node with the same path replaced the written one
    try {
      if (this.#written?.data !== this.#data) await this.#write(session, at);
    } catch (error) {
      if (isZooKeeperError(error, "CONNECTION_LOSS")) return false;
      throw error;
    }
    if (this.#written?.data !== this.#data) return false;
    const isNew = this.#placed?.czxid !== stat.czxid;
    this.#placed = { session, czxid: stat.czxid };
    if (!isNew || this.#closing.signal.aborted) return true;
    this.#listeners.tell((one) => one.created?.(at));
    if (this.#ephemeral === (stat.ephemeralOwner !== 0n)) return true;
    const kinds = this.#ephemeral ? "persistent and was to be ephemeral" : "ephemeral and was to be persistent";
    const hint = "another program created it: delete it, or choose another path";
    this.#trouble(new ZooKeeperError("NODE_EXISTS", `the node ${at} is ${kinds}`, { path: at, hint }));
    return true;
  }

  /** Writes the data. A missing node is no error, because `#keep` creates it again with this data. */
  async #write(session: Session, at: string): Promise<void> {
    const data = this.#data;
    try {
      const { czxid } = await session.set(at, data);
      this.#written = { data, czxid };
      this.#touched = session;
    } catch (error) {
      this.#written = undefined;
      if (isZooKeeperError(error, "CONNECTION_LOSS")) this.#touched = session;
      if (!isZooKeeperError(error, "NO_NODE")) throw error;
    }
  }

  async #create(session: Session): Promise<void> {
    const data = this.#data;
    const { ttlMs, acl, mode } = this.#options;
    const options: CreateOptions = { ephemeral: this.#ephemeral, ttlMs, acl };
    const parent = parentOf(this.#given);
    try {
      const { path, stat } =
        this.#at === undefined
          ? await protectedCreate(session, parent, this.#given.slice(this.#given.lastIndexOf("/") + 1), data, options)
          : await session.create(this.#at, data, { ...options, container: mode === "container" });
      this.#at = path;
      this.#written = { data, czxid: stat.czxid };
      this.#touched = session;
    } catch (error) {
      const noParent = isZooKeeperError(error, "NO_NODE") && parent !== "/";
      if (noParent) await createContainers(session, parent, undefined, acl);
      else if (isZooKeeperError(error, "CONNECTION_LOSS")) this.#touched = session;
      else if (!isZooKeeperError(error, "NODE_EXISTS")) throw error;
    }
  }

  async #leave(): Promise<void> {
    const [at, session] = [this.#at, this.#touched];
    if (at === undefined || !session || this.#zk.signal.aborted) return;
    const remove = async (one: Session) => {
      // With `wait`, the node may belong to another session by now; then it must not be deleted.
      const stat = this.#options.existing === "wait" ? await one.exists(at) : undefined;
      if (!stat || stat.ephemeralOwner === one.id) await deleteSurely(one, at);
    };
    try {
      if (this.#ephemeral) await remove(session);
      else await acrossSessions(this.#zk, this.#zk.signal, remove);
    } catch (error) {
      // A failed deletion of an ephemeral node is not reported if its session has ended, because the server deletes the node then.
      if (!this.#zk.signal.aborted && (session.live || !this.#ephemeral)) this.#trouble(error);
    }
  }
}
