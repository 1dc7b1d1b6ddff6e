import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";

/** After this number of failures from one network, clients with unknown credentials from there are limited until the window ends. */
const failuresMost = 20;
const windowMs = 60_000;
const addressesMost = 10_000;

interface Window {
  endsMono: number;
  failures: number;
  /** The credentials whose failure was counted, at most `failuresMost`. */
  credentials: Set<string>;
}

/**
 * Counts failed attempts per network and time window, so that callers can limit what further attempts cost the store. Memory is bounded:
 * when it is full, every new network is treated as one that has exceeded the limit.
 */
export class FailedAttempts {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #what: string;
  /** Windows by network, in the order in which they end. */
  readonly #windows = new Map<string, Window>();

  /** @param what the kind of credential, named in the log */
  constructor(clock: Clock, log: Log, what: string) {
    this.#clock = clock;
    this.#log = log;
    this.#what = what;
  }

  /** For how much longer clients with unknown credentials from this network are limited, in ms; 0 if they are not. */
  turnedAwayMs(network: string): number {
    const nowMono = this.#clock.monotonic();
    this.#forget(nowMono);
    const window = this.#windows.get(network);
    if (window) return window.failures < failuresMost ? 0 : window.endsMono - nowMono;
    const [oldest] = this.#windows.size < addressesMost ? [] : this.#windows.values();
    return oldest ? oldest.endsMono - nowMono : 0;
  }

  /** True if the failure of this credential from this network has been counted in the present time window. */
  hasFailed(network: string, credential: string): boolean {
    this.#forget(this.#clock.monotonic());
    return this.#windows.get(network)?.credentials.has(credential) ?? false;
  }

  /** @param credential identifies the credential if its further failures in the same time window do not count */
  failed(network: string, credential?: string): void {
    const nowMono = this.#clock.monotonic();
    this.#forget(nowMono);
    const window = this.#windows.get(network);
    if (window) {
      if (credential !== undefined) {
        if (window.credentials.has(credential)) return;
        if (window.credentials.size < failuresMost) window.credentials.add(credential);
      }
      window.failures++;
      if (window.failures === failuresMost)
        this.#log.warn(
          { network, failures: failuresMost, forMs: Math.round(window.endsMono - nowMono) },
          `too many ${this.#what} from there were wrong: others that are not known yet wait`,
        );
    } else if (this.#windows.size < addressesMost) {
      const credentials = new Set(credential === undefined ? [] : [credential]);
      this.#windows.set(network, { endsMono: nowMono + windowMs, failures: 1, credentials });
    }
  }

  #forget(nowMono: number): void {
    for (const [network, { endsMono }] of this.#windows) {
      if (endsMono > nowMono) return;
      this.#windows.delete(network);
    }
  }
}

/** The network of an address. For IPv6 it is the /64 network, because one party may have all addresses of such a network. */
export function networkOf(address: string): string {
  const [, v4] = /^(?:::ffff:)?(\d+\.\d+\.\d+\.\d+)$/i.exec(address) ?? [];
  if (v4 !== undefined) return v4;
  if (!address.includes(":")) return address.slice(0, 64);
  const [head = "", tail] = address.split("%")[0]?.split("::") ?? [];
  const groups = head === "" ? [] : head.split(":");
  // "::" replaces the groups of zeros that are missing from the eight groups of an address.
  if (tail !== undefined) {
    const rest = tail === "" ? [] : tail.split(":");
    while (groups.length + rest.length < 8) groups.push("0");
    groups.push(...rest);
  }
  const network = groups.slice(0, 4).map((group) => group.toLowerCase().replace(/^0+(?=.)/, ""));
  return `${network.join(":").slice(0, 64)}::/64`;
}
