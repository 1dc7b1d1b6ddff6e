import { Heap } from "../../base/heap.ts";
import { DueQueue } from "./due-queue.ts";
import type { HeldRun } from "./held-run.ts";

/** If at least this many runs share a due time, they are moved into a `DueQueue` before they are due. */
const many = 64;
const punctualMs = 100;

/**
 * Claimed runs that wait for their due time, grouped by due time. Large groups are put into a `DueQueue` ahead of time: if ten thousand
 * runs are due at the start of a minute, moving them from a heap into the queue takes a third of the time that all starts take.
 */
export class WaitingRuns {
  readonly #times = new Heap<{ some: HeldRun[] | DueQueue }>();
  readonly #byTime = new Map<number, { some: HeldRun[] | DueQueue }>();

  /** The earliest due time, by the store's clock; undefined when no run waits. */
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

  /**
   * Moves all runs of the earliest due time into `line`. Their wait for a slot counts from `nowMs`, except in a large group that is less
   * than `punctualMs` late: there the wait counts from the due time.
   */
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

/** Returns the waiting runs by due time, without the `spared` earliest of those that are due before `dueBeforeMs`. */
export function waitingOf(held: Iterable<HeldRun>, dueBeforeMs: number, spared: number): HeldRun[] {
  const waiting = [...held].filter(({ state }) => state === "waiting");
  let left = spared;
  return waiting
    .sort((a, b) => a.claim.dueMs - b.claim.dueMs)
    .filter(({ claim }) => claim.dueMs >= dueBeforeMs || left-- <= 0);
}
