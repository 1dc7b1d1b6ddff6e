import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";

/** After this number of failures from one network, unknown clients from there are refused until the window ends. */
const failuresMost = 20;
const windowMs = 60_000;
const addressesMost = 10_000;

interface Window {
  endsMono: number;
  failures: number;
}

/**
 * Limits failed attempts per network and window; attempts above the limit cost the store next to nothing. Memory is bounded: when it is
 * full, each new network is treated as one that has exceeded the limit.
 */
export class FailedAttempts {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #what: string;
  /** In the order in which the windows end. */
  readonly #windows = new Map<string, Window>();

  /** @param what the kind of credential, named in the log */
  constructor(clock: Clock, log: Log, what: string) {
    this.#clock = clock;
    this.#log = log;
    this.#what = what;
  }

  /** @returns for how many ms unknown clients from this network are still refused; 0: they are not refused */
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

/** An IPv6 network of 64 bits counts as one address, since one party can have any number of addresses in it. */
export function networkOf(address: string): string {
  const [, v4] = /^(?:::ffff:)?(\d+\.\d+\.\d+\.\d+)$/i.exec(address) ?? [];
  if (v4 !== undefined) return v4;
  if (!address.includes(":")) return address.slice(0, 64);
  const [head = "", tail] = address.split("%")[0]?.split("::") ?? [];
  const groups = head === "" ? [] : head.split(":");
  // "::" stands for the groups of zeros that complete the address.
  if (tail !== undefined) {
    const rest = tail === "" ? [] : tail.split(":");
    while (groups.length + rest.length < 8) groups.push("0");
    groups.push(...rest);
  }
  const network = groups.slice(0, 4).map((group) => group.toLowerCase().replace(/^0+(?=.)/, ""));
  return `${network.join(":").slice(0, 64)}::/64`;
}
