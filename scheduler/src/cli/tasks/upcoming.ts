import { pause, systemClock } from "../../base/clock.ts";
import { isCarillonError } from "../../base/errors.ts";
import type { Signal } from "../../cluster/signal-store.ts";
import type { Carillon } from "../../library/carillon.ts";
import type { RunRecord } from "../../run/run-record.ts";
import { compileSchedule } from "../../schedule/schedule.ts";
import { nextDue } from "../../slots/upcoming-slots.ts";
import type { TaskRecord } from "../../task/task-record.ts";
import type { UpcomingFire } from "../screen/live-state.ts";

const enqueuedMost = 50;
/** The delay in ms between a signal and the read that it causes, so that many signals in a short time cause one read. */
const gatherMs = 500;

/** The upcoming runs: slots that are computed here from the definitions, and enqueued runs that are not due yet. */
export class Upcoming {
  readonly #tower: Carillon;
  readonly #over: AbortSignal;
  readonly #next = new Map<string, number | null>();
  #tasks: TaskRecord[] = [];
  #enqueued: RunRecord[] = [];
  #stale = true;
  #told: () => void = () => undefined;
  /** Resolves after the first read of the store. */
  readonly ready = new Promise<void>((resolve) => {
    this.#told = resolve;
  });
  #wake: () => void = () => undefined;

  constructor(tower: Carillon, over: AbortSignal) {
    this.#tower = tower;
    this.#over = over;
  }

  /** Reads the store once, then again after each signal that may change upcoming runs, until the signal `over` aborts. */
  async follow(): Promise<void> {
    const { store } = await this.#tower.open();
    await this.#read();
    this.#told();
    const heard = store.signals.listen((signal) => this.#hear(signal), this.#over);
    while (!this.#over.aborted) {
      if (!this.#stale) await new Promise<void>((resolve) => this.#onWake(resolve));
      await pause(systemClock, gatherMs, this.#over);
      if (!this.#over.aborted) await this.#read();
    }
    await heard;
  }

  #onWake(resolve: () => void): void {
    this.#wake = resolve;
    this.#over.addEventListener("abort", resolve, { once: true });
  }

  #hear({ kind }: Signal): void {
    if (kind === "recall" || kind === "leadership" || kind === "beat" || kind === "prompt") return;
    this.#stale = true;
    this.#wake();
  }

  async #read(): Promise<void> {
    const { store, nowMs } = await this.#tower.open();
    this.#stale = false;
    try {
      this.#tasks = await store.tasks.list();
      this.#enqueued = await store.runs.list({ states: ["ready"], sinceMs: Math.round(nowMs()), limit: enqueuedMost });
      this.#next.clear();
    } catch (error) {
      // Read errors are ignored: the `Carillon` logs that the store is unreachable, and the signal after the outage causes another read.
      if (!isCarillonError(error)) throw error;
    }
  }

  /** The `count` upcoming runs that are due first. */
  at(nowMs: number, count: number): UpcomingFire[] {
    const fires: { atMs: number; task: string; words: () => string }[] = [];
    for (const record of this.#tasks) {
      const atMs = this.#nextDue(record, nowMs);
      const words = () => compileSchedule(record.definition.schedule).words();
      if (atMs !== null) fires.push({ atMs, task: record.name, words });
    }
    for (const { source, dueMs, task, key } of this.#enqueued) {
      const words = () => (key === null ? "once" : `once, key ${key}`);
      if (source !== "slot" && dueMs > nowMs) fires.push({ atMs: dueMs, task, words });
    }
    // Descriptions are created only for the runs that are returned, because this method is called several times a second.
    const first = fires.sort((a, b) => a.atMs - b.atMs).slice(0, count);
    return first.map(({ words, ...fire }) => ({ ...fire, words: words() }));
  }

  #nextDue(record: TaskRecord, nowMs: number): number | null {
    const known = this.#next.get(record.name);
    if (known === null || (known !== undefined && known > nowMs)) return known;
    const next = nextDue(record, nowMs);
    this.#next.set(record.name, next);
    // Only the store knows the next slot of a fixed delay, so the slot computed here may be in the past, and is then not shown.
    return next !== null && next > nowMs ? next : null;
  }
}
