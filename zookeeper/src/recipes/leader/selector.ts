/**
 * A leader selector: of all participants in line at a path, one leads for as long as its `takeLeadership` runs. It is a mutex that
 * calls back, on the paths of Java Curator's LeaderSelector: `<path>/_c_<uuid>-lock-<number>`, ephemeral, with the participant's id
 * as data.
 *
 * The callback's signal aborts when it must stop: the connection is in doubt, the session has ended, it was interrupted or the
 * selector closes. The selector leaves the line, and queues again, only once the callback has settled: one selector never runs its
 * callback twice at once. A callback that continues after its signal aborted runs concurrently with the next leader; then only its
 * fence prevents harm.
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
  /** The participant's name for other participants; default "". */
  readonly id?: string;
  /** Queues again after each turn, until it is closed. Default: one turn for each `run`. */
  readonly autoRequeue?: boolean;
  /** The ACL of the participant's node; default: everyone may do anything. */
  readonly acl?: readonly Acl[];
}

/** Listeners must not throw: an error that a listener throws becomes an uncaught exception. */
export interface SelectorListener {
  /**
   * An operation failed and will be retried; with autoRequeue also an error of `takeLeadership`, which becomes a process warning if
   * there is no listener.
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
   * @param takeLeadership runs while this participant leads; leadership ends when its promise settles, which should be soon after
   * its signal aborts. A rejection because of the signal does not count as an error.
   * @throws PATH_INVALID
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
   * Joins the line and leads when its turn comes: once, or repeatedly with autoRequeue. (Curator: start, requeue.) While a run is
   * in progress, another call returns the same run.
   * @returns when `takeLeadership` has settled and the line is left; with autoRequeue, or while still waiting, when the selector or
   * its client is closed
   * @throws CLOSED; the error of `takeLeadership`, unless autoRequeue is set; the error that prevents joining the line, or leaving
   * it after the turn, such as NO_AUTH
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
   * True if this participant leads, by the clock at the moment of the call. False while the connection is suspended, and once its
   * signal has aborted.
   */
  get hasLeadership(): boolean {
    const leading = this.#leading;
    return leading !== undefined && !leading.end.signal.aborted && leads(leading.held);
  }

  /** Aborts the signal of the running turn. @returns false if no turn is running */
  interruptLeadership(): boolean {
    return this.#stop("it was interrupted");
  }

  /** @returns a function that removes the listener */
  listen(listener: SelectorListener): () => void {
    return this.#listeners.add(listener);
  }

  /** All participants in line, of all programs, the leader first. */
  participants(options?: CallOptions): Promise<Participant[]> {
    return participantsOf(this.#zk, this.path, marker, options);
  }

  /** @returns undefined if the line is empty */
  leader(options?: CallOptions): Promise<Participant | undefined> {
    return leaderOf(this.#zk, this.path, marker, options);
  }

  /**
   * Leaves the line; a running turn's signal aborts.
   * @returns when the turn has ended and the participant's node is deleted: do not await it inside `takeLeadership`. Never rejects.
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
          // The connection is in doubt already: the next participant should lead.
          if (!leads(held)) return "again";
          hadTurn = true;
          outcome = await this.#turn(held);
        } finally {
          // The error is stored, not thrown here, because `follow` would attribute it to the end of the session in which the wait
          // began.
          await this.#release(held).catch((error: unknown) => {
            outcome ??= { error };
          });
        }
        if (this.#autoRequeue && outcome) this.#complain(outcome.error);
        return this.#autoRequeue ? "again" : "done";
      },
      (error) => {
        // Without autoRequeue, a node that cannot be deleted does not lead to another turn.
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
      // The server deletes the node of an ended session; the turn counts all the same.
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

  /** Reports an error to the listeners; if none handles it, emits a process warning. The selector continues with its next turn. */
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

/** True if the error is a consequence of the aborted signal: the signal's reason, or an error of a call that received the signal. */
function isConsequence(error: unknown, signal: AbortSignal): boolean {
  if (error === signal.reason || isZooKeeperError(error, "ABORTED", "SESSION_EXPIRED", "CLOSED", "NOT_HELD"))
    return true;
  return error instanceof Error && (error.name === "AbortError" || error.cause === signal.reason);
}
