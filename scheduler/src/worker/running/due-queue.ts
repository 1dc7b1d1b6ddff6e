import type { HeldRun } from "./held-run.ts";

const priorities = 10;

/** The waiting runs of one task and priority, in order of arrival. `head` is the index of the next run to start. */
interface Lane {
  taskId: number;
  runs: HeldRun[];
  head: number;
}

/**
 * Queue of runs that are due and wait for a free slot in this process. Higher priorities go first. Within a priority the tasks alternate,
 * one run at a time, and each task's runs keep the order in which they arrived. So a thousand runs of one task delay another task's first
 * run by one place, not by a thousand.
 */
export class DueQueue {
  #lanes: Map<number, Lane>[] = Array.from({ length: priorities }, () => new Map());
  /** By priority: the lanes that have runs, in the order in which their next runs start. */
  #turns: Lane[][] = Array.from({ length: priorities }, () => []);
  #heads: number[] = Array.from({ length: priorities }, () => 0);
  #size = 0;
  /** Upper bound of the priorities of the waiting runs. */
  #highest = 0;
  /** Lower bound of the times at which the waiting runs began to wait, by the store's clock in ms. */
  #oldestMs = Number.POSITIVE_INFINITY;

  get size(): number {
    return this.#size;
  }

  /** The highest priority of a waiting run; 0 if no run waits. */
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

  /** Moves all runs of another queue into this one; the other queue is empty afterwards. */
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
   * Removes and returns the runs that have waited since before `beforeMs`, except the first `spared` of them in the order in which they
   * would start.
   * @param fits called for the runs after the spared ones, in the same order; a run is removed only if it returns true. Without `fits`, all
   * these runs are removed
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

  /** Called after the first lane's run was taken. The lane moves to the end of the order; undefined: the lane is empty and is left out. */
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
