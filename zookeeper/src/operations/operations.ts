/**
 * The operations of ZooKeeper, as a session and as a client offer them. Every call rejects with a ZooKeeperError, and settles in
 * any case: with the answer, or when the connection is lost, the session ends or the signal aborts.
 *
 * Reads without an answer from a lost connection are repeated on the next one, as long as the session lives. A write is not
 * repeated, because it may have been carried out: it rejects with CONNECTION_LOSS. The same doubt holds for a write on its way
 * when the session ends or the client is closed: SESSION_EXPIRED or CLOSED; the hint says so.
 */
import type { Acl } from "./acl.ts";
import type { Stat } from "./stat.ts";

/** A text is stored as UTF-8. */
export type Data = Uint8Array | string;

export interface CallOptions {
  /** Abandons the call, which rejects with ABORTED. A request that was already sent may still be carried out. */
  readonly signal?: AbortSignal;
}

export interface CreateOptions extends CallOptions {
  /** The node goes when the session ends. */
  readonly ephemeral?: boolean;
  /** The server appends a number of ten digits that counts up within the parent. */
  readonly sequential?: boolean;
  /** The server removes the node some time after its last child went (3.5 and later). */
  readonly container?: boolean;
  /** The server removes the node after this time without a change or a child (3.5.3 and later). */
  readonly ttlMs?: number;
  /** Default: everyone may do anything (`openAcl`). */
  readonly acl?: readonly Acl[];
  /** Creates missing parents as persistent nodes under the same ACL. */
  readonly parents?: boolean;
}

export interface Created {
  /** With the sequence number, if there is one. */
  readonly path: string;
  readonly stat: Stat;
}

export interface VersionOptions extends CallOptions {
  /** Rejects with BAD_VERSION unless the node has this version; default: any. */
  readonly version?: number;
}

export interface NodeEvent {
  /**
   * created, deleted, changed (data): of the node at `path`. children: the list of its children changed (not sent to
   * recursive watches, which see each child). gap: the connection was lost for a while, so events may be missing: read
   * again what you keep.
   */
  readonly type: "created" | "deleted" | "changed" | "children" | "gap";
  readonly path: string;
}

/** The report of a watch that fires once: an event, or the end of the session, and of the watch with it. */
export interface OnceEvent {
  readonly type: "created" | "deleted" | "changed" | "children" | "ended";
  readonly path: string;
}

export interface ReadOptions extends CallOptions {
  /** Called once, with the next change of the data that was read. It is not set when the read rejects. Must not throw. */
  readonly watch?: (event: OnceEvent) => void;
}

export interface WatchOptions extends CallOptions {
  /** Also everything below the path. */
  readonly recursive?: boolean;
  /** Events that may wait for a slow reader; beyond it they are dropped and one `gap` takes their place. */
  readonly maxWaiting?: number;
}

/** A persistent watch: iterate over it. It ends with its signal or `close`, and throws when its session ends. */
export interface Watch extends AsyncIterable<NodeEvent> {
  readonly path: string;
  /** Ends the iteration and removes the watch on the server. Never rejects. */
  close(): Promise<void>;
}

/** One part of a `multi`. */
export type Operation =
  | ({ readonly type: "create"; readonly path: string; readonly data?: Data } & Omit<
      CreateOptions,
      "signal" | "parents"
    >)
  | { readonly type: "delete"; readonly path: string; readonly version?: number }
  | { readonly type: "set"; readonly path: string; readonly data: Data; readonly version?: number }
  | { readonly type: "check"; readonly path: string; readonly version: number };

/** The result of the operation at the same index. delete and check have no data; for a created node servers return only the path. */
export type OperationResult =
  | { readonly type: "create"; readonly path: string }
  | { readonly type: "delete" }
  | { readonly type: "set"; readonly stat: Stat }
  | { readonly type: "check" };

/** A `multi` in the making. Results are in the order of the calls. */
export interface Transaction {
  create(path: string, data?: Data, options?: Omit<CreateOptions, "signal" | "parents">): Transaction;
  delete(path: string, version?: number): Transaction;
  set(path: string, data: Data, version?: number): Transaction;
  /** All fails unless the node has this version. */
  check(path: string, version: number): Transaction;
  /** @throws as `multi` */
  commit(options?: CallOptions): Promise<OperationResult[]>;
}

