/**
 * The implementation of a session: its state machine, its calls and its deadline. docs/coordination/zookeeper.md contains the table of
 * states and events.
 */

import { ZooKeeperError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import { checkPath, withChroot } from "../base/paths.ts";
import { heardByMany } from "../base/signals.ts";
import { tell } from "../base/tell.ts";
import type { Connection, Credentials } from "../connection/connection.ts";
import { noCredentials } from "../connection/connection.ts";
import type { WatchOptions } from "../operations/operations.ts";
import type { Session, SessionState } from "../operations/session.ts";
import { aborted, Call, type Question } from "../requests/call.ts";
import type { Questions } from "../requests/questions.ts";
import { failMany } from "./fail-many.ts";
import { OperationsOf } from "./operations-of.ts";
import { WaitingCalls } from "./waiting-calls.ts";
import { PersistentWatch, Watches } from "./watches.ts";

/**
 * Returns by how many ms this process ends its session earlier than the servers would. The server that answered may die before it has
 * reported the client's request to the leader, which measures the timeout. The margin covers this delay: servers report once per half
 * tick, and a tick is at most half of the shortest timeout.
 */
export function marginMs(timeoutMs: number): number {
  return Math.min(timeoutMs / 4, 1_500);
}

const inDoubt = "it may have been carried out or not: look before doing it again";

export class SessionCore extends OperationsOf implements Session {
  timeoutMs: number;
  rewoundFrom: bigint | undefined;
  readOnly = false;
  credentials: Credentials = noCredentials;
  readonly watches: Watches;
  readonly #controller = new AbortController();
  #state: SessionState = "connecting";
  #connection: Connection | undefined;
  #renewedAt = 0;
  #seenOver = false;
  readonly #waiting = new WaitingCalls();
  #deadline: NodeJS.Timeout | undefined;
  readonly #listeners = new Set<(state: SessionState) => void>();

  constructor(timeoutMs: number, questions: Questions, chroot: string) {
    super(questions, chroot);
    this.timeoutMs = timeoutMs;
    this.watches = new Watches(chroot);
    heardByMany(this.signal);
  }

  protected override get target(): SessionCore {
    return this;
  }

  get id(): bigint {
    return this.credentials.id;
  }

  get state(): SessionState {
    return this.#state;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get live(): boolean {
    return this.id !== 0n && this.remainingMs > 0;
  }

  get remainingMs(): number {
    if (this.#state === "ended" || this.#seenOver) return 0;
    if (this.id === 0n) return Number.POSITIVE_INFINITY;
    const renewedAt = Math.max(this.#renewedAt, this.#connection?.renewedAt ?? 0);
    const left = renewedAt + this.timeoutMs - marginMs(this.timeoutMs) - performance.now();
    if (left > 0) return left;
    // Once a caller has seen the session as ended, a late answer must not make it live again. Otherwise a lock's holder would have stopped
    // its work, but its node would still block the lock.
    this.#seenOver = true;
    queueMicrotask(() => this.endIfOver());
    return 0;
  }

  onState(listener: (state: SessionState) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  ask<T>(question: Question<T>, signal: AbortSignal | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(aborted(question.what, question.path, signal));
      if (!this.#mayLive) this.endIfOver();
      // A lost connection that is not detached yet is not used: a write would reject with CONNECTION_LOSS although it was never sent.
      const connection = this.#state === "connected" && !this.#connection?.isLost ? this.#connection : undefined;
      const problem = this.#refusal(question, connection);
      if (problem) return reject(problem);
      const call = new Call(question, resolve, reject, signal);
      // If older calls are still waiting to be sent, this call is queued behind them.
      if (connection && this.#waiting.size === 0) return this.#send(connection, call);
      call.sentAt = performance.now();
      this.#waiting.add(call);
    });
  }

  #refusal({ what, path }: Question<unknown>, connection: Connection | undefined): ZooKeeperError | undefined {
    const over = this.#state === "ended" ? (this.signal.reason as ZooKeeperError) : connection?.closing;
    if (over) return new ZooKeeperError(over.code, `${what}: ${over.message}`, { path, hint: over.hint, cause: over });
    const requests = this.#waiting.size + (connection?.unanswered ?? 0);
    const bytes = this.#waiting.bytes + (connection?.unsentBytes ?? 0);
    if (requests < limits.maxWaitingRequests && bytes < limits.maxWaitingBytes) return undefined;
    return new ZooKeeperError("OVERLOADED", `${what}: ${requests} requests (${bytes} bytes) wait for the server`, {
      path,
      hint: "wait for answers before asking more",
    });
  }

  #send(connection: Connection, call: Call): void {
    if (call.settled) return;
    try {
      connection.send(call);
    } catch (error) {
      call.fail(error);
    }
  }

  /** Registers a persistent watch and requests it from the server; removes it again if the request fails. */
  async watchWith(path: string, { recursive = false, maxWaiting, signal }: WatchOptions): Promise<PersistentWatch> {
    const full = withChroot(this.chroot, path);
    this.endIfOver();
    // The server may have removed one-time watches on this path together with the persistent watch, so they fire as if they had seen a
    // change.
    const gone = () => this.watches.doubt(full);
    const forget = async () => {
      const rest = this.watches.removePersistent(full, watch);
      if (this.#state !== "connected") return;
      // No listener is left for the path. If the request is lost, its connection is lost too, and with it the watch.
      if (rest === "forget")
        await this.ask({ ...this.questions.removeWatches(path), read: gone }, undefined).catch(gone);
      if (rest !== "narrow") return;
      const read = () => this.watches.narrowed(full);
      // If the answer is lost, the mode is corrected when the next connection sets the watches again.
      await this.ask({ ...this.questions.addWatch(path, false), read }, undefined).catch(() => undefined);
    };
    const watch = new PersistentWatch(path, recursive, maxWaiting ?? limits.maxWaitingEvents, () => {
      signal?.removeEventListener("abort", close);
      return forget();
    });
    const close = () => void watch.close();
    checkPath(path);
    const question = this.questions.addWatch(path, this.watches.addPersistent(full, watch));
    try {
      await this.ask(question, signal);
    } catch (error) {
      void forget(); // the request may have been sent before it was aborted
      watch.finish(undefined);
      throw error;
    }
    if (signal) heardByMany(signal).addEventListener("abort", close, { once: true });
    return watch;
  }

  /** Uses this connection from now on, and sends the waiting calls first, in order. */
  attach(connection: Connection): void {
    this.endIfOver();
    if (this.#state === "ended") return;
    const { id, password, timeoutMs, readOnly } = connection.welcome;
    this.readOnly = readOnly;
    this.credentials = { id, password };
    this.timeoutMs = timeoutMs;
    this.#connection = connection;
    this.#renewedAt = connection.renewedAt;
    this.#state = "connected";
    this.#sendWaiting(connection);
    this.#watchDeadline();
    this.#tell();
  }

  /** Sends the waiting calls in slices, like `failMany`, because sending 200,000 calls at once would block the event loop. */
  #sendWaiting(connection: Connection): void {
    const untilMs = performance.now() + limits.sliceMs;
    while (this.#connection === connection && this.#state === "connected" && !connection.closing) {
      const call = this.#waiting.shift();
      if (!call) return;
      this.#send(connection, call);
      if (performance.now() < untilMs) continue;
      setImmediate(() => this.#sendWaiting(connection));
      return;
    }
  }

  /**
   * Records that the connection is lost. Unanswered reads wait for the next connection. Unanswered writes reject, because it is unknown
   * whether they were executed.
   */
  detach(reason: Error): void {
    const connection = this.#connection;
    if (!connection || this.#state === "ended") return;
    this.#renewedAt = Math.max(this.#renewedAt, connection.renewedAt);
    this.#connection = undefined;
    this.#state = "suspended";
    const unanswered = connection.takeUnanswered().filter((call) => !call.settled);
    for (const call of unanswered) if (call.question.repeatable) this.#waiting.add(call);
    const writes = unanswered.filter((call) => !call.question.repeatable);
    failMany(writes, ({ question: { what, path } }) => {
      const text = `${what}: the connection to ${connection.host.name} was lost`;
      return new ZooKeeperError("CONNECTION_LOSS", text, { path, hint: inDoubt, cause: reason });
    });
    this.#tell();
  }

  /** Ends the session: rejects its calls, ends its watches and aborts its signal. */
  end(reason: ZooKeeperError): void {
    if (this.#state === "ended") return;
    const unanswered = this.#connection?.takeUnanswered() ?? [];
    const sent = unanswered.length;
    const calls = unanswered.concat(this.#waiting.take());
    this.#state = "ended";
    clearTimeout(this.#deadline);
    this.#connection?.end(reason);
    failMany(calls, ({ question: { what, path, repeatable } }, index) => {
      const hint = repeatable || index >= sent ? reason.hint : inDoubt;
      return new ZooKeeperError(reason.code, `${what}: ${reason.message}`, { path, hint, cause: reason });
    });
    // The client's listener was registered first, so that later listeners already find the next session in the client.
    this.#controller.abort(reason);
    this.watches.end(reason);
    this.#tell();
  }

  /**
   * Rejects calls that have waited since before `time` (monotonic ms). Before the session has an id, a waiting call has no other time
   * limit.
   */
  failWaitingSince(time: number, problem: () => string): void {
    const late = this.#waiting.take(time);
    if (late.length === 0) return;
    const why = problem();
    const hint = "check that the servers run and can be reached";
    failMany(
      late,
      ({ question: { what, path } }) => new ZooKeeperError("UNREACHABLE", `${what}: ${why}`, { path, hint }),
    );
  }

  #watchDeadline(): void {
    clearTimeout(this.#deadline);
    const leftMs = Math.ceil(this.remainingMs);
    const dueAt = performance.now() + leftMs;
    this.#deadline = setTimeout(async () => {
      if (performance.now() - dueAt > limits.lateTimerMs) await this.#askAfterPause();
      this.endIfOver();
      if (this.#state !== "ended") this.#watchDeadline();
    }, leftMs);
  }

  /**
   * True if the connected server may still have the session and no caller has seen it as ended, so that it is useful to ask the server.
   */
  get #mayLive(): boolean {
    const { renewedAt } = this.#connection ?? {};
    return renewedAt !== undefined && !this.#seenOver && performance.now() < renewedAt + this.timeoutMs;
  }

  /**
   * Called if this process was stopped until the session had ended by its clock. The servers may still have the session, because they end
   * it later by the margin. The connection gets a quarter of the margin to prove that the session exists; until then `live` is false.
   */
  async #askAfterPause(): Promise<void> {
    const connection = this.#connection;
    if (!connection || !this.#mayLive) return;
    let late: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      late = setTimeout(resolve, marginMs(this.timeoutMs) / 4);
    });
    // Two pings, because the answer to the first one may belong to a ping from before the pause.
    const asked = connection.ping().then(() => connection.ping());
    await Promise.race([asked, patience]);
    clearTimeout(late);
  }

  /**
   * Ends the session if it has expired by the clock. Timers fire late after a stop of the process, so a caller may notice the expiry before
   * the timer.
   */
  endIfOver(): void {
    if (this.#state === "ended" || this.id === 0n || this.remainingMs > 0) return;
    this.end(
      new ZooKeeperError("SESSION_EXPIRED", `no server answered within the session's ${this.timeoutMs} ms`, {
        hint: "use the client's new session; ephemeral nodes are gone, or go before it begins",
      }),
    );
  }

  #tell(): void {
    const state = this.#state;
    for (const listener of [...this.#listeners]) tell(listener, state);
  }
}
