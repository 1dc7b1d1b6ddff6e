import type { Random } from "../../../scheduler/src/base/random.ts";
import type { Universe } from "./universe.ts";

/** How bad the network is; chances are per message. */
export interface Weather {
  /** Latency of one way, for most messages. */
  readonly leastMs: number;
  readonly mostMs: number;
  readonly slowChance: number;
  readonly slowMostMs: number;
  /** The connection breaks after the server has carried out the request, before its answer arrives. */
  readonly replyLost: number;
  /** The connection breaks before the request reaches the server. */
  readonly requestLost: number;
  readonly signalLost: number;
  readonly signalDoubled: number;
  readonly signalLate: number;
  /** Planned slots take still longer on their way to the store, so that the definition that they were planned from is edited meanwhile. */
  readonly slotsLate: number;
}

export const fairWeather: Weather = {
  leastMs: 0.1,
  mostMs: 1.5,
  slowChance: 0,
  slowMostMs: 0,
  replyLost: 0,
  requestLost: 0,
  signalLost: 0,
  signalDoubled: 0,
  signalLate: 0,
  slotsLate: 0,
};

/** The direction of a machine's line to a service in which everything is held back. */
export type Cut = "none" | "to" | "from" | "both";

/** The lines between machines and services. Messages on a cut line wait, as in TCP, until the line is mended. */
export class Network {
  readonly universe: Universe;
  readonly #random: Random;
  weather: Weather = fairWeather;
  longestMs = 0;
  readonly #cuts = new Map<string, Cut>();
  readonly #held = new Map<string, (() => void)[]>();

  constructor(universe: Universe, random: Random) {
    this.universe = universe;
    this.#random = random;
  }

  chance(of: number): boolean {
    return of > 0 && this.#random.next() < of;
  }

  between(least: number, most: number): number {
    return least + this.#random.next() * (most - least);
  }

  latency(): number {
    const { leastMs, mostMs, slowChance, slowMostMs } = this.weather;
    const ms = this.chance(slowChance) ? this.between(mostMs, slowMostMs) : this.between(leastMs, mostMs);
    this.longestMs = Math.max(this.longestMs, ms);
    return ms;
  }

  /** @param line machine and service, such as "n1 store" */
  cut(line: string, how: Cut): void {
    this.#cuts.set(line, how);
    if (how !== "none") return;
    const held = this.#held.get(line) ?? [];
    this.#held.delete(line);
    // TCP tries again at growing intervals.
    const againMs = this.between(10, 1_000);
    for (const [i, send] of held.entries()) this.universe.after(againMs + i * 0.01, send);
  }

  isCut(line: string, way: "to" | "from"): boolean {
    const how = this.#cuts.get(line) ?? "none";
    return how === "both" || how === way;
  }

  /** Calls `arrive` when the message arrives; a cut line holds it back. */
  send(line: string, way: "to" | "from", afterMs: number, arrive: () => void | Promise<void>): void {
    this.universe.after(afterMs, () => {
      if (!this.isCut(line, way)) return arrive();
      const held = this.#held.get(line) ?? [];
      held.push(() => this.send(line, way, 0, arrive));
      this.#held.set(line, held);
    });
  }

  /** Mends all cuts, at once and for good. */
  heal(): void {
    this.weather = fairWeather;
    for (const [line, how] of this.#cuts) if (how !== "none") this.cut(line, "none");
  }
}
