/**
 * A leader selector. The participants at a path form a queue, and the first one leads while its `takeLeadership` callback runs. It is
 * compatible with Java Curator's LeaderSelector on the same path: each participant is an ephemeral node
 * `<path>/_c_<uuid>-lock-<number>` with the participant's id as data.
 *
 * The callback's signal aborts when the callback must stop: the connection is lost or silent, the session has ended,
 * `interruptLeadership` was called or the selector closes. The selector leaves the queue, and joins it again, only after the callback has
 * settled, so one selector never runs its callback twice at once. A callback that continues after its signal has aborted runs
 * concurrently with the next leader's; then only the fence prevents damage.
 */

import { inspect } from "node:util";
import { isZooKeeperError, ZooKeeperError } from "../../base/errors.ts";
import { checkNames } from "../../base/options.ts";
import { checkPath } from "../../base/paths.ts";
import type { Acl } from "../../operations/acl.ts";
import type { CallOptions } from "../../operations/operations.ts";
import type { ZooKeeper } from "../../operations/session.ts";
import { follow, isPassing } from "../base/follow.ts";
import { Listeners } from "../base/listeners.ts";
import type { Held } from "../locks/hold.ts";
import { Mutex } from "../locks/mutex.ts";
import type { Leadership } from "./latch.ts";
import { leaderOf, type Participant, participantsOf } from "./participants.ts";

const marker = "lock-";

export interface SelectorOptions {
  /** The participant's name, which other participants can read; default "". */
  readonly id?: string;
  /** If true, joins the queue again after each turn, until the selector is closed. Default: one turn for each `run`. */
  readonly autoRequeue?: boolean;
  /** The ACL of the participant's node and of created parents. Default: every client has all permissions. */
  readonly acl?: readonly Acl[];
}

/** Listeners must not throw: an error that a listener throws becomes an uncaught exception. */
export interface SelectorListener {
  /**
   * Called when an operation failed and will be retried. With `autoRequeue`, also called with an error of `takeLeadership`; without any
   * such listener, that error becomes a process warning.
   */
  trouble?(error: unknown): void;
}

const optionNames: ReadonlySet<string> = new Set<keyof SelectorOptions>(["id", "autoRequeue", "acl"]);

export class LeaderSelector {
  readonly path: string;
  readonly id: string;
  readonly #zk: ZooKeeper;
  readonly #mutex: Mutex;
  readonly #takeLeadership: (leadership: Leadership) => unknown;
  readonly #autoRequeue: boolean;
  readonly #closing = new AbortController();
  readonly #listeners = new Listeners<SelectorListener>();
  #leading: { readonly held: Held; readonly end: AbortController } | undefined;
  #running: Promise<void> | undefined;

  /**
   * @param takeLeadership runs while this participant leads. Leadership ends when its promise settles, which should be soon after its
   * signal aborts. A rejection because of that signal does not count as an error.
   * @throws PATH_INVALID, OPTION_INVALID
   */
  constructor(
    zk: ZooKeeper,
    path: string,
    takeLeadership: (leadership: Leadership) => unknown,
    options: SelectorOptions = {},
  ) {
    checkPath(path);
    checkNames(`the selector at ${path}`, path, options, optionNames);
    const { id = "", autoRequeue = false, acl } = options;
    this.#zk = zk;
    this.path = path;
    this.id = id;
    this.#takeLeadership = takeLeadership;
    this.#autoRequeue = autoRequeue;
    this.#mutex = new Mutex(zk, path, { data: id, acl });
  }

