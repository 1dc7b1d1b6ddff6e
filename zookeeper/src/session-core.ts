/**
 * The session behind the interface: its state machine, its calls, its deadline. docs/zookeeper.md has the table of states
 * and events.
 */
import { aborted, Call, type Question } from "./call.ts";
import type { Connection, Credentials } from "./connection.ts";
import { noCredentials } from "./connection.ts";
import { ZooKeeperError } from "./errors.ts";
import { limits } from "./limits.ts";
import type { WatchOptions } from "./operations.ts";
import { OperationsOf } from "./operations-of.ts";
import { withChroot } from "./paths.ts";
import type { Questions } from "./questions.ts";
import type { Session, SessionState } from "./session.ts";
import { heardByMany } from "./signals.ts";
import { tell } from "./tell.ts";
import { PersistentWatch, Watches } from "./watches.ts";

/**
 * How much earlier than the servers this process ends its session. The server that answered us may die before it told
 * the leader, who counts the time: it tells once in half a tick, and a tick is at most half of the shortest timeout.
 */
export function marginMs(timeoutMs: number): number {
  return Math.min(timeoutMs / 4, 1_500);
}

const inDoubt = "it may have been carried out or not: look before doing it again";

export class SessionCore extends OperationsOf implements Session {
  timeoutMs: number;
  rewoundFrom: bigint | undefined;
  credentials: Credentials = noCredentials;
  readonly watches: Watches;
  readonly #controller = new AbortController();
  #state: SessionState = "connecting";
  #connection: Connection | undefined;
  #renewedAt = 0;
  #seenOver = false;
  /** Calls to be sent on the next connection, oldest first. */
  #waiting: Call[] = [];
  #waitingBytes = 0;
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
    // A late answer must not bring it to life again for one who was told that it is over: a lock's holder would have
    // gone, and its node would stay.
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
      this.endIfOver();
      const connection = this.#state === "connected" ? this.#connection : undefined;
      const problem = this.#refusal(question, connection);
      if (problem) return reject(problem);
      const call = new Call(question, resolve, reject, signal);
      if (connection) return this.#send(connection, call);
      call.sentAt = performance.now();
      call.bytes = question.dataBytes ?? 0;
      this.#waitingBytes += call.bytes;
      this.#waiting.push(call);
    });
  }

  #refusal({ what, path }: Question<unknown>, connection: Connection | undefined): ZooKeeperError | undefined {
    const over = this.#state === "ended" ? (this.signal.reason as ZooKeeperError) : connection?.closing;
    if (over) return new ZooKeeperError(over.code, `${what}: ${over.message}`, { path, hint: over.hint, cause: over });
    const requests = connection ? connection.unanswered : this.#waiting.length;
    const bytes = connection ? connection.unsentBytes : this.#waitingBytes;
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

  /** Registers the watch, then asks the server for it; taken back when that fails. */
  async watchWith(path: string, { recursive = false, maxWaiting, signal }: WatchOptions): Promise<PersistentWatch> {
    const question = this.questions.addWatch(path, recursive);
    const full = withChroot(this.chroot, path);
    this.endIfOver();
    this.watches.checkMode(full, recursive);
    // What is answered before the removal may be a read that was asked before the watch: its own watch went as well.
    const gone = () => this.watches.doubt(full);
    const forget = async () => {
      if (this.watches.removePersistent(full, watch) && this.#state === "connected") {
        // Nobody is left to tell: a server that does not answer forgets the watch with the connection.
        await this.ask({ ...this.questions.removeWatches(path), read: gone }, undefined).catch(gone);
      }
    };
    const watch = new PersistentWatch(path, maxWaiting ?? limits.maxWaitingEvents, () => {
      signal?.removeEventListener("abort", close);
      return forget();
    });
    const close = () => void watch.close();
    this.watches.addPersistent(full, recursive, watch);
    try {
      await this.ask(question, signal);
    } catch (error) {
      void forget(); // when it was given up, the server may have been asked already
      watch.finish(undefined);
      throw error;
    }
    if (signal) heardByMany(signal).addEventListener("abort", close, { once: true });
    return watch;
  }

  /** From now on calls go through the connection; those that waited first, in order. */
  attach(connection: Connection): void {
    this.endIfOver();
    if (this.#state === "ended") return;
    const { id, password, timeoutMs } = connection.welcome;
    this.credentials = { id, password };
    this.timeoutMs = timeoutMs;
    this.#connection = connection;
    this.#renewedAt = connection.renewedAt;
    this.#state = "connected";
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    for (const call of waiting) this.#send(connection, call);
    this.#watchDeadline();
    this.#tell();
  }

  /** The connection is lost. Reads without an answer wait for the next; for everything else the outcome is unknown. */
  detach(reason: Error): void {
    const connection = this.#connection;
    if (!connection || this.#state === "ended") return;
    this.#renewedAt = Math.max(this.#renewedAt, connection.renewedAt);
    this.#connection = undefined;
    this.#state = "suspended";
    const unanswered = connection.takeUnanswered().filter((call) => !call.settled);
    this.#waiting = unanswered.filter((call) => call.question.repeatable);
    for (const call of unanswered) {
      if (call.question.repeatable) continue;
      const { what, path } = call.question;
      call.fail(
        new ZooKeeperError("CONNECTION_LOSS", `${what}: the connection to ${connection.host.host} was lost`, {
          path,
          hint: inDoubt,
          cause: reason,
        }),
      );
    }
    this.#tell();
  }

  /** Everything that hangs from the session ends: calls, watches, and what listens to the signal. */
  end(reason: ZooKeeperError): void {
    if (this.#state === "ended") return;
    const unanswered = this.#connection?.takeUnanswered() ?? [];
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#state = "ended";
    clearTimeout(this.#deadline);
    this.#connection?.end(reason);
    const fail = (call: Call, hint: string) => {
      const { what, path } = call.question;
      call.fail(new ZooKeeperError(reason.code, `${what}: ${reason.message}`, { path, hint, cause: reason }));
    };
    for (const call of unanswered) fail(call, call.question.repeatable ? reason.hint : inDoubt);
    for (const call of waiting) fail(call, reason.hint);
    // First of all the client, which listens to the signal: who hears of the end finds the next session there.
    this.#controller.abort(reason);
    this.watches.end(reason);
    this.#tell();
  }

  /** Before there is a session nothing else ends the waiting. */
  failWaitingSince(time: number, problem: () => string): void {
    while (this.#waiting[0] && this.#waiting[0].sentAt <= time) {
      const call = this.#waiting.shift() as Call;
      this.#waitingBytes -= call.bytes;
      const { what, path } = call.question;
      const hint = "check that the servers run and can be reached";
      call.fail(new ZooKeeperError("UNREACHABLE", `${what}: ${problem()}`, { path, hint }));
    }
  }

  #watchDeadline(): void {
    clearTimeout(this.#deadline);
    this.#deadline = setTimeout(() => {
      this.endIfOver();
      if (this.#state !== "ended") this.#watchDeadline();
    }, Math.ceil(this.remainingMs));
  }

  /** Timers of a process that was stopped come late; whoever asks first finds out. */
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
