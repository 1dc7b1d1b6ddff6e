/**
 * The client keeps a connection open and runs one session after another on it.
 *
 * A session that this process has ended by its own clock may still exist at the servers, with its ephemeral nodes. Therefore the client
 * resumes and closes ("buries") the old session before it begins the next one, so that a new session does not meet ephemeral nodes of
 * its predecessor. The client remembers only the last few sessions that expired (`maxUnburied`).
 */
import { setTimeout as sleep } from "node:timers/promises";
import { isZooKeeperError, ZooKeeperError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import { heardByMany } from "../base/signals.ts";
import { tell } from "../base/tell.ts";
import { parseConnectString } from "../connection/connect-string.ts";
import { Connection, type Credentials, noCredentials, type Progress, Refused } from "../connection/connection.ts";
import { askWord } from "../connection/four-letter-word.ts";
import { Hosts, maxConnectMs, nameOf, noLongerListed } from "../connection/hosts.ts";
import { answerChallenge, parseChallenge, saslStep } from "../connection/sasl.ts";
import type { Session, SessionState, ZooKeeper } from "../operations/session.ts";
import { aborted } from "../requests/call.ts";
import { Questions } from "../requests/questions.ts";
import { OperationsOf } from "../session/operations-of.ts";
import { SessionCore } from "../session/session-core.ts";
import { askOn, closeSession, setWatchesAgain } from "./aside.ts";
import { type ConnectOptions, checkOptions } from "./options.ts";

/**
 * @param servers `zk1:2181,zk2:2181,zk3:2181/chroot`
 * @returns a client with a session
 * @throws UNREACHABLE when no server accepts a session in time or no server's certificate is trusted, AUTH_FAILED,
 * CONNECT_STRING_INVALID, PATH_INVALID (the chroot), OPTION_INVALID, ABORTED; with `createChroot` also the errors of `create`
 */
export async function connect(servers: string, options: ConnectOptions = {}): Promise<ZooKeeper> {
  const client = new Client(servers, options);
  const { connectTimeoutMs } = checkOptions(options);
  const late = AbortSignal.timeout(connectTimeoutMs);
  try {
    const signal = options.signal ? AbortSignal.any([options.signal, late]) : late;
    await client.established(signal);
    if (options.createChroot) await client.createChroot(signal);
    return client;
  } catch (error) {
    await client.close();
    if (!late.aborted || options.signal?.aborted) throw error;
    throw new ZooKeeperError(
      "UNREACHABLE",
      `no server of ${servers} took us in within ${connectTimeoutMs} ms: ${client.trouble}`,
      {
        hint: "check that the servers run, have a quorum and can be reached",
        cause: error,
      },
    );
  }
}

class Client extends OperationsOf implements ZooKeeper {
  readonly #options: ReturnType<typeof checkOptions>;
  readonly #hosts: Hosts;
  readonly #auth: { scheme: string; credentials: Uint8Array }[];
  readonly #progress: Progress = { zxid: 0n };
  readonly #controller = new AbortController();
  readonly #listeners = new Set<(session: Session) => void>();
  readonly #stateListeners = new Set<(state: SessionState, session: Session) => void>();
  #session: SessionCore;
  #connection: Connection | undefined;
  /** Expired sessions that may still exist at the servers. */
  #unburied: Credentials[] = [];
  #servedAt = performance.now();
  /** Transaction number for `Session.rewoundFrom`; see `#forgetProgress`. */
  #rewoundFrom: bigint | undefined;
  #forgotten: bigint | undefined;
  #closing: Promise<void> | undefined;
  /** True once any server has accepted a session of this client. */
  #wasServed = false;
  /** True while every failure of the present round through the hosts was a rejected certificate. */
  #onlyCertificates = true;
  /** Description of the last connection problem, for messages. */
  trouble = "no attempt was made";

  constructor(servers: string, options: ConnectOptions) {
    const { hosts, chroot } = parseConnectString(servers);
    const checked = checkOptions(options);
    super(new Questions(chroot, checked.maxRequestBytes), chroot);
    this.#options = checked;
    this.#hosts = new Hosts(hosts, checked.random, checked.resolve);
    this.#auth = this.#options.auth.map(({ scheme, credentials }) => ({
      scheme,
      credentials: Buffer.from(credentials),
    }));
    heardByMany(this.signal);
    this.#session = this.#newSession();
    void this.#keepUp();
  }

  protected override get target(): SessionCore {
    return this.#session;
  }

  async createChroot(signal: AbortSignal): Promise<void> {
    const rooted = new Questions("");
    const names = this.chroot.split("/").slice(1);
    for (let depth = 1; depth <= names.length; depth++) {
      const path = `/${names.slice(0, depth).join("/")}`;
      for (let there = false; !there; ) {
        there = (await this.target.ask(rooted.exists(path, false), signal)) !== undefined;
        if (there) break;
        // Another client may have created the chroot, or the answer may be lost; the chroot's existence is checked again below.
        await this.target.ask(rooted.create(path, "", {}), signal).catch((error: unknown) => {
          if (!isZooKeeperError(error, "NODE_EXISTS", "CONNECTION_LOSS")) throw error;
        });
      }
    }
  }

  get session(): SessionCore {
    return this.#session;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  onSession(listener: (session: Session) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  onState(listener: (state: SessionState, session: Session) => void): () => void {
    this.#stateListeners.add(listener);
    return () => this.#stateListeners.delete(listener);
  }

  established(signal?: AbortSignal): Promise<Session> {
    return new Promise((resolve, reject) => {
      if (this.signal.aborted) return reject(this.signal.reason);
      if (signal?.aborted) return reject(aborted("established", "", signal));
      // After a caller has seen the session as expired, a late answer must not make it live again, because callers wait for the next one.
      this.#session.endIfOver();
      if (this.#session.live) return resolve(this.#session);
      const stop = this.onSession((session) => {
        done();
        resolve(session);
      });
      const closed = () => {
        done();
        reject(this.signal.reason);
      };
      const givenUp = () => {
        done();
        reject(aborted("established", "", signal as AbortSignal));
      };
      const done = () => {
        stop();
        this.signal.removeEventListener("abort", closed);
        signal?.removeEventListener("abort", givenUp);
      };
      this.signal.addEventListener("abort", closed, { once: true });
      if (signal) heardByMany(signal).addEventListener("abort", givenUp, { once: true });
    });
  }

  async addAuth(scheme: string, credentials: string | Uint8Array): Promise<void> {
    if (this.signal.aborted) throw this.signal.reason;
    const auth = { scheme, credentials: Buffer.from(credentials) };
    this.#auth.push(auth);
    const connection = this.#connection;
    if (!connection) return;
    await new Promise<void>((resolve, reject) => {
      connection.sendAuth(scheme, auth.credentials, (error) => {
        // The promise also resolves if the connection was lost, because the next connection sends the credentials again.
        if (!isZooKeeperError(error, "AUTH_FAILED", "CLOSED")) return resolve();
        this.#auth.splice(this.#auth.indexOf(auth), 1);
        reject(error);
      });
    });
  }

  setServers(servers: string): void {
    if (this.signal.aborted) throw this.signal.reason;
    const { hosts, chroot } = parseConnectString(servers);
    if (chroot !== "" && chroot !== this.chroot) {
      throw new ZooKeeperError("CONNECT_STRING_INVALID", `setServers: ${chroot} is not the client's chroot`, {
        hint: "leave it out: a client keeps its chroot",
      });
    }
    this.#hosts.replace(hosts);
    const connection = this.#connection;
    if (connection && !this.#hosts.has(connection.host)) connection.end(noLongerListed(connection.host));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const reason = new ZooKeeperError("CLOSED", "the client has been closed", { hint: "connect anew" });
    const patience = AbortSignal.timeout(limits.closeMs);
    const session = this.#session;
    while (!patience.aborted && (session.state === "suspended" || session.state === "connected")) {
      const connection = session.state === "connected" ? this.#connection : undefined;
      if (connection) {
        const closed = closeSession(connection, patience);
        // Without `closing`, the client would report the server's answer, SESSION_EXPIRED, although the end was requested here.
        connection.closing = reason;
        if (await closed) break;
      }
      // The connection is lost, perhaps without the client having noticed yet. The loop continues at the session's next change of state.
      await new Promise<void>((resolve) => {
        const stop = session.onState(done);
        function done() {
          stop();
          patience.removeEventListener("abort", done);
          resolve();
        }
        patience.addEventListener("abort", done, { once: true });
        if (patience.aborted) done();
      });
    }
    this.#controller.abort(reason);
    this.#session.end(reason);
    this.#connection?.end(reason);
  }

  #newSession(): SessionCore {
    const session = new SessionCore(this.#options.sessionTimeoutMs, this.questions, this.chroot);
    session.onState((state) => {
      for (const listener of [...this.#stateListeners]) tell(listener, state, session);
    });
    // This is the first listener for the session's end, so that later listeners already find the next session in `#session`.
    session.signal.addEventListener("abort", () => {
      if (!this.signal.aborted) this.#session = this.#newSession();
      if (session.id !== 0n && session.signal.reason?.code === "SESSION_EXPIRED") {
        this.#unburied = [...this.#unburied, session.credentials].slice(-limits.maxUnburied);
      }
    });
    return session;
  }

  /** Opens one connection after another until the client is closed. */
  async #keepUp(): Promise<void> {
    while (!this.signal.aborted) {
      const session = this.#session;
      const waitMs = await this.#serve(session).catch((error: Error) => this.#failed(session, error));
      // The wait is limited to an eighth of the session timeout, so that a live session can be resumed in time.
      const soonMs = Math.min(waitMs, this.#session.timeoutMs / 8);
      if (soonMs === 0) continue;
      const rest = sleep(soonMs, undefined, { signal: this.signal }).catch(() => undefined); // rejects if the client is closed
      await this.#whileCallsWait(this.#session, rest);
    }
  }

  /**
   * Connects the session and serves it until the connection is lost. @returns how long to wait (ms) before the next connection
   * @throws if no connection could be opened, or if it was lost or a login failed before it served the session
   */
  async #serve(session: SessionCore): Promise<number> {
    const again = session.id !== 0n;
    const connectMs = maxConnectMs(session.timeoutMs, this.#hosts.count, !again, this.#hosts.failedRounds);
    const host = await this.#whileCallsWait(session, this.#hosts.take(connectMs, session.signal));
    const open = (credentials: Credentials) =>
      this.#whileCallsWait(
        session,
        Connection.open({
          host,
          tls: this.#options.tls,
          credentials,
          sessionTimeoutMs: this.#options.sessionTimeoutMs,
          readOnly: this.#options.readOnly && (!again || session.readOnly),
          connectMs,
          maxReplyBytes: this.#options.maxReplyBytes,
          maxRequestBytes: this.#options.maxRequestBytes,
          progress: this.#progress,
          signal: session.signal,
          notified: (type, path) => session.watches.deliver(type, path),
        }),
      );
    await this.#bury(open);
    // The zxid is read before the logins, whose answers raise it without delivering events. Setting the watches again delivers the events
    // since this zxid.
    const seen = this.#progress.zxid;
    const connection = await open(again ? session.credentials : noCredentials);
    // Until the session is attached to the connection, only this listener ends the connection when the session ends.
    const over = () => connection.end(session.signal.reason);
    session.signal.addEventListener("abort", over);
    if (session.signal.aborted) over();
    try {
      if (connection.welcome.timeoutMs <= 0) {
        session.end(
          new ZooKeeperError("SESSION_EXPIRED", "the servers have ended the session", {
            hint: "use the client's new session; ephemeral nodes are gone",
          }),
        );
        return 0;
      }
      this.#wasServed = true;
      await this.#logIn(connection);
      await this.#noticeRewind(connection, session);
      // The loop continues, because credentials may be added while others are being sent.
      for (let told = 0; told < this.#auth.length; ) told = await this.#sendAuth(connection, told);
      if (connection.isLost) throw await connection.lost;
      if (!this.#hosts.has(host)) throw noLongerListed(host);
      this.#connection = connection;
      const began = performance.now();
      this.#servedAt = began;
      if (again) setWatchesAgain(connection, session, seen);
      session.attach(connection);
      if (!again) for (const listener of [...this.#listeners]) tell(listener, session);
      if (connection.welcome.readOnly) void this.#seekQuorum(connection, session);
      const reason = await connection.lost;
      this.trouble = `${nameOf(host)}: ${reason.message}`;
      if (!this.signal.aborted) tell(this.#options.log, `connection to ${this.trouble}`);
      // A server that accepts a session and drops the connection soon afterwards counts as failed.
      if (performance.now() - began < limits.steadyMs) return Math.min(this.#hosts.failed(), limits.steadyMs);
      this.#hosts.served();
      return 0;
    } finally {
      session.signal.removeEventListener("abort", over);
      connection.end(new Error("no longer used"));
      this.#connection = undefined;
      session.detach(await connection.lost);
    }
  }

  /**
   * Searches for a server with a quorum while the present server has none. When one is found, the session is ended, and the next session
   * begins at that server.
   */
  async #seekQuorum(connection: Connection, session: SessionCore): Promise<void> {
    tell(this.#options.log, `${nameOf(connection.host)} has no quorum: it answers reads only`);
    const over = session.signal;
    for (let waitMs: number = limits.firstQuorumLookMs; ; waitMs = Math.min(2 * waitMs, limits.maxQuorumLookMs)) {
      await sleep(waitMs, undefined, { signal: over, ref: false }).catch(() => undefined); // rejects when the session has ended
      if (over.aborted || connection.isLost) return;
      try {
        const server = await this.#hosts.take(limits.maxConnectMs, over);
        const options = { tls: this.#options.tls, limitMs: limits.maxConnectMs, signal: over };
        if ((await askWord(server, "isro", options)) !== "rw" || connection.isLost) continue;
        this.#hosts.putFirst(server);
        const hint = "use the client's new session";
        session.end(new ZooKeeperError("SESSION_EXPIRED", `${nameOf(server)} has a quorum`, { hint }));
      } catch (error) {
        this.trouble = `isro: ${(error as Error).message}`; // the loop tries the next server
      }
    }
  }

  #failed(session: SessionCore, error: Error): number {
    if (error instanceof ZooKeeperError && error.code === "AUTH_FAILED") {
      this.#controller.abort(error);
      session.end(error);
      return 0;
    }
    this.trouble = error.message || String(error);
    if (!this.signal.aborted && session.state !== "ended") tell(this.#options.log, `connecting: ${this.trouble}`);
    const silentMs = performance.now() - this.#servedAt;
    this.#failWaiting(session);
    const isSilent = session.id === 0n && silentMs > this.#options.sessionTimeoutMs;
    if (error instanceof Refused && isSilent) this.#forgetProgress();
    this.#onlyCertificates &&= certificateErrors.test((error as NodeJS.ErrnoException).code ?? "");
    const waitMs = this.#hosts.failed();
    if (waitMs === 0) return 0;
    if (this.#onlyCertificates && !this.#wasServed) this.#untrusted(session, error);
    this.#onlyCertificates = true;
    return waitMs;
  }

  /** Closes a client that has had no session yet because it trusts no server's certificate: waiting would not help. */
  #untrusted(session: SessionCore, cause: Error): void {
    const error = new ZooKeeperError("UNREACHABLE", `no server's certificate is trusted: ${this.trouble}`, {
      hint: "give the certificate of the authority that signed the servers' as tls.ca, and the names that those bear",
      cause,
    });
    this.#controller.abort(error);
    session.end(error);
  }

  /** Awaits `work` and meanwhile rejects calls that have waited too long for a session. @returns the result of `work` */
  async #whileCallsWait<T>(session: SessionCore, work: Promise<T>): Promise<T> {
    const looking = setInterval(() => this.#failWaiting(session), limits.waitingLookMs);
    try {
      return await work;
    } finally {
      clearInterval(looking);
    }
  }

  /** Rejects calls that have waited for a session for longer than the session timeout. */
  #failWaiting(session: SessionCore): void {
    if (session.id !== 0n) return;
    const { sessionTimeoutMs } = this.#options;
    session.failWaitingSince(
      performance.now() - sessionTimeoutMs,
      () => `no server took us in within ${sessionTimeoutMs} ms: ${this.trouble}`,
    );
  }

  async #bury(open: (credentials: Credentials) => Promise<Connection>): Promise<void> {
    for (let old = this.#unburied[0]; old; old = this.#unburied[0]) {
      const connection = await open(old);
      try {
        if (connection.welcome.timeoutMs > 0) {
          await this.#logIn(connection);
          // Resuming the old session has extended its timeout, so the client waits until the server confirms its end.
          const told = await closeSession(connection, AbortSignal.timeout(limits.closeMs));
          if (!told) throw new Error("no answer to the end of the previous session");
        }
        this.#unburied.shift();
      } finally {
        connection.end(new Error("no longer used"));
      }
    }
  }

  async #logIn(connection: Connection): Promise<void> {
    const { sasl } = this.#options;
    if (!sasl) return;
    const ask = (token: Uint8Array) =>
      askOn(connection, saslStep(token)).catch((error: unknown) => {
        // A server that requires a login returns this code for wrong credentials; other servers return AUTH_FAILED.
        if (!isZooKeeperError(error, "SESSION_CLOSED_REQUIRE_SASL_AUTH")) throw error;
        throw new ZooKeeperError("AUTH_FAILED", "SASL: the server refuses the credentials", {
          hint: "check user and password",
          cause: error,
        });
      });
    const { answer, proof } = answerChallenge(sasl, await ask(Buffer.alloc(0)));
    const last = parseChallenge((await ask(answer)).toString("utf8"));
    if (last.rspauth !== proof) {
      throw new ZooKeeperError("AUTH_FAILED", "SASL: the server does not know the password itself", {
        hint: "check that these are the right servers",
      });
    }
  }

  /**
   * @param from index of the first credentials to send @returns the index after the last credentials sent
   * @throws AUTH_FAILED, or the reason why the connection was lost
   */
  async #sendAuth(connection: Connection, from: number): Promise<number> {
    const sent = this.#auth.slice(from);
    const told = sent.map(
      ({ scheme, credentials }) =>
        new Promise<Error | undefined>((resolve) => connection.sendAuth(scheme, credentials, resolve)),
    );
    for (const error of await Promise.all(told)) if (error) throw error;
    return from + sent.length;
  }

  /**
   * Forgets the last transaction number that the client has seen. Servers refuse a client that has seen a newer transaction than they
   * have. If servers refuse the client for longer than the session timeout, their data may have been wiped or restored, or they have no
   * quorum, which looks the same. The next session begins without the number, and sets `rewoundFrom` if the servers' data is older.
   */
  #forgetProgress(): void {
    if (this.#progress.zxid === 0n) return;
    if (this.#progress.zxid > (this.#forgotten ?? 0n)) this.#forgotten = this.#progress.zxid;
    this.#progress.zxid = 0n;
  }

  async #noticeRewind(connection: Connection, session: SessionCore): Promise<void> {
    if (this.#forgotten !== undefined && session.id === 0n) {
      await connection.ping();
      if (connection.isLost) return;
      if (this.#progress.zxid < this.#forgotten) {
        this.#rewoundFrom = (this.#rewoundFrom ?? 0n) + this.#forgotten + unseenTransactions;
      }
      this.#forgotten = undefined;
    }
    session.rewoundFrom = this.#rewoundFrom;
  }
}

/**
 * Upper bound that this client assumes for the number of transactions that other clients saw after its own last one, before the data was
 * lost. It is the size of one leader's epoch: the epoch is the upper half of the 64-bit transaction number.
 */
const unseenTransactions = 1n << 32n;

/** Error codes of Node's TLS for a rejected certificate. */
const certificateErrors =
  /^(UNABLE_TO_|DEPTH_ZERO_SELF_SIGNED|SELF_SIGNED_CERT|CERT_|CRL_|ERR_TLS_CERT_|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE)/;
