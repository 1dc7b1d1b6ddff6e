import type { Operations } from "./operations.ts";

/**
 * connecting: no server has given the session an id yet. connected. suspended: the connection is lost or silent; the session may
 * still live or not. ended: final.
 */
export type SessionState = "connecting" | "connected" | "suspended" | "ended";

/**
 * A period in which the servers count this client as alive; ephemeral nodes depend on it. It ends when the servers say so, or when
 * the client closes. It also ends by this process's own monotonic clock before any server can have expired it, which makes it safe
 * to rely on: after that moment a call rejects and `live` is false, even if no timer has run yet because the process was stopped.
 * One server can mislead the client: cut off from its leader, a server answers by itself for up to syncLimit × tickTime, while the
 * leader may expire the session. The next holder's fence is larger in that case, too (docs/zookeeper.md).
 *
 * A session's operations are bound to this session: once it has ended they reject, and never continue in the next session.
 */
export interface Session extends Operations {
  /** 0n until a server has assigned an id. */
  readonly id: bigint;
  readonly state: SessionState;
  /** The timeout negotiated with the server; before that the requested one. */
  readonly timeoutMs: number;
  /** Aborts when the session ends; the reason is a ZooKeeperError (SESSION_EXPIRED, CLOSED, AUTH_FAILED). */
  readonly signal: AbortSignal;
  /** The session has an id and no server can have expired it yet, by the clock at the moment of the call. Also true while suspended. */
  readonly live: boolean;
  /** ms left until the client gives the session up, unless a server answers before; 0 when ended, Infinity while connecting. */
  readonly remainingMs: number;
  /**
   * If the service's data is behind (wiped or restored, or this server lags): a transaction number above all that any client can
   * have seen before, as far as this client can tell. Otherwise undefined.
   */
  readonly rewoundFrom: bigint | undefined;
  /**
   * True if its server has no quorum: reads are answered, perhaps with old data, and writes reject with NOT_READ_ONLY. The session
   * ends (SESSION_EXPIRED) once a server with a quorum is found. Always false without the option `readOnly`.
   */
  readonly readOnly: boolean;
  /** @returns a function that removes the listener. Listeners must not throw. */
  onState(listener: (state: SessionState) => void): () => void;
}

/** A client: keeps a connection open, and runs one session after another on it. */
export interface ZooKeeper extends Operations {
  /** The current session; when it ends, the next takes its place at once, before any listener is called. */
  readonly session: Session;
  /**
   * Resolves with the current session as soon as it has an id (it may be suspended again by then).
   * @throws CLOSED; ABORTED by the signal
   */
  established(signal?: AbortSignal): Promise<Session>;
  /**
   * Reports each state of the current session and of all later ones. @returns a function that removes the listener. Listeners
   * must not throw.
   */
  onState(listener: (state: SessionState, session: Session) => void): () => void;
  /** Reports each new session when it has an id. @returns a function that removes the listener. Listeners must not throw. */
  onSession(listener: (session: Session) => void): () => void;
  /**
   * Adds credentials to the current and all later connections.
   * @param scheme `digest` @param credentials `user:password`
   * @throws AUTH_FAILED
   */
  addAuth(scheme: string, credentials: string | Uint8Array): Promise<void>;
  /**
   * Replaces the servers of `connect`: later connections go to these. If the present server is not among them, the client leaves
   * it at once and resumes its session at another one. Names are compared as they are written.
   * @param servers as for `connect`; a chroot must be the client's own @throws CONNECT_STRING_INVALID, CLOSED
   */
  setServers(servers: string): void;
  /** Aborts when the client is closed. */
  readonly signal: AbortSignal;
  /**
   * Ends the session on the server, so that its ephemeral nodes go at once, as far as a server can be reached in a
   * second. Calls that still wait reject with CLOSED. Never rejects.
   */
  close(): Promise<void>;
}
