import type { Clock } from "../base/clock.ts";
import { CarillonError } from "../base/errors.ts";
import type { RunNotice } from "../run/handler.ts";
import type { Store } from "../store/store.ts";
import type { Metrics, Scraped } from "./metrics.ts";
import type { Exposed } from "./open-metrics.ts";
import type { Tracing } from "./tracing.ts";

/** The optional metrics of a process. The code of the metrics is loaded only if they are on. */
export class Measuring {
  readonly #clock: Clock | null;
  readonly #onRun: (listener: (notice: RunNotice) => void) => void;
  #metrics: Metrics | undefined;

  /** @param clock null if metrics are off */
  constructor(clock: Clock | null, onRun: (listener: (notice: RunNotice) => void) => void) {
    this.#clock = clock;
    this.#onRun = onRun;
  }

  async around(store: Store): Promise<Store> {
    if (this.#clock === null) return store;
    if (!this.#metrics) {
      const metrics = new (await import("./metrics.ts")).Metrics(this.#clock);
      this.#metrics = metrics;
      this.#onRun((notice) => metrics.notice(notice));
    }
    return this.#metrics.around(store);
  }

  /** Records how late a run's first attempt started, in ms. */
  started(lateMs: number): void {
    this.#metrics?.started(lateMs);
  }

  /**
   * Exports the metrics to OpenTelemetry, if the program has registered a provider of meters.
   * @returns a function that ends the export; undefined if metrics are off
   */
  export(state: () => Scraped): Promise<() => void> | undefined {
    return this.#metrics?.export(state);
  }

  /** Links the metrics of runs to the traces of these runs. @returns `tracing` */
  follow(tracing: Tracing | undefined): Tracing | undefined {
    this.#metrics?.follow(tracing);
    return tracing;
  }

  /** Returns the metrics for a scrape. @param accept the Accept header of the request @throws OPTION_INVALID if metrics are off */
  async read(scraped: Scraped, accept?: string): Promise<Exposed> {
    const metrics = this.#metrics;
    if (!metrics)
      throw new CarillonError("OPTION_INVALID", "this Carillon does not measure", {
        hint: "Make it with metrics: true; one that listens measures anyway.",
      });
    return metrics.read(scraped, accept);
  }
}
