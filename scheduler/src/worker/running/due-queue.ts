import type { HeldRun } from "./held-run.ts";

const priorities = 10;

/** Runs of one task and priority. */
interface Lane {
  taskId: number;
  runs: HeldRun[];
  head: number;
}

/**
 * Runs that are due and wait for a free slot in this process. Higher priorities go first; within a priority the tasks take turns, and each
 * task's runs keep the order in which they came. So a thousand runs of one task delay another task's first run by one place, not by a
 * thousand.
 */
export class DueQueue {
  #lanes: Map<number, Lane>[] = Array.from({ length: priorities }, () => new Map());
  /** The lanes that have runs, per priority, in the order of their turns. */
  #turns: Lane[][] = Array.from({ length: priorities }, () => []);
  #heads: number[] = Array.from({ length: priorities }, () => 0);
  #size = 0;
  /** No waiting run has a higher priority than this. */
  #highest = 0;
  /** No waiting run has waited since before this instant. */
  #oldestMs = Number.POSITIVE_INFINITY;

  get size(): number {
    return this.#size;
  }

  /** The highest priority of a waiting run; 0 when none waits. */
  get priority(): number {
    while (this.#highest > 0 && (this.#lanes[this.#highest] as Map<number, Lane>).size === 0) this.#highest--;
    return this.#highest;
  }

  /** The tasks that have waiting runs. */
  get taskIds(): Set<number> {
    return new Set(this.#lanes.flatMap((lanes) => [...lanes.keys()]));
  }

  /** The tasks that have waiting runs of the highest waiting priority. */
  get firstTaskIds(): number[] {
    return [...(this.#lanes[this.priority] as Map<number, Lane>).keys()];
  }

  push(run: HeldRun, sinceMs: number): void {
    const { taskId, priority } = run.claim;
    const lanes = this.#lanes[priority] as Map<number, Lane>;
    let lane = lanes.get(taskId);
    if (!lane) {
      lane = { taskId, runs: [], head: 0 };
      lanes.set(taskId, lane);
      (this.#turns[priority] as Lane[]).push(lane);
    }
    if (priority > this.#highest) this.#highest = priority;
    run.sinceMs = sinceMs;
    if (sinceMs < this.#oldestMs) this.#oldestMs = sinceMs;
    lane.runs.push(run);
    this.#size++;
  }

  /** Takes over all runs of another queue, which is empty then. */
  join(other: DueQueue): void {
    if (this.#size > 0) {
      for (let run = other.shift(); run !== undefined; run = other.shift()) this.push(run, run.sinceMs);
      return;
    }
    [this.#lanes, other.#lanes] = [other.#lanes, this.#lanes];
    [this.#turns, other.#turns] = [other.#turns, this.#turns];
    [this.#heads, other.#heads] = [other.#heads, this.#heads];
    [this.#size, other.#size] = [other.#size, this.#size];
    [this.#highest, other.#highest] = [other.#highest, this.#highest];
    [this.#oldestMs, other.#oldestMs] = [other.#oldestMs, this.#oldestMs];
  }

  /**
   * Takes out the runs that have waited since before `beforeMs`, except the first `spared` of them in the order of turns.
   * @param fits called for the runs after the spared ones, in the order of turns; only runs for which it returns true are taken. Default:
   * all
   */
  takeOverdue(beforeMs: number, spared: number, fits: (run: HeldRun) => boolean = () => true): HeldRun[] {
    if (this.#oldestMs >= beforeMs) return [];
    this.#oldestMs = Number.POSITIVE_INFINITY;
    const waiting: HeldRun[] = [];
    for (let one = this.shift(); one !== undefined; one = this.shift()) waiting.push(one);
    const taken: HeldRun[] = [];
    let left = spared;
    for (const run of waiting) {
      if (run.sinceMs < beforeMs && left-- <= 0 && fits(run)) taken.push(run);
      else this.push(run, run.sinceMs);
    }
    return taken;
  }

  shift(): HeldRun | undefined {
    if (this.#size === 0) return undefined;
    const { priority } = this;
    const lane = (this.#turns[priority] as Lane[])[this.#heads[priority] as number] as Lane;
    const one = lane.runs[lane.head] as HeldRun;
    this.#size--;
    lane.head++;
    const left = lane.head < lane.runs.length;
    if (left && lane.head >= 1_024 && lane.head * 2 >= lane.runs.length) {
      lane.runs.splice(0, lane.head);
      lane.head = 0;
    }
    if (!left) (this.#lanes[priority] as Map<number, Lane>).delete(lane.taskId);
    this.#nextTurn(priority, left ? lane : undefined);
    return one;
  }

  /** Called when the lane at the head has had its turn; if it has runs left, it goes to the end of the turns. */
  #nextTurn(priority: number, lane: Lane | undefined): void {
    const turns = this.#turns[priority] as Lane[];
    const head = this.#heads[priority] as number;
    if (lane !== undefined && head + 1 === turns.length && head === 0) return;
    if (lane !== undefined) turns.push(lane);
    this.#heads[priority] = head + 1;
    if (head + 1 === turns.length || head + 1 >= 1_024) {
      turns.splice(0, head + 1);
      this.#heads[priority] = 0;
    }
  }
}
