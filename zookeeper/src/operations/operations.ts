/**
 * The operations of ZooKeeper that sessions and clients offer. A call rejects only with a ZooKeeperError, and always settles: with
 * the answer, or when the connection is lost, the session ends or the signal aborts.
 *
 * Reads that were unanswered when a connection was lost are repeated on the next connection, as long as the session lives. A write
 * is not repeated, because it may have been carried out: it rejects with CONNECTION_LOSS. A write that is on its way when the
 * session ends or the client is closed is in the same doubt: it rejects with SESSION_EXPIRED or CLOSED, and the error's hint says
 * so.
 */
import type { Acl } from "./acl.ts";
import type { Stat } from "./stat.ts";

/** The data of a node. A string is stored as UTF-8. */
export type Data = Uint8Array | string;

export interface CallOptions {
  /** Abandons the call, which rejects with ABORTED. A request that was already sent may still be carried out. */
  readonly signal?: AbortSignal;
}

export interface CreateOptions extends CallOptions {
  /** The server deletes the node when the session ends. */
  readonly ephemeral?: boolean;
  /** The server appends a number of ten digits that counts up within the parent. */
  readonly sequential?: boolean;
  /** The server removes the node some time after its last child is deleted (3.5 and later). */
  readonly container?: boolean;
  /** The server removes the node after this time without a change or a child (3.5.3 and later). */
  readonly ttlMs?: number;
  /** Default: everyone may do anything (`openAcl`). */
  readonly acl?: readonly Acl[];
  /** Creates missing parents as persistent nodes under the same ACL. */
  readonly parents?: boolean;
}

export interface Created {
  /** The full path, with the sequence number if the node is sequential. */
  readonly path: string;
  readonly stat: Stat;
}

export interface VersionOptions extends CallOptions {
  /** Rejects with BAD_VERSION unless the node has this version; default: any. */
  readonly version?: number;
}

export interface NodeEvent {
  /**
   * created, deleted, changed: the node at `path` was created or deleted, or its data changed. children: its list of children
   * changed (not sent to recursive watches, which get an event for each child). gap: the connection was lost for a while, so events
   * may be missing: read again the data that you keep.
   */
  readonly type: "created" | "deleted" | "changed" | "children" | "gap";
  readonly path: string;
}

/** The report of a watch that fires once: an event, or `ended` because the watch ended with its session. */
export interface OnceEvent {
  readonly type: "created" | "deleted" | "changed" | "children" | "ended";
  readonly path: string;
}

export interface ReadOptions extends CallOptions {
  /** Called once, at the next change of the data that was read. No watch is set if the read rejects. Must not throw. */
  readonly watch?: (event: OnceEvent) => void;
}

export interface WatchOptions extends CallOptions {
  /** If true, also watches everything below the path. */
  readonly recursive?: boolean;
  /** The most events that wait for a slow reader; beyond it the waiting events are dropped and one `gap` takes their place. */
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

/** Builds a `multi`, call by call. The results have the order of the calls. */
export interface Transaction {
  create(path: string, data?: Data, options?: Omit<CreateOptions, "signal" | "parents">): Transaction;
  delete(path: string, version?: number): Transaction;
  set(path: string, data: Data, version?: number): Transaction;
  /** Makes the whole transaction fail unless the node has this version. */
  check(path: string, version: number): Transaction;
  /** @throws as `multi` */
  commit(options?: CallOptions): Promise<OperationResult[]>;
}

/** A change of the ensemble: the servers that join or leave, or the complete new list of servers. */
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
   * Deletes the node and everything below it, also nodes created there meanwhile. This is not one transaction: after an error, part
   * of the tree may be deleted. @returns without an error if there is no node @throws NO_AUTH, PATH_INVALID for `/`
   */
  deleteAll(path: string, options?: CallOptions): Promise<void>;
  /** @returns undefined if there is no node. A watch is set in both cases; without a node it waits for the creation. */
  exists(path: string, options?: ReadOptions): Promise<Stat | undefined>;
  /** @throws NO_NODE */
  get(path: string, options?: ReadOptions): Promise<{ data: Buffer; stat: Stat }>;
  /** @throws NO_NODE, BAD_VERSION */
  set(path: string, data: Data, options?: VersionOptions): Promise<Stat>;
  /** Names without the path, in no particular order. @throws NO_NODE */
  children(path: string, options?: ReadOptions): Promise<{ names: string[]; stat: Stat }>;
  /**
   * Lists very many children without building an array: calls `each` with one name after another. `each` must not throw. @returns
   * the number of children @throws NO_NODE
   */
  eachChild(path: string, each: (name: string) => void, options?: CallOptions): Promise<number>;
  /** Carries out all operations or none. @throws the error of the first operation that fails, with its path */
  multi(operations: readonly Operation[], options?: CallOptions): Promise<OperationResult[]>;
  /** Builds a `multi` by method calls; nothing is sent before `commit`. */
  transaction(): Transaction;
  /** Reads after it see at least all writes made anywhere before it. It never throws NO_NODE. */
  sync(path: string, options?: CallOptions): Promise<void>;
  getAcl(path: string, options?: CallOptions): Promise<{ acl: Acl[]; stat: Stat }>;
  /** @param options.version of the ACL (`stat.aversion`) */
  setAcl(path: string, acl: readonly Acl[], options?: VersionOptions): Promise<Stat>;
  /**
   * Watches until closed (3.6 and later), in the client's current session only; `PersistentWatcher` continues in later sessions.
   * The watch is set once the promise resolves.
   * @throws UNIMPLEMENTED on older servers
   */
  watch(path: string, options?: WatchOptions): Promise<Watch>;
  /** Removes every watch of this client on the path, including watches that fire once. @throws NO_WATCHER */
  removeWatches(path: string, options?: CallOptions): Promise<void>;
  /** Paths of this session's ephemeral nodes that begin with `prefix` (3.6 and later). */
  ephemerals(prefix?: string, options?: CallOptions): Promise<string[]>;
  /** The number of nodes below the path, at any depth (3.6 and later). */
  descendantCount(path: string, options?: CallOptions): Promise<number>;
  /** The identities that the server has authenticated for this connection (3.7 and later). */
  whoAmI(options?: CallOptions): Promise<{ scheme: string; id: string }[]>;
  /** The ensemble's configuration, as text in the form of zoo.cfg.dynamic (3.5 and later). */
  config(options?: ReadOptions): Promise<{ data: Buffer; stat: Stat }>;
  /**
   * Changes the ensemble's servers (3.5 and later). The servers need `reconfigEnabled=true`, and the session needs the right to
   * write `/zookeeper/config`, which the digest user `super` has. The client keeps using the servers that it was given: see
   * `setServers`.
   * @returns the new configuration @throws RECONFIG_DISABLED, NO_AUTH, BAD_VERSION, NEW_CONFIG_NO_QUORUM, RECONFIG_IN_PROGRESS,
   * BAD_ARGUMENTS; UNIMPLEMENTED by a standalone server
   */
  reconfig(options: ReconfigOptions): Promise<{ data: Buffer; stat: Stat }>;
}
