import { type Clock, limitedTo } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { AlarmSettings } from "../../settings/alarms/alarms.ts";
import type { Store } from "../../store/store.ts";
import type { StoreClock } from "../../store/store-clock.ts";

/** Calls the ping's URL. Rejects unless the status is 2xx. */
export type CallPing = (signal: AbortSignal) => Promise<void>;

interface PingOptions {
  store: Pick<Store, "alarms">;
  storeClock: StoreClock;
  clock: Clock;
  log: Log;
  settings: AlarmSettings;
  call: CallPing;
}

const patienceMs = 20_000;

/**
 * Calls a URL at intervals, so that an external monitor can raise an alarm when the calls stop: no process of the cluster could report that
 * the whole cluster is down. The leader does this, and only while slots are planned and due runs are claimed in time.
 */
export class Ping {
  readonly #options: PingOptions;
  #atMs = Number.NEGATIVE_INFINITY;
  #flight: Promise<void> | undefined;
  /** The reason why the last ping was withheld or failed; null if it succeeded. */
  #amiss: string | null = null;

  constructor(options: PingOptions) {
    this.#options = options;
  }

  /** Called at each heartbeat of the leader; sends a ping if one is due. */
  beat(signal: AbortSignal): void {
    const { clock, settings } = this.#options;
    const now = clock.monotonic();
    if (settings.ping === null || this.#flight || now - this.#atMs < settings.ping.everyMs) return;
    this.#atMs = now;
    this.#flight = this.#ping(signal).finally(() => {
      this.#flight = undefined;
    });
  }

  async stop(): Promise<void> {
    await this.#flight;
  }

  async #ping(signal: AbortSignal): Promise<void> {
    const { store, storeClock, settings, call, clock } = this.#options;
    try {
      await limitedTo(clock, patienceMs, signal, async (limited) => {
        const behind = await store.alarms.behind(settings, storeClock.now());
        if (behind === null) await call(limited);
        this.#tell(behind);
      });
    } catch (error) {
      if (!signal.aborted) this.#tell(messageOf(error));
    }
  }

  /** Logs when pings begin to fail or to be withheld, and when they succeed again. */
  #tell(amiss: string | null): void {
    const { log } = this.#options;
    const before = this.#amiss;
    this.#amiss = amiss;
    if (amiss !== null && before === null) log.warn({ why: amiss }, "the ping is not given");
    else if (amiss === null && before !== null) log.info({}, "the ping is given again");
  }
}
