import type { Random } from "../../../scheduler/src/base/random.ts";
import type { Universe } from "./universe.ts";

/** The quality of the network; each chance (0 to 1) applies to one message. */
export interface Weather {
  /** Bounds of the one-way latency in ms; a slow message takes up to `slowMostMs`. */
  readonly leastMs: number;
  readonly mostMs: number;
  readonly slowChance: number;
  readonly slowMostMs: number;
  /** Chance that the connection breaks after the server has executed the request, before the answer arrives. */
  readonly replyLost: number;
  /** Chance that the connection breaks before the request reaches the server. */
  readonly requestLost: number;
  readonly signalLost: number;
  readonly signalDoubled: number;
  readonly signalLate: number;
  /** Chance that a statement with planned slots is delayed, so that the task may be edited before the statement arrives. */
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

/** The directions of a machine's line to a service in which messages are held back. */
export type Cut = "none" | "to" | "from" | "both";

/** The network lines between machines and services. Messages on a cut line wait, as in TCP, until the line is restored. */
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

  /** @param line machine and service, such as "n1 store" @param how "none" restores the line */
  cut(line: string, how: Cut): void {
    this.#cuts.set(line, how);
    if (how !== "none") return;
    const held = this.#held.get(line) ?? [];
    this.#held.delete(line);
    // TCP retransmits at growing intervals, so the held messages arrive some time later.
    const againMs = this.between(10, 1_000);
    for (const [i, send] of held.entries()) this.universe.after(againMs + i * 0.01, send);
  }

  isCut(line: string, way: "to" | "from"): boolean {
    const how = this.#cuts.get(line) ?? "none";
    return how === "both" || how === way;
  }

  /** Calls `arrive` after `afterMs` when the message arrives; a cut line holds the message back. */
  send(line: string, way: "to" | "from", afterMs: number, arrive: () => void | Promise<void>): void {
    this.universe.after(afterMs, () => {
      if (!this.isCut(line, way)) return arrive();
      const held = this.#held.get(line) ?? [];
      held.push(() => this.send(line, way, 0, arrive));
      this.#held.set(line, held);
    });
  }

  /** Restores all cut lines and the fair weather. */
  heal(): void {
    this.weather = fairWeather;
    for (const [line, how] of this.#cuts) if (how !== "none") this.cut(line, "none");
  }
}
