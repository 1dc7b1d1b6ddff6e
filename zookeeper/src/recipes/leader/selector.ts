/**
 * A leader selector: of all participants in line at a path one leads, for as long as its `takeLeadership` runs. It is a mutex
 * that calls back, on the paths of Java Curator's LeaderSelector: `<path>/_c_<uuid>-lock-<number>`, ephemeral, its data the
 * participant's id.
 *
 * The callback's signal aborts when it must stop: the connection is in doubt, the session has ended, it was interrupted or the
 * selector closes. Only when the callback has settled is the place given up and another taken: one selector never runs its
 * callback twice at once. A callback that goes on after its signal runs beside the next leader; then its fence keeps it from
 * doing harm.
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
  /** Gets in line again after each turn, until it is closed. Default: one turn for each `run`. */
  readonly autoRequeue?: boolean;
  /** The ACL of the participant's node; default: everyone may do anything. */
  readonly acl?: readonly Acl[];
}

/** Listeners must not throw: an error that a listener throws becomes an uncaught exception. */
export interface SelectorListener {
  /** Something went wrong that is tried again; with autoRequeue also what `takeLeadership` threw, which is a warning of the process without a listener. */
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
   * @param takeLeadership runs while this participant leads; leadership ends when it settles, which should be soon after its
   * signal aborts. A rejection because of the signal is no error.
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
   * Gets in line and leads when its turn comes: once, or with autoRequeue again and again. (Curator: start, requeue.)
   * While it runs, another call is the same run.
   * @returns when `takeLeadership` has settled and the place is given up; with autoRequeue, or while it still waits, when
   * the selector or its client is closed
   * @throws CLOSED; what `takeLeadership` threw, unless it queues again; what keeps it from standing in line, or from
   * leaving it after its turn, as NO_AUTH
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

  /** True if it leads at this moment, by the clock. False while the connection is suspended, and once its signal has aborted. */
  get hasLeadership(): boolean {
    const leading = this.#leading;
    return leading !== undefined && !leading.end.signal.aborted && leads(leading.held);
  }

  /** Aborts the signal of the turn that runs. @returns whether one did */
  interruptLeadership(): boolean {
    return this.#stop("it was interrupted");
  }

  /** @returns a function that ends it */
  listen(listener: SelectorListener): () => void {
    return this.#listeners.add(listener);
  }

  /** All participants in line, the leader first, whatever program they are in. */
  participants(options?: CallOptions): Promise<Participant[]> {
    return participantsOf(this.#zk, this.path, marker, options);
  }

  /** @returns undefined if the line is empty */
  leader(options?: CallOptions): Promise<Participant | undefined> {
    return leaderOf(this.#zk, this.path, marker, options);
  }

  /**
   * Leaves the line; a running turn's signal aborts.
   * @returns when the turn has ended and its node is gone: do not await this inside `takeLeadership`. Never rejects.
   */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#stop("the selector was closed");
    await this.#running?.catch(() => undefined); // `run` tells its caller
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
          // Not thrown from here: `follow` would take the end of the session in which the waiting began for the cause.
          await this.#release(held).catch((error: unknown) => {
            outcome ??= { error };
          });
        }
        if (this.#autoRequeue && outcome) this.#complain(outcome.error);
        return this.#autoRequeue ? "again" : "done";
      },
      (error) => {
        // A place that cannot be given up is no reason for another turn.
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
      // An ended session takes its node along; the turn has been had all the same.
      if (held.session.live) throw error;
    }
  }

  /** @returns what went wrong in it, if anything did */
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

  /** If no listener takes the error, it goes to standard error as a warning: the selector gets its next turn. */
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

/** Thrown because the signal aborted: its reason, or what calls throw that were given the signal. */
function isConsequence(error: unknown, signal: AbortSignal): boolean {
  if (error === signal.reason || isZooKeeperError(error, "ABORTED", "SESSION_EXPIRED", "CLOSED", "NOT_HELD"))
    return true;
  return error instanceof Error && (error.name === "AbortError" || error.cause === signal.reason);
}