  /**
   * Joins the queue and leads when its turn comes: once, or repeatedly with `autoRequeue`. (Curator: start, requeue.) During a run, another
   * call returns the same promise. Without `autoRequeue`, resolves when `takeLeadership` has settled and the node is deleted. Also resolves
   * when the selector or its client is closed while the selector waits for its turn; with `autoRequeue`, only such a close resolves it.
   * @throws CLOSED; the error of `takeLeadership`, without `autoRequeue`; the error that prevents joining or leaving the queue, such as
   * NO_AUTH
   */
  run(): Promise<void> {
    if (this.#closing.signal.aborted) {
      const options = { path: this.path, hint: "make a new selector" };
      return Promise.reject(new ZooKeeperError("CLOSED", `the selector at ${this.path} has been closed`, options));
    }
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /**
   * True if this participant leads, by the clock at the time of the call. False while the connection is suspended, and after the turn's
   * signal has aborted.
   */
  get hasLeadership(): boolean {
    const leading = this.#leading;
    return leading !== undefined && !leading.end.signal.aborted && leads(leading.held);
  }

  /** Aborts the signal of the running turn. @returns false if no turn is running, or if its signal has already aborted */
  interruptLeadership(): boolean {
    return this.#stop("it was interrupted");
  }

  /** @returns a function that removes the listener */
  listen(listener: SelectorListener): () => void {
    return this.#listeners.add(listener);
  }

  /** Reads all participants of all programs in the order of the queue, the leader first. */
  participants(options?: CallOptions): Promise<Participant[]> {
    return participantsOf(this.#zk, this.path, marker, options);
  }

  /** Reads the first participant of the queue; undefined if the queue is empty. */
  leader(options?: CallOptions): Promise<Participant | undefined> {
    return leaderOf(this.#zk, this.path, marker, options);
  }

  /**
   * Leaves the queue; aborts the signal of a running turn. Resolves when the turn has ended and the participant's node is deleted, so it
   * must not be awaited inside `takeLeadership`. Never rejects.
   */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#stop("the selector was closed");
    await this.#running?.catch(() => undefined); // the caller of `run` receives the error
    this.#listeners.clear();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #stop(why: string): boolean {
    if (!this.#leading || this.#leading.end.signal.aborted) return false;
    const options = { path: this.path, hint: "stop what only the leader may do" };
    this.#leading.end.abort(new ZooKeeperError("NOT_HELD", `the leadership of ${this.path} is over: ${why}`, options));
    return true;
  }

  async #run(): Promise<void> {
    let wasIn = false;
    let hadTurn = false;
    let outcome: { readonly error: unknown } | undefined;
    await follow(
      this.#zk,
      this.#closing.signal,
      async () => {
        const held = await this.#mutex.acquire({ signal: this.#closing.signal });
        wasIn = true;
        try {
          // If the connection is already lost or silent, this participant gives up its turn, so that the next one leads.
          if (!leads(held)) return "again";
          hadTurn = true;
          outcome = await this.#turn(held);
        } finally {
          // The error is stored and not thrown here, because `follow` would take it for a consequence of the session's end.
          await this.#release(held).catch((error: unknown) => {
            outcome ??= { error };
          });
        }
        if (this.#autoRequeue && outcome) this.#complain(outcome.error);
        return this.#autoRequeue ? "again" : "done";
      },
      (error) => {
        // Without `autoRequeue` there is only one turn, even if its node could not be deleted.
        if (hadTurn && !this.#autoRequeue) throw (outcome ?? { error }).error;
        if (!wasIn && !isPassing(error)) throw error;
        this.#listeners.tell((one) => one.trouble?.(error));
      },
    ).catch((error: unknown) => {
      if (!this.#zk.signal.aborted) throw error;
    });
    if (outcome && !this.#autoRequeue) throw outcome.error;
  }

  async #release(held: Held): Promise<void> {
    try {
      if (held.held) await held.release();
    } catch (error) {
      // If the session has ended, the server deletes the node, so the turn counts as finished.
      if (held.session.live) throw error;
    }
  }

  /** Runs one turn of leadership. @returns the error of `takeLeadership`, if any */
  async #turn(held: Held): Promise<{ error: unknown } | undefined> {
    const end = new AbortController();
    const lost = () => this.#stop("the connection is in doubt, or the session has ended");
    const stopListening = held.session.onState((state) => {
      if (state !== "connected") lost();
    });
    held.signal.addEventListener("abort", lost, { once: true });
    this.#leading = { held, end };
    try {
      if (this.#closing.signal.aborted) return undefined;
      await this.#takeLeadership({ fence: held.fence, signal: end.signal });
      return undefined;
    } catch (error) {
      return end.signal.aborted && isConsequence(error, end.signal) ? undefined : { error };
    } finally {
      stopListening();
      held.signal.removeEventListener("abort", lost);
      this.#stop("the turn is over");
      this.#leading = undefined;
    }
  }

  /** Calls `trouble` of the listeners; if no listener has it, emits a process warning. The selector continues with its next turn. */
  #complain(error: unknown): void {
    let told = false;
    this.#listeners.tell((one) => {
      if (!one.trouble) return;
      told = true;
      one.trouble(error);
    });
    if (!told) process.emitWarning(`leader selector at ${this.path}: ${inspect(error)}`, "LeaderSelectorWarning");
  }
}

function leads(held: Held): boolean {
  return held.held && held.session.state === "connected";
}

/** True if the abort of the signal probably caused the error: the error is the signal's reason, or that of an aborted or ended call. */
function isConsequence(error: unknown, signal: AbortSignal): boolean {
  if (error === signal.reason || isZooKeeperError(error, "ABORTED", "SESSION_EXPIRED", "CLOSED", "NOT_HELD"))
    return true;
  return error instanceof Error && (error.name === "AbortError" || error.cause === signal.reason);
}
