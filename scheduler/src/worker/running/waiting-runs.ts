import { Heap } from "../../base/heap.ts";
import { DueQueue } from "./due-queue.ts";
import type { HeldRun } from "./held-run.ts";

/** From this many runs of one time on, they are queued before they are due. */
const many = 64;
const punctualMs = 100;

/**
 * Claimed runs that wait for their due time. Runs of one due time are kept together, and many of them are queued in a `DueQueue` already:
 * at a minute's start ten thousand are due at once, and moving them from a heap into the queue took a third of the time of starting them
 * all.
 */
export class WaitingRuns {
  readonly #times = new Heap<{ some: HeldRun[] | DueQueue }>();
  readonly #byTime = new Map<number, { some: HeldRun[] | DueQueue }>();

  /** The earliest time; undefined when nothing waits. */
  get least(): number | undefined {
    return this.#times.least;
  }

  push(run: HeldRun): void {
    const { dueMs } = run.claim;
    const place = this.#byTime.get(dueMs);
    if (!place) {
      const first = { some: [run] };
      this.#byTime.set(dueMs, first);
      this.#times.push(dueMs, first);
    } else if (place.some instanceof DueQueue) place.some.push(run, dueMs);
    else {
      place.some.push(run);
      if (place.some.length < many) return;
      const line = new DueQueue();
      for (const one of place.some) line.push(one, dueMs);
      place.some = line;
    }
  }

  /** Moves all runs of the earliest due time into `line`. Runs that are late are queued with `nowMs` as the start of their wait. */
  shiftInto(line: DueQueue, nowMs: number): void {
    const { least } = this;
    if (least === undefined) return;
    this.#byTime.delete(least);
    const { some } = this.#times.pop() as { some: HeldRun[] | DueQueue };
    if (!(some instanceof DueQueue)) for (const run of some) line.push(run, nowMs);
    else if (nowMs - least < punctualMs) line.join(some);
    else for (let run = some.shift(); run !== undefined; run = some.shift()) line.push(run, nowMs);
  }
}

/** The waiting runs, except the `spared` earliest ones among those due before `dueBeforeMs`. */
export function waitingOf(held: Iterable<HeldRun>, dueBeforeMs: number, spared: number): HeldRun[] {
  const waiting = [...held].filter(({ state }) => state === "waiting");
  let left = spared;
  return waiting
    .sort((a, b) => a.claim.dueMs - b.claim.dueMs)
    .filter(({ claim }) => claim.dueMs >= dueBeforeMs || left-- <= 0);
}
