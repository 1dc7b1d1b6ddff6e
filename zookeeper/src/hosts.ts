import type { Host } from "./connect-string.ts";
import { limits } from "./limits.ts";

/**
 * In which order servers are tried, and how long to wait between rounds. Shuffled, so that the clients of a server that
 * died spread over the others; jittered, so that they do not come in step.
 */
export class Hosts {
  readonly #hosts: readonly Host[];
  readonly #random: () => number;
  #next = 0;
  #rounds = 0;

  /** @param random from 0 up to 1 */
  constructor(hosts: readonly Host[], random: () => number) {
    const shuffled = [...hosts];
    for (let last = shuffled.length - 1; last > 0; last--) {
      const other = Math.floor(random() * (last + 1));
      [shuffled[last], shuffled[other]] = [shuffled[other] as Host, shuffled[last] as Host];
    }
    this.#hosts = shuffled;
    this.#random = random;
  }

  get count(): number {
    return this.#hosts.length;
  }

  /** In a row, in which none served. */
  get failedRounds(): number {
    return this.#rounds;
  }

  take(): Host {
    const host = this.#hosts[this.#next % this.#hosts.length] as Host;
    this.#next += 1;
    return host;
  }

  /** The last one taken serves. */
  served(): void {
    this.#next %= this.#hosts.length;
    this.#rounds = 0;
    this.#sinceServed = 0;
  }

  #sinceServed = 0;

  /** The last one taken does not serve. @returns how long to wait, in ms, before the next: 0 within a round */
  failed(): number {
    this.#sinceServed += 1;
    if (this.#sinceServed % this.#hosts.length !== 0) return 0;
    const full = Math.min(limits.maxBackoffMs, limits.firstBackoffMs * 2 ** this.#rounds);
    this.#rounds = Math.min(this.#rounds + 1, 16);
    return full * (0.5 + this.#random() / 2);
  }
}
