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

/** The shortest `late` that can be configured. */
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
 * Reports late starts to the store, where the leader finds them. Every process that starts runs, or has workers behind it, does this,
 * whichever processes have alarms configured: the store knows from when on a start is late, or that no process looks for late starts; then
 * they are forgotten. A process without late starts sends nothing.
 */
export class LateStarts {
  readonly #options: LateStartsOptions;
  #starts: Start[] = [];
  /** Later starts than this are collected: the alarms' limit, as the store gave it last. */
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

  /** Reports what is left. */
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
      // They are reported with the next starts. While the store is away, the store client itself logs the failure.
      this.#starts = [...starts, ...this.#starts].slice(0, keptMost);
      if (!isCarillonError(error)) log.error({ error: messageOf(error) }, "late starts could not be reported");
    }
  }
}

/** One finding per task: ten thousand late starts of one task are one. Of very many tasks, those with the latest starts are reported. */
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
