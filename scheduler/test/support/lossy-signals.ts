import type { Random } from "../../src/base/random.ts";
import type { Signal, SignalStore } from "../../src/cluster/signal-store.ts";
import type { VirtualClock } from "./virtual-clock.ts";

export interface Losses {
  lose: number;
  double: number;
  /** Each copy arrives at a random moment within this time, so that signals overtake each other. */
  delayMs: number;
}

/** Signals over a bad network: some lost, some twice, each late by its own delay on the node's clock. */
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
