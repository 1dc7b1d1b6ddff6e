import type { Operations } from "./operations.ts";

/**
 * connecting: no server has assigned an id to the session yet. connected: a connection serves the session. suspended: the connection is
 * lost or silent, and the servers may or may not still have the session. ended: the final state.
 */
export type SessionState = "connecting" | "connected" | "suspended" | "ended";

/**
 * A ZooKeeper session: the period in which the servers count this client as alive and keep its ephemeral nodes. It ends when the servers
 * expire it or the client closes. It also ends by this process's monotonic clock before any server can have expired it: from then on
 * calls reject and `live` is false, even if the process was stopped and no timer has run yet. There is one exception: a server that is cut
 * off from its leader answers by itself for up to syncLimit × tickTime, while the leader may expire the session. If a lock then gets a new
 * holder early, that holder still has a larger fence (docs/coordination/zookeeper.md).
 *
 * Once a session has ended, its operations reject; they never continue in the next session.
 */
export interface Session extends Operations {
  /** The session's id; 0n until a server has assigned one. */
  readonly id: bigint;
  readonly state: SessionState;
  /** The timeout in ms that the server has accepted; before that, the requested one. */
  readonly timeoutMs: number;
  /**
   * Aborts when the session ends. The reason is a ZooKeeperError: SESSION_EXPIRED, CLOSED, AUTH_FAILED, or UNREACHABLE (no trusted server).
   */
  readonly signal: AbortSignal;
  /** True while the session has an id and has ended neither at the servers nor by this process's clock. */
  readonly live: boolean;
  /** Ms until the client ends the session by its own clock; each answer extends them. 0 once ended, Infinity while connecting. */
  readonly remainingMs: number;
  /**
   * Undefined unless the servers' data is older than data that this client has seen: the data was wiped or restored, or the server lags.
   * Otherwise a transaction number above those that any client has seen, as far as this client can tell.
   */
  readonly rewoundFrom: bigint | undefined;
  /**
   * True if the session's server has no quorum: it answers reads, perhaps with old data, and writes reject with NOT_READ_ONLY. The session
   * ends (SESSION_EXPIRED) once a server with a quorum is found. Always false without the option `readOnly`.
   */
  readonly readOnly: boolean;
  /** Calls `listener` at each change of the state; it must not throw. @returns a function that removes the listener */
  onState(listener: (state: SessionState) => void): () => void;
}

/** A client, which keeps a connection open and runs one session after another on it. */
export interface ZooKeeper extends Operations {
  /** The current session. When a session ends, its successor is set here before any listener is called. */
  readonly session: Session;
  /**
   * Resolves with the current session as soon as a server has assigned an id. The session may be suspended again by then.
   * @throws ABORTED by the signal; the reason why the client has ended: CLOSED, AUTH_FAILED or UNREACHABLE (no trusted server)
   */
  established(signal?: AbortSignal): Promise<Session>;
  /**
   * Calls `listener` at each change of state of the current session and of all later ones; it must not throw.
   * @returns a function that removes the listener
   */
  onState(listener: (state: SessionState, session: Session) => void): () => void;
  /** Calls `listener` with each new session once it has an id; it must not throw. @returns a function that removes the listener */
  onSession(listener: (session: Session) => void): () => void;
  /**
   * Sends credentials on the current connection and on all later ones. Without a connection the call resolves at once.
   * @param scheme such as `digest` @param credentials such as `user:password`
   * @throws AUTH_FAILED; the reason why the client has ended, such as CLOSED
   */
  addAuth(scheme: string, credentials: string | Uint8Array): Promise<void>;
  /**
   * Replaces the list of servers. If the present server is not in the new list, the client disconnects from it at once and resumes its
   * session at another one. Names are compared as they are written.
   * @param servers as for `connect`; a chroot must be the client's own @throws CONNECT_STRING_INVALID, PATH_INVALID, CLOSED
   */
  setServers(servers: string): void;
  /** Aborts when the client is closed, or ends itself because credentials were refused or no server's certificate is trusted. */
  readonly signal: AbortSignal;
  /**
   * Ends the session at the server, so that its ephemeral nodes are deleted at once; if no server answers within a second, they stay until
   * the session expires. Unanswered calls reject with CLOSED. Never rejects.
   */
  close(): Promise<void>;
}
