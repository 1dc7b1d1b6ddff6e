/**
 * The operations that sessions and clients offer. A call settles with the answer, or rejects with a ZooKeeperError: the server's error, or
 * because the connection was lost, the session ended or the signal aborted.
 *
 * Reads that were unanswered when a connection was lost are repeated on the next connection, unless the session ends. A write is not
 * repeated, because the server may have executed it: it rejects with CONNECTION_LOSS. A write without an answer when the session ends or
 * the client is closed may also have been executed: it rejects with SESSION_EXPIRED or CLOSED, and the error's hint says so.
 */
import type { Acl } from "./acl.ts";
import type { Stat } from "./stat.ts";

/** The data of a node. A string is stored as UTF-8. */
export type Data = Uint8Array | string;

export interface CallOptions {
  /** Aborts the call, which rejects with ABORTED. The server may still execute a request that was already sent. */
  readonly signal?: AbortSignal;
}

export interface CreateOptions extends CallOptions {
  /** If true, the server deletes the node when the session ends. */
  readonly ephemeral?: boolean;
  /** If true, the server appends a ten-digit number, which increases within the parent. */
  readonly sequential?: boolean;
  /** If true, the server deletes the node some time after its last child was deleted (3.5 and later). */
  readonly container?: boolean;
  /** The server deletes the node after this many ms without a change and without children (3.5.3 and later). */
  readonly ttlMs?: number;
  /** Default: `openAcl`, with which every client has all permissions. */
  readonly acl?: readonly Acl[];
  /** If true, creates missing parents as persistent nodes with the same ACL. */
  readonly parents?: boolean;
}

export interface Created {
  /** The full path, with the sequence number if the node is sequential. */
  readonly path: string;
  readonly stat: Stat;
}

export interface VersionOptions extends CallOptions {
  /** The call rejects with BAD_VERSION unless the node has this version. Default: any version. */
  readonly version?: number;
}

export interface NodeEvent {
  /**
   * created, deleted, changed: the node at `path` was created or deleted, or its data changed. children: its list of children changed (not
   * sent to recursive watches, which get an event for each child). gap: events may be missing, because the connection was lost for some
   * time or more than `maxWaiting` events waited; the caller must read cached data again.
   */
  readonly type: "created" | "deleted" | "changed" | "children" | "gap";
  readonly path: string;
}

/** An event of a watch that fires once. `ended`: the watch ended with its session or was removed, without a change. */
export interface OnceEvent {
  readonly type: "created" | "deleted" | "changed" | "children" | "ended";
  readonly path: string;
}

export interface ReadOptions extends CallOptions {
  /** Called once, at the next change of the data that was read, or when the watch ends. Not set if the read rejects. Must not throw. */
  readonly watch?: (event: OnceEvent) => void;
}

export interface WatchOptions extends CallOptions {
  /** If true, also watches all descendants of the path. */
  readonly recursive?: boolean;
  /** The most events that wait for a slow reader. If there are more, all waiting events are replaced by one `gap`. */
  readonly maxWaiting?: number;
}

/**
 * A persistent watch, to be iterated over. The iteration ends when the signal aborts, `close` is called or the watch is removed. It throws
 * when the session ends or a server refuses to set the watch again.
 */
export interface Watch extends AsyncIterable<NodeEvent> {
  readonly path: string;
  /** Ends the iteration and removes the watch on the server. Never rejects. */
  close(): Promise<void>;
}

/** One operation of a `multi`. */
export type Operation =
  | ({ readonly type: "create"; readonly path: string; readonly data?: Data } & Omit<
      CreateOptions,
      "signal" | "parents"
    >)
  | { readonly type: "delete"; readonly path: string; readonly version?: number }
  | { readonly type: "set"; readonly path: string; readonly data: Data; readonly version?: number }
  | { readonly type: "check"; readonly path: string; readonly version: number };

/** The result of the operation at the same index. `delete` and `check` return no data; the result of a `create` is only the node's path. */
export type OperationResult =
  | { readonly type: "create"; readonly path: string }
  | { readonly type: "delete" }
  | { readonly type: "set"; readonly stat: Stat }
  | { readonly type: "check" };

/** Builds a `multi` by method calls. The results are in the order of the calls. */
export interface Transaction {
  create(path: string, data?: Data, options?: Omit<CreateOptions, "signal" | "parents">): Transaction;
  delete(path: string, version?: number): Transaction;
  set(path: string, data: Data, version?: number): Transaction;
  /** The whole transaction fails unless the node has this version. */
  check(path: string, version: number): Transaction;
  /** Sends the transaction. @throws as `multi` */
  commit(options?: CallOptions): Promise<OperationResult[]>;
}

