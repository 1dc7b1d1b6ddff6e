import { type Clock, EarliestTimer } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { ClaimStore } from "../../run/claim-store.ts";
import { beginning, binMs } from "../../run/coming-runs.ts";
import type { StoreClock } from "../../store/store-clock.ts";
import { backlogRuns, claimsPerStatement, guardMs } from "../bounds.ts";

/**
 * How far ahead the worker looks for bursts, in ms. Even from a slow store, one worker can within this time claim as many runs as
 * it may hold.
 */
const farMs = 8_000;
/** A count of coming runs that is made at most this many ms before an instant includes all runs that are due at that instant. */
const seenMs = farMs - binMs;
/** The shortest time between two counts, in ms. */
const apartMs = 2_000;
/**
 * Claim time per run in ms, in the store and in this process, until the worker has measured it. Planning multiplies the time per run by
 * `slack`, because the next claims may be slower than the measured ones.
 */
const assumedMs = 0.04;
const slack = 1.3;

/**
 * Decides how far ahead of its due time a run is claimed, and when the next claim is made.
 *
 * Runs due at one instant are claimed before that instant, even if there are many. The usual window (`claimAheadMs`) is long enough to
 * claim a few tens of thousands of runs; of a hundred thousand runs due at the start of a minute, it would claim most too late. So the
 * worker counts coming runs `farMs` ahead and, if the window is too short for them, begins to claim earlier. Runs that the count missed
 * (the query failed, or the run was created later) are claimed within the usual window.
 */
export class ClaimWindow {
  readonly #options: WindowOptions;
  readonly #look: EarliestTimer;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #perRunMs = assumedMs;
  /** Due time of the end of the current burst, by the store's clock; claims include runs due up to this time. */
  #massMs = Number.NEGATIVE_INFINITY;
  #vain = 0;

  constructor(options: WindowOptions) {
    this.#options = options;
    this.#look = new EarliestTimer(options.clock, () => void this.#count());
  }

  /** Returns the latest due time, by the store's clock, of the runs that a claim made now includes. */
  untilMs(nowMs: number): number {
    return Math.max(nowMs + this.#options.claimAheadMs, this.#massMs);
  }

  /** Returns how long the claim of runs due at `dueMs` can wait, in ms. */
  waitMs(dueMs: number): number {
    const { storeClock, claimAheadMs } = this.#options;
    const inMs = storeClock.until(dueMs);
    this.#lookFor(inMs);
    return dueMs < this.#massMs ? 0 : inMs - claimAheadMs;
  }

  /** Updates the measured claim time per run from a claim of `runs` runs that took `ms`. Small claims are ignored. */
  took(runs: number, ms: number): void {
    if (runs >= backlogRuns) this.#perRunMs += (ms / runs - this.#perRunMs) / 4;
  }

  /**
   * Returns how long to wait until the next claim, in ms. `nextDueMs` is the due time of the next run that the last claim left in the
   * store; if it is null, no run is left and the result is infinity. All runs due within the window have been claimed, so the next claim
   * can wait for half of the window, or half of the time until `nextDueMs`, and then claim more runs at once. A run that is already due but
   * was not claimed is locked, either by another claim for a moment or by a transaction of unknown length, so the wait doubles after each
   * claim that returns no run, up to `guardMs`.
   */
  afterMs(claimed: number, nextDueMs: number | null): number {
    if (nextDueMs === null) return Number.POSITIVE_INFINITY;
    const { storeClock, claimAheadMs } = this.#options;
    const untilDueMs = storeClock.until(nextDueMs);
    this.#lookFor(untilDueMs);
    this.#vain = claimed > 0 || untilDueMs > 0 ? 0 : this.#vain + 1;
    const leastMs = Math.min(guardMs, 2 ** Math.max(0, this.#vain - 1));
    return Math.max(untilDueMs - claimAheadMs, Math.min(claimAheadMs / 2, untilDueMs / 2), leastMs);
  }

  close(): void {
    this.#look.close();
  }

  /** Arms the timer of the next count, unless the next run is within the window already or the worker does not claim ahead. */
  #lookFor(inMs: number): void {
    const { clock, claimAheadMs } = this.#options;
    if (claimAheadMs === 0 || inMs <= claimAheadMs) return;
    this.#look.within(Math.max(0, inMs - seenMs, this.#lookedAt + apartMs - clock.monotonic()));
  }

  async #count(): Promise<void> {
    const { claims, groupIds, clock, storeClock, log, claimAheadMs, room, claim } = this.#options;
    const most = room();
    // If one claim fills this worker, the worker need not begin early, and leaves the burst to other workers.
    if (most <= claimsPerStatement) return;
    this.#lookedAt = clock.monotonic();
    // The count begins at the start of a bin and uses a rounded claim time per run, so that all workers that count the same burst begin to
    // claim at the same moment and share the burst.
    const nowMs = Math.floor(storeClock.now() / binMs) * binMs;
    try {
      const { counts, nextMs } = await claims.coming({ groupIds, nowMs, aheadMs: farMs, most });
      if (nextMs !== null) this.#lookFor(storeClock.until(nextMs));
      const mass = beginning(counts, {
        perRunMs: roundedUp(this.#perRunMs) * slack,
        aheadMs: claimAheadMs / 2,
        few: claimsPerStatement,
      });
      if (mass === null) return;
      const inMs = nowMs + mass.atMs - storeClock.now();
      if (inMs > 1) return this.#look.within(inMs);
      this.#massMs = nowMs + mass.untilMs;
      claim();
    } catch (error) {
      log.debug({ error: messageOf(error) }, "what comes could not be counted; it is claimed when it is near");
    }
  }
}

const roundedUp = (ms: number) => assumedMs * 2 ** Math.ceil(Math.log2(ms / assumedMs));

interface WindowOptions {
  claims: Pick<ClaimStore, "coming">;
  groupIds: number[];
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
  claimAheadMs: number;
  /** How many more runs this worker may hold. */
  room: () => number;
  /** Makes a claim now, because the window has grown. */
  claim: () => void;
}
