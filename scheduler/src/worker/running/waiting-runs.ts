import { Heap } from "../../base/heap.ts";
import { DueQueue } from "./due-queue.ts";
import type { HeldRun } from "./held-run.ts";

/** From so many on they stand in line before their time comes. */
const many = 64;
const punctualMs = 100;

/**
 * Claimed runs that wait for their time. Those of one time lie together, and where they are many they stand in line already: what comes
 * due at a minute's start are ten thousand at once, and to take them out of a heap and put them in line took a third of the time
 * that it took to start them all.
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

  /** Puts all of the earliest time in line. What comes late waits there since now. */
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

/** Those that wait, save so many that are due before then, the earliest first. */
export function waitingOf(held: Iterable<HeldRun>, dueBeforeMs: number, spared: number): HeldRun[] {
  const waiting = [...held].filter(({ state }) => state === "waiting");
  let left = spared;
  return waiting
    .sort((a, b) => a.claim.dueMs - b.claim.dueMs)
    .filter(({ claim }) => claim.dueMs >= dueBeforeMs || left-- <= 0);
}
