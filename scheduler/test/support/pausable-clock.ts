import { type Clock, systemClock } from "../../src/base/clock.ts";

/** The system's clock, but its timers can be held back, like those of a suspended process. */
export class PausableClock implements Clock {
  #held: (() => void)[] | undefined;

  monotonic(): number {
    return systemClock.monotonic();
  }

  wall(): number {
    return systemClock.wall();
  }

  after(ms: number, fire: () => void): () => void {
    let cancelled = false;
    const due = () => {
      if (cancelled) return;
      if (this.#held) this.#held.push(due);
      else fire();
    };
    const cancel = systemClock.after(ms, due);
    return () => {
      cancelled = true;
      cancel();
    };
  }

  pause(): void {
    this.#held ??= [];
  }

  resume(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const due of held) due();
  }
}