/** A change of the ensemble: servers that join or leave it, or all of its servers from now on. */
export interface ReconfigOptions extends CallOptions {
  /** Servers that join or change: `server.4=host:2888:3888:participant;2181`. */
  readonly joining?: readonly string[];
  /** Ids of servers that leave. */
  readonly leaving?: readonly (string | number)[];
  /** All servers, in place of `joining` and `leaving`. */
  readonly members?: readonly string[];
  /** Rejects with BAD_VERSION unless the configuration has this version (see `parseConfig`); default: any. */
  readonly version?: bigint;
}

export interface Operations {
  /** @throws NODE_EXISTS, NO_NODE (the parent), NO_CHILDREN_FOR_EPHEMERALS, UNIMPLEMENTED, … */
  create(path: string, data?: Data, options?: CreateOptions): Promise<Created>;
  /** @throws NO_NODE, NOT_EMPTY, BAD_VERSION */
  delete(path: string, options?: VersionOptions): Promise<void>;
  /**
   * Deletes the node and everything below it, also nodes created there meanwhile. It is not one transaction: after an error a
   * part is gone. @returns without an error if there is no node @throws NO_AUTH, PATH_INVALID for `/`
   */
  deleteAll(path: string, options?: CallOptions): Promise<void>;
  /** @returns undefined where no node is; a watch is set in both cases, and then waits for its creation. */
  exists(path: string, options?: ReadOptions): Promise<Stat | undefined>;
  /** @throws NO_NODE */
  get(path: string, options?: ReadOptions): Promise<{ data: Buffer; stat: Stat }>;
  /** @throws NO_NODE, BAD_VERSION */
  set(path: string, data: Data, options?: VersionOptions): Promise<Stat>;
  /** Names without the path, in no order. @throws NO_NODE */
  children(path: string, options?: ReadOptions): Promise<{ names: string[]; stat: Stat }>;
  /**
   * The same list for very many children: `each` sees one name after the other and no array of them is made.
   * Must not throw. @returns how many @throws NO_NODE
   */
  eachChild(path: string, each: (name: string) => void, options?: CallOptions): Promise<number>;
  /** All or nothing. @throws the error of the first operation that cannot be done, with its path */
  multi(operations: readonly Operation[], options?: CallOptions): Promise<OperationResult[]>;
  /** The same, put together by calls; nothing is sent before `commit`. */
  transaction(): Transaction;
  /** Reads that follow see at least all that was written anywhere before. @throws never NO_NODE */
  sync(path: string, options?: CallOptions): Promise<void>;
  getAcl(path: string, options?: CallOptions): Promise<{ acl: Acl[]; stat: Stat }>;
  /** @param options.version of the ACL (`stat.aversion`) */
  setAcl(path: string, acl: readonly Acl[], options?: VersionOptions): Promise<Stat>;
  /**
   * Watches until closed (3.6 and later), in the session that the client has now; `PersistentWatcher` goes on in the next.
   * Set once the promise resolves.
   * @throws UNIMPLEMENTED on older servers
   */
  watch(path: string, options?: WatchOptions): Promise<Watch>;
  /** Removes every watch of this client on the path, those that fire once too. @throws NO_WATCHER */
  removeWatches(path: string, options?: CallOptions): Promise<void>;
  /** Paths of this session's ephemeral nodes that begin with `prefix` (3.6 and later). */
  ephemerals(prefix?: string, options?: CallOptions): Promise<string[]>;
  /** How many nodes are below the path, at any depth (3.6 and later). */
  descendantCount(path: string, options?: CallOptions): Promise<number>;
  /** As whom the server knows this connection (3.7 and later). */
  whoAmI(options?: CallOptions): Promise<{ scheme: string; id: string }[]>;
  /** The ensemble's configuration, as text in the form of zoo.cfg.dynamic (3.5 and later). */
  config(options?: ReadOptions): Promise<{ data: Buffer; stat: Stat }>;
  /**
   * Changes the ensemble's servers (3.5 and later). The servers need `reconfigEnabled=true`, and the session the right to write
   * `/zookeeper/config`, as the digest user `super` has it. A client goes on with the servers it was given: see `setServers`.
   * @returns the new configuration @throws RECONFIG_DISABLED, NO_AUTH, BAD_VERSION, NEW_CONFIG_NO_QUORUM,
   * RECONFIG_IN_PROGRESS, BAD_ARGUMENTS; UNIMPLEMENTED by a standalone server
   */
  reconfig(options: ReconfigOptions): Promise<{ data: Buffer; stat: Stat }>;
}
