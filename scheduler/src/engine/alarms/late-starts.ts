import type { Finding } from "../../alarms/alarms.ts";
import type { Clock } from "../../base/clock.ts";
import { isCarillonError, messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Membership } from "../../cluster/membership.ts";
import type { Store } from "../../store/store.ts";
import type { StoreClock } from "../../store/store-clock.ts";

export interface LateStartsOptions {
  store: Pick<Store, "alarms">;
  membership: Pick<Membership, "onPulse">;
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
}

/** The shortest value that the alarm setting `late` can have, in ms. */
const leastLateMs = 100;
const reportEveryMs = 2_500;
const keptMost = 10_000;
const tasksMost = 100;

interface Start {
  task: string;
  runId: number;
  lateMs: number;
}

/**
 * Reports late starts of runs to the store, where the leader reads them for the alarm `late`. Every process that starts runs, or
 * has remote workers, does this, even if it has no alarms configured: the store returns the lateness above which a start counts
 * as late, or null if no process evaluates this alarm, and the collected starts are then dropped. A process without late starts
 * sends nothing.
 */
export class LateStarts {
  readonly #options: LateStartsOptions;
  #starts: Start[] = [];
  /** The lateness in ms above which starts are collected: the alarm's limit as last returned by the store. */
  #fromMs = leastLateMs;
  #askedMono = Number.NEGATIVE_INFINITY;
  #flight: Promise<void> | undefined;

  constructor(options: LateStartsOptions) {
    this.#options = options;
    options.membership.onPulse(() => this.#onPulse());
  }

  add(task: string, runId: number, lateMs: number): void {
    if (lateMs > this.#fromMs && this.#starts.length < keptMost) this.#starts.push({ task, runId, lateMs });
  }

  /** Reports the starts that have not been reported yet. */
  async stop(): Promise<void> {
    await this.#flight;
    if (this.#starts.length > 0) await this.#report();
  }

  #onPulse(): void {
    if (this.#starts.length === 0 || this.#flight) return;
    if (this.#options.clock.monotonic() - this.#askedMono < reportEveryMs) return;
    this.#flight = this.#report().finally(() => {
      this.#flight = undefined;
    });
  }

  async #report(): Promise<void> {
    const { store, storeClock, clock, log } = this.#options;
    this.#askedMono = clock.monotonic();
    const starts = this.#starts;
    this.#starts = [];
    try {
      const fromMs = await store.alarms.lateFrom(storeClock.now());
      this.#fromMs = fromMs ?? leastLateMs;
      const findings = fromMs === null ? [] : findingsOf(starts.filter(({ lateMs }) => lateMs > fromMs));
      if (findings.length > 0) await store.alarms.report(findings, storeClock.now());
    } catch (error) {
      // These starts are kept and reported with the next ones. An unreachable store is logged by the store client.
      this.#starts = [...starts, ...this.#starts].slice(0, keptMost);
      if (!isCarillonError(error)) log.error({ error: messageOf(error) }, "late starts could not be reported");
    }
  }
}

/** Returns one finding per task, with the number of its late starts; at most `tasksMost`, those with the greatest lateness. */
function findingsOf(starts: readonly Start[]): Finding[] {
  const worst = new Map<string, Start & { count: number }>();
  for (const start of starts) {
    const { count = 0, ...before } = worst.get(start.task) ?? { ...start, count: 0 };
    worst.set(start.task, { ...(before.lateMs > start.lateMs ? before : start), count: count + 1 });
  }
  return [...worst.values()]
    .sort((one, other) => other.lateMs - one.lateMs)
    .slice(0, tasksMost)
    .map(({ task, runId, lateMs, count }) => {
      const text = `started up to ${Math.round(lateMs / 1_000)} s late`;
      return { rule: "late", subject: task, count, text, runId };
    });
}
