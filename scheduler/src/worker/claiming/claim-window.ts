import { type Clock, EarliestTimer } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { ClaimStore } from "../../run/claim-store.ts";
import { beginning, binMs } from "../../run/coming-runs.ts";
import type { StoreClock } from "../../store/store-clock.ts";
import { backlogRuns, claimsPerStatement, guardMs } from "../bounds.ts";

/** How far ahead bursts are looked for: the time in which a slow store lets one worker claim all that it may hold. */
const farMs = 8_000;
/** A count made this long before an instant covers all runs that are due at it. */
const seenMs = farMs - binMs;
/** Least time between two counts. */
const apartMs = 2_000;
/** Claim time per run, in the store and in this process, until one was measured; `slack` is how much slower the next claims may be. */
const assumedMs = 0.04;
const slack = 1.3;

/**
 * Decides how far ahead of its time a run is claimed, and when the next claim is made.
 *
 * Guarantees that runs due at one instant are claimed before it, however many they are. The window within which every run is claimed ahead
 * is long enough for some ten thousands of runs; of a hundred thousand at a minute's start most would be claimed late. So coming runs are
 * counted `farMs` ahead, and where the window is too short, claims begin earlier by the time that they take. Runs that are not counted (the
 * store did not answer, or the run was made later) are claimed within the window, as all others.
 */
export class ClaimWindow {
  readonly #options: WindowOptions;
  readonly #look: EarliestTimer;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #perRunMs = assumedMs;
  /** The end of the current burst, by the store's clock; claims reach up to there. */
  #massMs = Number.NEGATIVE_INFINITY;
  #vain = 0;

  constructor(options: WindowOptions) {
    this.#options = options;
    this.#look = new EarliestTimer(options.clock, () => void this.#count());
  }

  /** Claims made now reach up to this instant. */
  untilMs(nowMs: number): number {
    return Math.max(nowMs + this.#options.claimAheadMs, this.#massMs);
  }

  /** How long runs due at that instant can wait for their claim. */
  waitMs(dueMs: number): number {
    const { storeClock, claimAheadMs } = this.#options;
    const inMs = storeClock.until(dueMs);
    this.#lookFor(inMs);
    return dueMs < this.#massMs ? 0 : inMs - claimAheadMs;
  }

  /** Records that a claim of `runs` runs took `ms`. */
  took(runs: number, ms: number): void {
    if (runs >= backlogRuns) this.#perRunMs += (ms / runs - this.#perRunMs) / 4;
  }

  /**
   * How long until the next claim, given `nextDueMs`, the due time of the next run that the last claim left; null: never. All runs due
   * within the window have been claimed, so the next claim can wait for half of the window and find more at once. A run that is due and was
   * not claimed is locked: by another claim for a moment, or by a transaction of unknown length. So each claim without a result waits twice
   * as long as the one before.
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

  /** Arms the next count. Near runs are claimed already, and a worker that never claims ahead needs no count. */
  #lookFor(inMs: number): void {
    const { clock, claimAheadMs } = this.#options;
    if (claimAheadMs === 0 || inMs <= claimAheadMs) return;
    this.#look.within(Math.max(0, inMs - seenMs, this.#lookedAt + apartMs - clock.monotonic()));
  }

  async #count(): Promise<void> {
    const { claims, groupIds, clock, storeClock, log, claimAheadMs, room, claim } = this.#options;
    const most = room();
    // This worker could hold no more than one claim returns: other workers take the burst.
    if (most <= claimsPerStatement) return;
    this.#lookedAt = clock.monotonic();
    // Workers that count the same burst should begin at the same moment and share it: so count from the start of a bin, with a rounded
    // rate.
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
  /** Claims reach further from now on. */
  claim: () => void;
}
