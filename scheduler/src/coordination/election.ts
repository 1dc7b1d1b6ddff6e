import { type Clock, pause, settlesWithin } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { type Election, type ElectionOptions, type Held, notHeld, type Term } from "../cluster/locks.ts";

export interface ElectedOptions extends ElectionOptions {
  readonly clock: Clock;
  readonly log: Log;
  /**
   * How long `onLead` may take to settle after its term has ended, in ms. After that, the lock is released although `onLead` still runs.
   */
  readonly drainMs: number;
  /** Enters the lock's queue, and resolves when this process holds the lock. */
  readonly acquire: (signal: AbortSignal) => Promise<Held>;
}

/**
 * The pause in ms after an error, or after `onLead` has rejected before its term's end; another candidate may lead meanwhile.
 */
const retryMs = 1_000;

/**
 * An election is a lock whose holder leads. A process repeats one cycle: it waits in the queue, leads until the term's signal aborts, and
 * enters the queue again once `onLead` has settled; so two terms of one process never overlap. If `onLead` has not settled `drainMs` after
 * the signal, this is logged, the lock is released, and `close` resolves without waiting for `onLead`; the process stays out of the queue
 * until `onLead` has settled.
 */
export class LockElection implements Election {
  readonly name: string;
  readonly #options: ElectedOptions;
  readonly #closing = new AbortController();
  readonly #run: Promise<void>;
  #term: LockTerm | undefined;
  #closed: Promise<void> | undefined;

  constructor(name: string, options: ElectedOptions) {
    this.name = name;
    this.#options = options;
    this.#run = this.#stand();
  }

  get term(): Term | undefined {
    return this.#term?.leads ? this.#term : undefined;
  }

  /** @param drainMs how long `onLead` may take to settle, in ms; only the value of the first call counts */
  close(drainMs = this.#options.drainMs): Promise<void> {
    this.#closed ??= this.#close(drainMs);
    return this.#closed;
  }

  async #close(drainMs: number): Promise<void> {
    this.#closing.abort(new Error("the election was left"));
    const term = this.#term;
    if (!term) return this.#run;
    term.giveUp(drainMs);
    await Promise.race([this.#run, term.abandoned]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #stand(): Promise<void> {
    const { acquire, clock, log } = this.#options;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        const held = await acquire(signal);
        if (!(await this.#lead(held))) await pause(clock, retryMs, signal);
      } catch (error) {
        if (signal.aborted) return;
        log.error({ election: this.name, error: messageOf(error) }, "cannot stand for election; trying on");
        await pause(clock, retryMs, signal);
      }
    }
  }

  /** Leads for one term. @returns false if `onLead` rejected before its term had ended */
  async #lead(held: Held): Promise<boolean> {
    const { onLead, clock, log, drainMs } = this.#options;
    if (this.#closing.signal.aborted) {
      await held.release();
      return true;
    }
    const fields = { election: this.name, fence: String(held.fence) };
    let settled: () => void = () => undefined;
    const worked = new Promise<void>((resolve) => {
      settled = resolve;
    });
    const late = () => log.warn(fields, "onLead did not end in time; the term is given up without it");
    const term = new LockTerm(held, { clock, drainMs, worked, late });
    this.#term = term;
    let good = true;
    try {
      await onLead(term);
    } catch (error) {
      good = term.signal.aborted;
      log.error({ ...fields, error: messageOf(error) }, "onLead failed");
    }
    settled();
    if (!good) term.resign();
    await term.ended;
    this.#term = undefined;
    return good;
  }
}

interface TermOptions {
  readonly clock: Clock;
  readonly drainMs: number;
  /** Resolves when `onLead` has settled. */
  readonly worked: Promise<void>;
  /** Called if `onLead` still runs `drainMs` after the term's end. */
  readonly late: () => void;
}

class LockTerm implements Term {
  readonly name: string;
  readonly fence: bigint;
  /** Resolves when the lock has been released or lost. */
  readonly ended: Promise<void>;
  /** Resolves when the lock has been released or lost and `onLead` still runs after its time limit. */
  readonly abandoned: Promise<void>;
  readonly #held: Held;
  readonly #options: TermOptions;
  readonly #over = new AbortController();
  #drainMs: number;
  #inTime: Promise<boolean> | undefined;
  #released: Promise<unknown> | undefined;

  constructor(held: Held, options: TermOptions) {
    this.name = held.name;
    this.fence = held.fence;
    this.#held = held;
    this.#options = options;
    this.#drainMs = options.drainMs;
    this.ended = new Promise((resolve) => {
      const over = () => {
        this.#over.abort(held.signal.reason);
        // Resolves only after a release has completed, because the process must have left the queue before it enters the queue again.
        void Promise.resolve(this.#released).then(() => resolve());
      };
      if (held.signal.aborted) over();
      else held.signal.addEventListener("abort", over, { once: true });
    });
    this.abandoned = new Promise((resolve) => {
      const over = async () => {
        if (await this.#endsInTime()) return;
        options.late();
        await this.ended;
        resolve();
      };
      if (this.signal.aborted) void over();
      else this.signal.addEventListener("abort", () => void over(), { once: true });
    });
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  get leads(): boolean {
    return !this.#over.signal.aborted && this.#held.held;
  }

  resign(): void {
    this.#released ??= this.#release();
  }

  /** @param drainMs how long `onLead` may take to settle from now on, in ms, if the term has not ended yet */
  giveUp(drainMs: number): void {
    this.#drainMs = drainMs;
    this.resign();
  }

  /** Releases the lock after `onLead` has settled or its time limit has passed, so that the next leader does not overlap with this one. */
  async #release(): Promise<void> {
    this.#over.abort(notHeld(`the term of ${this.name}`, "it was given up"));
    await this.#endsInTime();
    await this.#held.release();
  }

  /** Resolves with whether `onLead` settles in time. The time limit begins at the first call, when the term has ended. */
  #endsInTime(): Promise<boolean> {
    this.#inTime ??= settlesWithin(this.#options.clock, this.#drainMs, this.#options.worked);
    return this.#inTime;
  }
}
