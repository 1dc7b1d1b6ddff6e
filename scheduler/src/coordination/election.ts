import { type Clock, pause } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { type Election, type ElectionOptions, type Held, notHeld, type Term } from "../cluster/locks.ts";

export interface ElectedOptions extends ElectionOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** How long a term that was given up waits for `onLead` to settle, ms. */
  readonly drainMs: number;
  /** In line until it holds. */
  readonly acquire: (signal: AbortSignal) => Promise<Held>;
}

/** After something that does not mend by itself, or an `onLead` that rejected: others may do better meanwhile. */
const retryMs = 1_000;

/**
 * An election is a lock whose holder leads. One term after the other: in line, led until the term's signal aborts, and in
 * line again once `onLead` has settled; so two terms of one process never overlap either.
 */
export class LockElection implements Election {
  readonly name: string;
  readonly #options: ElectedOptions;
  readonly #closing = new AbortController();
  readonly #run: Promise<void>;
  #term: LockTerm | undefined;

  constructor(name: string, options: ElectedOptions) {
    this.name = name;
    this.#options = options;
    this.#run = this.#stand();
  }

  get term(): Term | undefined {
    return this.#term?.leads ? this.#term : undefined;
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error("the election was left"));
    this.#term?.resign();
    await this.#run;
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

  /** @returns whether `onLead` did its part */
  async #lead(held: Held): Promise<boolean> {
    const { onLead, clock, log, drainMs } = this.#options;
    let settled: () => void = () => undefined;
    const worked = new Promise<void>((resolve) => {
      settled = resolve;
    });
    const term = new LockTerm(held, () => Promise.race([worked, pause(clock, drainMs, held.signal)]));
    this.#term = term;
    let good = true;
    if (this.#closing.signal.aborted) term.resign();
    else {
      try {
        await onLead(term);
      } catch (error) {
        good = term.signal.aborted;
        log.error({ election: this.name, fence: String(held.fence), error: messageOf(error) }, "onLead failed");
      }
    }
    settled();
    if (!good) term.resign();
    await term.ended;
    this.#term = undefined;
    return good;
  }
}

class LockTerm implements Term {
  readonly name: string;
  readonly fence: bigint;
  /** Resolves when the permit is given back, or was lost. */
  readonly ended: Promise<void>;
  readonly #held: Held;
  readonly #worked: () => Promise<void>;
  readonly #over = new AbortController();
  #released: Promise<unknown> | undefined;

  constructor(held: Held, worked: () => Promise<void>) {
    this.name = held.name;
    this.fence = held.fence;
    this.#held = held;
    this.#worked = worked;
    this.ended = new Promise((resolve) => {
      const over = () => {
        this.#over.abort(held.signal.reason);
        // After the release, should this be one: the line is left before it is entered again.
        void Promise.resolve(this.#released).then(() => resolve());
      };
      if (held.signal.aborted) over();
      else held.signal.addEventListener("abort", over, { once: true });
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

  /** The work ends first: whoever leads next begins when this one has put down what it had in hand. */
  async #release(): Promise<void> {
    this.#over.abort(notHeld(`the term of ${this.name}`, "it was given up"));
    await this.#worked();
    await this.#held.release();
  }
}
