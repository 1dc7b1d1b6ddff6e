import { pause, unfakedClock } from "../base/clock.ts";
import type { Pulse } from "../cluster/session-store.ts";
import type { RunNotice } from "../run/handler.ts";
import type { TravelClock } from "./travel-clock.ts";
import type { WatchedStore } from "./watched-store.ts";

export interface TravelOptions {
  clock: TravelClock;
  watched: WatchedStore;
  sessionId: () => number;
  /** How long before its due time a slot can be planned, in ms. */
  aheadMs: number;
  /** How much real time a handler may spend on waiting outside the tower, in ms, before time continues without it. */
  patienceMs: number;
  /** Returns the number of the store's statements that wait for an idle transaction of a caller. */
  heldUp: () => Promise<number>;
}

/** The number of turns of the microtask queue that are awaited. Chained promises settle within them, and each turn costs almost nothing. */
const turns = 30;
const patienceParts = 20;
/** The longest leap, in ms. It is shorter than the session timeout (see testing.ts), so that no leap ends a session. */
const longestLeapMs = 5 * 86_400_000;

/**
 * Moves the tower's time from one event to the next, and waits at each event until the engine, the store and the handlers have finished
 * their work. If nothing is due for some time, it leaps: timers due during the leap then fire once, at its end.
 */
export class TimeTravel {
  readonly #options: TravelOptions;
  readonly #running = new Set<string>();
  /**
   * The attempts for which `settle` no longer waits, because no run and no handler became active for `patienceMs`. Their handlers
   * wait for virtual time to pass, or for something outside the tested scheduler.
   */
  readonly #stubborn = new Set<string>();
  #sleeping = 0;
  /** The store's pulse when all work was last finished. `#seen` is the number of queries at that moment. */
  #pulse: Pulse | undefined;
  #seen = -1;
  /** The events of the pulse (see `#tell`) for which the process was last woken, as text. */
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

  /** Called by handlers. Resolves when the tower's time has moved on by `ms`, or at once when the signal aborts. */
  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    this.#sleeping++;
    this.#stir();
    try {
      await pause(this.#options.clock, ms, signal);
    } finally {
      this.#sleeping--;
    }
  }

  /**
   * Called when `more` runs begin (or, if negative, stop) to wait for other runs of their batch. Such runs wait for the tower's time to
   * pass.
   */
  gathers(more: number): void {
    this.#sleeping += more;
    this.#stir();
  }

  /** Resolves when nothing more happens at the present time of the tower. */
  async settle(): Promise<void> {
    const { watched, sessionId, patienceMs, heldUp } = this.#options;
    // While a handler sleeps, a statement may wait for the transaction of this handler, which ends only when time moves on.
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

  /** Moves time to `endMs`, or stops earlier when `done` returns true. @returns true if `done` returned true */
  async travel(endMs: number, done: () => Promise<boolean> = async () => false): Promise<boolean> {
    const { clock } = this.#options;
    // The pulse must be read again, because changes by other connections are not counted in `asked`.
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
   * Wakes the process whenever the next event has changed, and when the next slot can be planned, because heartbeats are rare in a tower
   * (see testing.ts).
   * @returns true if it woke the process
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

  /** Returns the time before which nothing relevant happens; null if something may happen at any moment. */
  #calmUntil(endMs: number): number | null {
    const { clock, aheadMs } = this.#options;
    // A running handler may have set timers: for its timeout, or for its own sleep.
    if (this.#running.size > 0 || this.#pulse === undefined) return null;
    const { nextSlotMs, nextHeldMs, nextReadyMs, nextPauseEndMs, nextDirectMs = null, nextMineMs = null } = this.#pulse;
    const openMs = (nextSlotMs ?? Number.POSITIVE_INFINITY) - aheadMs;
    // An overdue run without an addressee waits for a worker that can run it, for an unknown time. So it does not limit how far time leaps.
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

  /**
   * Waits for activity, in short parts of the time: if the machine stops this process for a while, only one part passes, and events that
   * arrived meanwhile are handled before the next part.
   * @returns true if a run or a sleeping handler became active within `ms` of real time
   */
  async #stirred(ms: number): Promise<boolean> {
    const stirred = new AbortController();
    this.#stir = () => stirred.abort();
    for (let part = 0; part < patienceParts && !stirred.signal.aborted; part++)
      await pause(unfakedClock, ms / patienceParts, stirred.signal);
    return stirred.signal.aborted;
  }
}
