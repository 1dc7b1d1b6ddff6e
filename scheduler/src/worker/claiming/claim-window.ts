import { type Clock, EarliestTimer } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { ClaimStore } from "../../run/claim-store.ts";
import { beginning, binMs } from "../../run/coming-runs.ts";
import type { StoreClock } from "../../store/store-clock.ts";
import { backlogRuns, claimsPerStatement, guardMs } from "../bounds.ts";

/** How far ahead bursts are looked for, ms: long enough for one worker to claim as many runs as it may hold, even from a slow store. */
const farMs = 8_000;
/** A count made this long before an instant covers all runs that are due at it. */
const seenMs = farMs - binMs;
/** The shortest time between two counts. */
const apartMs = 2_000;
/** Claim time per run, in the store and in this process, until it has been measured; `slack` is how much slower the next claims may be. */
const assumedMs = 0.04;
const slack = 1.3;

/**
 * Decides how far ahead of its time a run is claimed, and when the next claim is made.
 *
 * Guarantees that runs due at one instant are claimed before it, however many they are. The window within which every run is claimed ahead
 * is long enough for a few tens of thousands of runs; of a hundred thousand runs due at a minute's start, most would be claimed late. So
 * coming runs are counted `farMs` ahead, and where the window is too short, claims begin earlier by the time that they take. Runs that are
 * not counted (the store did not answer, or the run was made later) are claimed within the window, like all others.
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

  /** Returns the due time up to which a claim made now takes runs, by the store's clock. */
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

  /** Records that a claim of `runs` runs took `ms`. */
  took(runs: number, ms: number): void {
    if (runs >= backlogRuns) this.#perRunMs += (ms / runs - this.#perRunMs) / 4;
  }

  /**
   * Returns how long to wait until the next claim, in ms. `nextDueMs` is the due time of the next run that the last claim left; null: there
   * is none, so no claim is due. All runs due within the window have been claimed, so the next claim can wait for half of the window and
   * claim more runs at once. A run that is due and was not claimed is locked: by another claim for a moment, or by a transaction of unknown
   * length. So after each claim without a result the wait doubles.
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

  /** Arms the timer of the next count. Near runs are claimed already, and a worker that never claims ahead needs no count. */
  #lookFor(inMs: number): void {
    const { clock, claimAheadMs } = this.#options;
    if (claimAheadMs === 0 || inMs <= claimAheadMs) return;
    this.#look.within(Math.max(0, inMs - seenMs, this.#lookedAt + apartMs - clock.monotonic()));
  }

  async #count(): Promise<void> {
    const { claims, groupIds, clock, storeClock, log, claimAheadMs, room, claim } = this.#options;
    const most = room();
    // This worker cannot hold more runs than one claim returns, so it leaves the burst to other workers.
    if (most <= claimsPerStatement) return;
    this.#lookedAt = clock.monotonic();
    // Workers that count the same burst should begin at the same moment and share it, so the count begins at the start of a bin and uses a
    // rounded rate.
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
