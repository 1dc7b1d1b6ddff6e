import type { Clock } from "../../base/clock.ts";
import type { CarillonError } from "../../base/errors.ts";
import type { ClaimedRun } from "../../run/claim-store.ts";

/**
 * A worker's poll request that waits for runs. It ends once, for example when runs are claimed for it, a run is recalled, its session sends
 * a newer poll, its time limit passes, or the client disconnects.
 */
export class WaitingPoll {
  readonly want: number;
  readonly aheadMs: number;
  readonly ended: Promise<ClaimedRun[]>;
  #settle: { resolve: (runs: ClaimedRun[]) => void; reject: (error: unknown) => void };
  #cancel: () => void;
  #claiming = false;
  #wantsEnd = false;
  #refusal: CarillonError | undefined;
  #over = false;
  #claimed: Promise<void> = Promise.resolve();
  readonly #listeners: (() => void)[] = [];

  constructor(
    { want, aheadMs, waitMs }: { want: number; aheadMs: number; waitMs: number },
    clock: Clock,
    gone: AbortSignal,
  ) {
    this.want = want;
    this.aheadMs = aheadMs;
    this.#settle = { resolve: () => undefined, reject: () => undefined };
    this.ended = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.#cancel = clock.after(waitMs, () => this.end());
    if (gone.aborted) this.end();
    else gone.addEventListener("abort", () => this.end(), { once: true });
  }

  get over(): boolean {
    return this.#over;
  }

  onEnd(listener: () => void): void {
    if (this.#over) listener();
    else this.#listeners.push(listener);
  }

  /**
   * Runs `claim` for this poll. The poll cannot end while `claim` runs, because its response carries the claimed runs. If two claim groups
   * claim for this poll, the second waits for the first, and claims only if the poll has not ended.
   */
  claiming(claim: () => Promise<ClaimedRun[]>): Promise<void> {
    const next = this.#claimed.then(() => this.#claimOnce(claim));
    // Only the caller of a failed claim receives the error; the next claim finds that the poll has ended.
    this.#claimed = next.catch(() => undefined);
    return next;
  }

  async #claimOnce(claim: () => Promise<ClaimedRun[]>): Promise<void> {
    if (this.#over) return;
    this.#claiming = true;
    try {
      const runs = await claim();
      this.#claiming = false;
      const refusal = this.#refusal;
      if (runs.length > 0 || this.#wantsEnd) this.#finish(() => this.#settle.resolve(runs));
      else if (refusal) this.#finish(() => this.#settle.reject(refusal));
    } catch (error) {
      this.#claiming = false;
      // The store may have claimed runs before the error, so the worker receives the error and then compares its runs with the store.
      this.#finish(() => this.#settle.reject(error));
      throw error;
    }
  }

  end(runs: ClaimedRun[] = []): void {
    if (this.#claiming) this.#wantsEnd = true;
    else this.#finish(() => this.#settle.resolve(runs));
  }

  /**
   * Ends the poll with an error. While runs are being claimed for the poll, only if there are none, because the worker must receive them.
   */
  refuse(error: CarillonError): void {
    if (this.#claiming) this.#refusal = error;
    else this.#finish(() => this.#settle.reject(error));
  }

  #finish(settle: () => void): void {
    if (this.#over) return;
    this.#over = true;
    this.#cancel();
    for (const listener of this.#listeners) listener();
    settle();
  }
}
