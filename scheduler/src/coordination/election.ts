import { type Clock, pause, settlesWithin } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { type Election, type ElectionOptions, type Held, notHeld, type Term } from "../cluster/locks.ts";

export interface ElectedOptions extends ElectionOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** How long `onLead` has to settle once its term is over, ms: giving up a term waits no longer than this. */
  readonly drainMs: number;
  /** In line until it holds. */
  readonly acquire: (signal: AbortSignal) => Promise<Held>;
}

/** The wait after an error that does not pass by itself, or after an `onLead` that rejected: meanwhile another contender may lead. */
const retryMs = 1_000;

/**
 * An election is a lock whose holder leads. One term after the other: in line, led until the term's signal aborts, and in
 * line again once `onLead` has settled; so two terms of one process never overlap either. An `onLead` that ignores its
 * signal for `drainMs` keeps this process out of the line, and nothing else: the log names it, the term is given up, and
 * `close` ends without it.
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

  /** @param drainMs how long `onLead` has; only the first call counts */
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

  /** @returns false if `onLead` failed while its term still ran */
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
  /** Called when `onLead` goes on for `drainMs` after the term. */
  readonly late: () => void;
}

class LockTerm implements Term {
  readonly name: string;
  readonly fence: bigint;
  /** Resolves when the permit is given back, or was lost. */
  readonly ended: Promise<void>;
  /** Resolves when the permit is given back, or was lost, and `onLead` has had its time and goes on. */
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
        // After the release, should this be one: the line is left before it is entered again.
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

  /** @param drainMs how long `onLead` has from now on, if the term is not over yet */
  giveUp(drainMs: number): void {
    this.#drainMs = drainMs;
    this.resign();
  }

  /** The work ends before the lock is released: the next leader begins only when this one has stopped working. */
  async #release(): Promise<void> {
    this.#over.abort(notHeld(`the term of ${this.name}`, "it was given up"));
    await this.#endsInTime();
    await this.#held.release();
  }

  /** Its time limit begins with the first call, when the term is over. */
  #endsInTime(): Promise<boolean> {
    this.#inTime ??= settlesWithin(this.#options.clock, this.#drainMs, this.#options.worked);
    return this.#inTime;
  }
}
