import { pause, unfakedClock } from "../base/clock.ts";
import type { Pulse } from "../cluster/session-store.ts";
import type { RunNotice } from "../run/handler.ts";
import type { TravelClock } from "./travel-clock.ts";
import type { WatchedStore } from "./watched-store.ts";

export interface TravelOptions {
  clock: TravelClock;
  watched: WatchedStore;
  sessionId: () => number;
  /** How long before its time a slot can be planned. */
  aheadMs: number;
  /** Real time that a handler may take for what is not the tower's time, before time goes on without it. */
  patienceMs: number;
  /** How many of the store's statements wait for a transaction that stands idle in a caller's hands. */
  heldUp: () => Promise<number>;
}

/** Promises that follow from each other settle within so many turns of the microtask queue; another costs nothing. */
const turns = 30;
/** Sessions are trusted for longer than this (see tower.ts), so that none is lost on the way. */
const longestLeapMs = 5 * 86_400_000;

/**
 * Moves time from one thing that happens to the next, and waits at each until the engine, the store and the handlers have
 * done what there is to do. Where nothing is due it leaps: timers on the way then fire once, at its end.
 */
export class TimeTravel {
  readonly #options: TravelOptions;
  readonly #running = new Set<string>();
  /** Waited for in vain: they wait for time to pass, or for nothing. */
  readonly #stubborn = new Set<string>();
  #sleeping = 0;
  /** What the store said when nothing more happened, and after how many questions that was. */
  #pulse: Pulse | undefined;
  #seen = -1;
  /** Of the pulse that the process was made to look at last. */
  #told = "";
  #stir: () => void = () => undefined;

  constructor(options: TravelOptions) {
    this.#options = options;
  }

  onRun({ kind, runId, attempt }: RunNotice): void {
    const name = `${runId} ${attempt}`;
    if (kind === "started") this.#running.add(name);
    else {
      this.#running.delete(name);
      this.#stubborn.delete(name);
    }
    this.#stir();
  }

  /** For handlers: resolves when the tower's time has moved on by so much, or at once when the signal aborts. */
  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    this.#sleeping++;
    this.#stir();
    try {
      await pause(this.#options.clock, ms, signal);
    } finally {
      this.#sleeping--;
    }
  }

  /** Resolves when nothing more happens at this time. */
  async settle(): Promise<void> {
    const { watched, sessionId, patienceMs, heldUp } = this.#options;
    // With a handler asleep, a statement may wait for that handler's own transaction, which ends only when time goes on.
    const heldUpNow = async () => (this.#sleeping > 0 ? heldUp() : 0);
    for (;;) {
      for (let turn = 0; turn < turns; turn++) await undefined;
      await watched.answeredOrHeldUp(heldUpNow);
      if (watched.asked !== this.#seen) {
        this.#seen = watched.asked;
        this.#pulse = await watched.look(sessionId());
        continue;
      }
      const awaited = [...this.#running].filter((run) => !this.#stubborn.has(run));
      if (awaited.length <= this.#sleeping) return;
      if (!(await this.#stirred(patienceMs))) for (const run of awaited) this.#stubborn.add(run);
    }
  }

  /** Until `endMs`, or `done` says so at some moment on the way. @returns whether it did */
  async travel(endMs: number, done: () => Promise<boolean> = async () => false): Promise<boolean> {
    const { clock } = this.#options;
    // What was written beside this store is not known to it.
    this.#seen = -1;
    for (;;) {
      await this.settle();
      if (await done()) return true;
      const isDueNow = clock.nextMs !== null && clock.nextMs <= clock.wall();
      if (clock.wall() >= endMs && !isDueNow) return false;
      if (isDueNow) clock.moveTo(clock.wall());
      else if (!this.#tell(endMs)) clock.moveTo(Math.min(this.#calmUntil(endMs) ?? clock.nextMs ?? endMs, endMs));
    }
  }

  /**
   * Beats are rare on the way (see testing.ts): a process is made to look whenever there is another thing to come, and
   * when the next slot can be planned. @returns whether there was any
   */
  #tell(endMs: number): boolean {
    const { clock, watched, aheadMs } = this.#options;
    if (this.#pulse === undefined) return false;
    const { nextSlotMs, nextHeldMs, nextReadyMs } = this.#pulse;
    const slotMs = nextSlotMs !== null && nextSlotMs - aheadMs <= Math.min(clock.wall(), endMs) ? nextSlotMs : null;
    const news = `${slotMs} ${nextHeldMs} ${nextReadyMs}`;
    if (news === this.#told || news === "null null null") return false;
    this.#told = news;
    watched.nudge();
    return true;
  }

  /** Up to when nothing happens that matters; null: something may at once. */
  #calmUntil(endMs: number): number | null {
    const { clock, aheadMs } = this.#options;
    // What runs may have timers of its own: its timeout, its sleep.
    if (this.#running.size > 0 || this.#pulse === undefined) return null;
    const { nextSlotMs, nextHeldMs, nextReadyMs, nextPauseEndMs, nextDirectMs = null, nextMineMs = null } = this.#pulse;
    const openMs = (nextSlotMs ?? Number.POSITIVE_INFINITY) - aheadMs;
    // What is to be addressed and is late already waits for a worker that can take it, however long.
    const directMs = nextDirectMs === null || nextDirectMs <= clock.wall() ? endMs : nextDirectMs;
    const leapMs = clock.wall() + longestLeapMs;
    const calmMs = Math.min(
      openMs,
      nextHeldMs ?? endMs,
      nextReadyMs ?? endMs,
      nextPauseEndMs ?? endMs,
      directMs,
      nextMineMs ?? endMs,
      endMs,
      leapMs,
    );
    return calmMs > clock.wall() ? calmMs : null;
  }

  /** @returns whether a run or a sleeper stirred before so much real time had passed */
  async #stirred(ms: number): Promise<boolean> {
    const stirred = new AbortController();
    this.#stir = () => stirred.abort();
    await pause(unfakedClock, ms, stirred.signal);
    return stirred.signal.aborted;
  }
}
