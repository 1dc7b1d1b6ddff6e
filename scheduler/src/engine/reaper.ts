import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Pulse } from "../cluster/session-store.ts";
import type { Store } from "../store/store.ts";
import type { StoreClock } from "../store/store-clock.ts";
import { SingleFlight } from "./single-flight.ts";

export interface ReaperOptions {
  store: Store;
  membership: Membership;
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
}

const runsPerStep = 1_000;
/** The interval in ms between checks while claims of a dead worker wait for the end of their grace period. */
const lookMs = 250;

/**
 * Guarantees that a dead worker's claim ends when its task's grace period has passed (at once if no start was recorded), and that the run
 * is then retried, fails, or waits for an operator's decision, according to the task. Every node may do this; each claim is taken back only
 * once, by its fence.
 */
export class Reaper {
  readonly #options: ReaperOptions;
  readonly #flight: SingleFlight;
  #ended: Pulse["ended"] = [];
  #cancel: () => void = () => undefined;

  constructor(options: ReaperOptions) {
    this.#options = options;
    this.#flight = new SingleFlight("reaper", options.log, () => this.#reap());
  }

  onPulse({ ended }: Pulse): void {
    this.#ended = ended;
    if (ended.length > 0) void this.#flight.run();
  }

  stop(): Promise<void> {
    this.#cancel();
    return this.#flight.stop();
  }

  async #reap(): Promise<void> {
    const { store, membership, clock, storeClock, log } = this.#options;
    this.#cancel();
    if (!membership.trusted()) return;
    for (const { sessionId, endedMs } of this.#ended) {
      const silentForMs = storeClock.now() - endedMs;
      for (;;) {
        const runs = await store.claims.reclaim(sessionId, silentForMs, storeClock.now(), runsPerStep);
        if (runs.length > 0) {
          const count = (...of: string[]) => runs.filter(({ outcome }) => of.includes(outcome)).length;
          const [again, failed, undecided] = [count("retry", "release"), count("fail"), count("ask")];
          log.warn({ session: sessionId, again, failed, undecided }, "took back the claims of a dead worker");
        }
        if (runs.length < runsPerStep) break;
      }
    }
    // Claims may be left whose grace period ends before the next heartbeat.
    if (this.#ended.length > 0) this.#cancel = clock.after(lookMs, () => void this.#flight.run());
  }
}
