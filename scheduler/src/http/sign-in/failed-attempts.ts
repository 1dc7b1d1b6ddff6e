import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";

/** So many failures of one address within the window, and until it ends strangers from there are turned away. */
const failuresMost = 20;
const windowMs = 60_000;
const addressesMost = 10_000;

interface Window {
  endsMono: number;
  failures: number;
}

/**
 * Makes true: whoever tries keys is told no so often a minute, and costs the store next to nothing after that. In memory
 * of bounded size: with more addresses than fit, all that are new are taken for those that have tried too often.
 */
export class FailedAttempts {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #what: string;
  /** In the order in which their windows end. */
  readonly #windows = new Map<string, Window>();

  /** @param what is tried, for the log */
  constructor(clock: Clock, log: Log, what: string) {
    this.#clock = clock;
    this.#log = log;
    this.#what = what;
  }

  /** @returns for how long yet strangers from this network are turned away; 0: they are not */
  turnedAwayMs(network: string): number {
    const nowMono = this.#clock.monotonic();
    this.#forget(nowMono);
    const window = this.#windows.get(network);
    if (window) return window.failures < failuresMost ? 0 : window.endsMono - nowMono;
    const [oldest] = this.#windows.size < addressesMost ? [] : this.#windows.values();
    return oldest ? oldest.endsMono - nowMono : 0;
  }

  failed(network: string): void {
    const nowMono = this.#clock.monotonic();
    this.#forget(nowMono);
    const window = this.#windows.get(network);
    if (window) {
      window.failures++;
      if (window.failures === failuresMost)
        this.#log.warn(
          { network, failures: failuresMost, forMs: Math.round(window.endsMono - nowMono) },
          `too many ${this.#what} from there were wrong: others that are not known yet wait`,
        );
    } else if (this.#windows.size < addressesMost) {
      this.#windows.set(network, { endsMono: nowMono + windowMs, failures: 1 });
    }
  }

  #forget(nowMono: number): void {
    for (const [network, { endsMono }] of this.#windows) {
      if (endsMono > nowMono) return;
      this.#windows.delete(network);
    }
  }
}

/** What one party can have as many addresses of as it likes counts as one: an IPv6 network of 64 bits. */
export function networkOf(address: string): string {
  const [, v4] = /^(?:::ffff:)?(\d+\.\d+\.\d+\.\d+)$/i.exec(address) ?? [];
  if (v4 !== undefined) return v4;
  if (!address.includes(":")) return address.slice(0, 64);
  const [head = "", tail] = address.split("%")[0]?.split("::") ?? [];
  const groups = head === "" ? [] : head.split(":");
  // "::" stands for as many zeros as are missing.
  if (tail !== undefined) {
    const rest = tail === "" ? [] : tail.split(":");
    while (groups.length + rest.length < 8) groups.push("0");
    groups.push(...rest);
  }
  const network = groups.slice(0, 4).map((group) => group.toLowerCase().replace(/^0+(?=.)/, ""));
  return `${network.join(":").slice(0, 64)}::/64`;
}
