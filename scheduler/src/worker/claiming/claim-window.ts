import { type Clock, EarliestTimer } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { ClaimStore } from "../../run/claim-store.ts";
import { beginning, binMs } from "../../run/coming-runs.ts";
import type { StoreClock } from "../../store/store-clock.ts";
import { backlogRuns, claimsPerStatement, guardMs } from "../bounds.ts";

/** So far ahead masses are looked for: as long as a slow store takes to let one worker claim all that it may hold. */
const farMs = 8_000;
/** A look so long before sees all that is due at an instant. */
const seenMs = farMs - binMs;
/** Between two looks. */
const apartMs = 2_000;
/** Of a claimed run, the store's time and this process's, until one was measured; and how much slower the next ones may be. */
const assumedMs = 0.04;
const slack = 1.3;

/**
 * How far ahead of its time a run is claimed, and when the next claim is to be made.
 *
 * Makes true: what is due at one instant is claimed before it, however much it is. The window in which all is claimed ahead is
 * enough for some ten thousands of runs; of a hundred thousand at a minute's start most would be claimed when they are late already.
 * So what comes is counted from afar, and where the window is too short for it claims begin as much sooner as they take. What is
 * not counted (the store did not answer, or it was made later) is claimed within the window, as everything else.
 */
export class ClaimWindow {
  readonly #options: WindowOptions;
  readonly #look: EarliestTimer;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #perRunMs = assumedMs;
  /** By the store's clock; a mass is claimed up to there. */
  #massMs = Number.NEGATIVE_INFINITY;
  #vain = 0;

  constructor(options: WindowOptions) {
    this.#options = options;
    this.#look = new EarliestTimer(options.clock, () => void this.#count());
  }

  /** A claim that is made now reaches so far. */
  untilMs(nowMs: number): number {
    return Math.max(nowMs + this.#options.claimAheadMs, this.#massMs);
  }

  /** How long what is due then can wait for its claim. */
  waitMs(dueMs: number): number {
    const { storeClock, claimAheadMs } = this.#options;
    const inMs = storeClock.until(dueMs);
    this.#lookFor(inMs);
    return dueMs < this.#massMs ? 0 : inMs - claimAheadMs;
  }

  /** A claim of so many took so long. */
  took(runs: number, ms: number): void {
    if (runs >= backlogRuns) this.#perRunMs += (ms / runs - this.#perRunMs) / 4;
  }

  /**
   * How long until the next claim, given when the next run is due that the last one left; null: never.
   * All that is due within the window has been claimed, so the next look can wait for half of it and find more at once.
   * What is due and brought nothing is locked: by another claim for a moment, or by a transaction of which nobody knows how
   * long it takes, so each vain look waits twice as long as the one before.
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

  /** What is near is claimed, and what is never claimed ahead is no matter. */
  #lookFor(inMs: number): void {
    const { clock, claimAheadMs } = this.#options;
    if (claimAheadMs === 0 || inMs <= claimAheadMs) return;
    this.#look.within(Math.max(0, inMs - seenMs, this.#lookedAt + apartMs - clock.monotonic()));
  }

  async #count(): Promise<void> {
    const { claims, groupIds, clock, storeClock, log, claimAheadMs, room, claim } = this.#options;
    const most = room();
    // It would hold no more than one claim brings: others see to the mass.
    if (most <= claimsPerStatement) return;
    this.#lookedAt = clock.monotonic();
    // Who counts the same begins at the same moment, and they share it: so from the beginning of a bin, and by a rounded pace.
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
