import type { Random } from "../../src/base/random.ts";
import type { Signal, SignalStore } from "../../src/cluster/signal-store.ts";
import type { VirtualClock } from "./virtual-clock.ts";

export interface Losses {
  lose: number;
  double: number;
  /** The largest delay in ms. Each copy of a signal has its own random delay, so signals overtake each other. */
  delayMs: number;
}

/** Simulates a bad network: some signals are lost, some arrive twice, and each copy arrives after its own delay, by the node's clock. */
export function lossySignals(signals: SignalStore, clock: VirtualClock, random: Random, losses: Losses): SignalStore {
  return {
    listen: (listener, stop) =>
      signals.listen((signal: Signal) => {
        if (random.next() < losses.lose) return;
        const copies = random.next() < losses.double ? 2 : 1;
        for (let i = 0; i < copies; i++) {
          clock.after(random.next() * losses.delayMs, () => {
            if (!stop.aborted) listener(signal);
          });
        }
      }, stop),
  };
}
