import type { HeldRun } from "./held-run.ts";

const priorities = 10;

interface Lane {
  runs: HeldRun[];
  head: number;
}

/** Runs that are due and wait for a free place in this process: by priority, then in the order they came. */
export class DueQueue {
  readonly #lanes: Lane[] = Array.from({ length: priorities }, () => ({ runs: [], head: 0 }));
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(run: HeldRun): void {
    (this.#lanes[run.claim.priority] as Lane).runs.push(run);
    this.#size++;
  }

  shift(): HeldRun | undefined {
    for (let priority = priorities - 1; priority >= 0 && this.#size > 0; priority--) {
      const lane = this.#lanes[priority] as Lane;
      const run = lane.runs[lane.head];
      if (run === undefined) continue;
      this.#size--;
      lane.head++;
      if (lane.head === lane.runs.length) {
        lane.runs = [];
        lane.head = 0;
      }
      return run;
    }
    return undefined;
  }

  /** Takes out what came due before `dueMs`, sparing the first `spared` of it. */
  takeOverdue(dueMs: number, spared: number): HeldRun[] {
    const taken: HeldRun[] = [];
    let left = spared;
    for (const lane of this.#lanes.toReversed()) {
      const kept: HeldRun[] = [];
      for (const run of lane.runs.slice(lane.head)) {
        if (run.claim.dueMs < dueMs && left-- <= 0) taken.push(run);
        else kept.push(run);
      }
      lane.runs = kept;
      lane.head = 0;
    }
    this.#size -= taken.length;
    return taken;
  }
}