/** A change of the ensemble: either the servers that join or leave, or the complete new list. */
export interface ReconfigOptions extends CallOptions {
  /** Servers that are added or changed, such as `server.4=host:2888:3888:participant;2181`. */
  readonly joining?: readonly string[];
  /** Ids of servers to remove. */
  readonly leaving?: readonly (string | number)[];
  /** The complete new list of servers; replaces `joining` and `leaving`. */
  readonly members?: readonly string[];
  /** The call rejects with BAD_VERSION unless the configuration has this version (see `parseConfig`). Default: any version. */
  readonly version?: bigint;
}

export interface Operations {
  /** Creates a node. @throws NODE_EXISTS, NO_NODE (the parent is missing), NO_CHILDREN_FOR_EPHEMERALS, UNIMPLEMENTED, … */
  create(path: string, data?: Data, options?: CreateOptions): Promise<Created>;
  /** Deletes a node without children. @throws NO_NODE, NOT_EMPTY, BAD_VERSION */
  delete(path: string, options?: VersionOptions): Promise<void>;
  /**
   * Deletes the node and all its descendants, including nodes that are created there meanwhile; a missing node is no error. This is not one
   * transaction: after an error, part of the tree may be deleted. @throws NO_AUTH, PATH_INVALID for `/`
   */
  deleteAll(path: string, options?: CallOptions): Promise<void>;
  /** Returns undefined if there is no node. The optional watch is set in both cases; without a node it fires at the creation. */
  exists(path: string, options?: ReadOptions): Promise<Stat | undefined>;
  /** Returns the node's data. @throws NO_NODE */
  get(path: string, options?: ReadOptions): Promise<{ data: Buffer; stat: Stat }>;
  /** Writes the node's data. @throws NO_NODE, BAD_VERSION */
  set(path: string, data: Data, options?: VersionOptions): Promise<Stat>;
  /** Returns the children's names without the path, in no particular order. @throws NO_NODE */
  children(path: string, options?: ReadOptions): Promise<{ names: string[]; stat: Stat }>;
  /**
   * Calls `each` with the name of each child, one after the other, without building an array. `each` must not throw.
   * @returns the number of children @throws NO_NODE
   */
  eachChild(path: string, each: (name: string) => void, options?: CallOptions): Promise<number>;
  /** Executes all operations or none. @throws the error of the first operation that fails, with its path */
  multi(operations: readonly Operation[], options?: CallOptions): Promise<OperationResult[]>;
  /** Builds a `multi` by method calls; nothing is sent before `commit`. */
  transaction(): Transaction;
  /** After this call has resolved, reads see all writes that any client had made before the call. It never throws NO_NODE. */
  sync(path: string, options?: CallOptions): Promise<void>;
  getAcl(path: string, options?: CallOptions): Promise<{ acl: Acl[]; stat: Stat }>;
  /** @param options.version the expected version of the ACL (`stat.aversion`) */
  setAcl(path: string, acl: readonly Acl[], options?: VersionOptions): Promise<Stat>;
  /**
   * Sets a persistent watch (3.6 and later) in the client's current session only; `PersistentWatcher` continues in later sessions. The
   * promise resolves once the watch is set.
   * @throws UNIMPLEMENTED on older servers
   */
  watch(path: string, options?: WatchOptions): Promise<Watch>;
  /** Removes every watch of this client on the path, including watches that fire once. @throws NO_WATCHER */
  removeWatches(path: string, options?: CallOptions): Promise<void>;
  /** Returns the paths of this session's ephemeral nodes that begin with `prefix` (3.6 and later). */
  ephemerals(prefix?: string, options?: CallOptions): Promise<string[]>;
  /** Returns the number of descendants of the path, at any depth (3.6 and later). */
  descendantCount(path: string, options?: CallOptions): Promise<number>;
  /** Returns the identities that the server has authenticated for this connection (3.7 and later). */
  whoAmI(options?: CallOptions): Promise<{ scheme: string; id: string }[]>;
  /** Returns the ensemble's configuration as text in the format of zoo.cfg.dynamic (3.5 and later). */
  config(options?: ReadOptions): Promise<{ data: Buffer; stat: Stat }>;
  /**
   * Changes the ensemble's servers (3.5 and later). The servers need `reconfigEnabled=true`, and the session needs permission to write
   * `/zookeeper/config`, which the digest user `super` has. The client keeps its own list of servers: see `setServers`.
   * @returns the new configuration @throws RECONFIG_DISABLED, NO_AUTH, BAD_VERSION, NEW_CONFIG_NO_QUORUM, RECONFIG_IN_PROGRESS,
   * BAD_ARGUMENTS; UNIMPLEMENTED by a standalone server
   */
  reconfig(options: ReconfigOptions): Promise<{ data: Buffer; stat: Stat }>;
}
