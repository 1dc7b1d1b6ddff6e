import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { limits } from "../base/limits.ts";
import type { Host } from "./connect-string.ts";

/** Resolves a server's name to its current addresses. */
export type Resolve = (name: string) => Promise<readonly string[]>;

export const systemResolve: Resolve = async (name) => (await lookup(name, { all: true })).map(({ address }) => address);

/** A server to try: `host` is an IP address, `name` the host name in the connect string. */
export interface Server extends Host {
  readonly name: string;
}

export function nameOf({ name, host, port }: Server): string {
  return name === host ? `${host}:${port}` : `${name} (${host}:${port})`;
}

export function noLongerListed(server: Server): Error {
  return new Error(`${nameOf(server)} is no longer among the servers`);
}

/**
 * The order in which servers are tried, and the waits between rounds. The order is random, so that the clients of a dead server spread
 * over the other servers; waits have jitter, so that clients do not reconnect at the same time. A name is resolved each time its turn
 * comes, and all its addresses are tried, because it may stand for a whole ensemble whose addresses change.
 */
export class Hosts {
  #hosts: readonly Host[];
  readonly #random: () => number;
  readonly #resolve: Resolve;
  /** The number of addresses of each host when it was last resolved. */
  readonly #found = new Map<Host, number>();
  /** Addresses of the present host that have not been tried yet. */
  #addresses: Server[] = [];
  #first: Server | undefined;
  #next = 0;
  #rounds = 0;
  #sinceServed = 0;

  /** @param random returns numbers in [0, 1), used for the order and for jitter */
  constructor(hosts: readonly Host[], random: () => number, resolve: Resolve) {
    this.#random = random;
    this.#resolve = resolve;
    this.#hosts = this.#shuffled(hosts);
  }

  /** Replaces the list of servers and resets the back-off. */
  replace(hosts: readonly Host[]): void {
    this.#hosts = this.#shuffled(hosts);
    this.#found.clear();
    this.#addresses = [];
    this.#first = undefined;
    this.#next = this.#rounds = this.#sinceServed = 0;
  }

  /** True if the address belongs to a host of the list. */
  has({ name, port }: Server): boolean {
    return this.#hosts.some((host) => host.host === name && host.port === port);
  }

  /** The number of addresses found so far; a host that has not been resolved yet counts as one. */
  get count(): number {
    return this.#hosts.reduce((sum, host) => sum + (this.#found.get(host) ?? 1), 0);
  }

  /** The number of consecutive rounds in which no server accepted the client, counted up to 16. */
  get failedRounds(): number {
    return this.#rounds;
  }

  /**
   * Returns the next server to try. @throws the resolver's error, or an error if the resolver finds no address, does not answer within
   * `limitMs`, or `signal` aborts
   */
  async take(limitMs: number, signal: AbortSignal): Promise<Server> {
    const first = this.#first;
    this.#first = undefined;
    if (first) return first;
    if (this.#addresses.length === 0) {
      const host = this.#hosts[this.#next % this.#hosts.length] as Host;
      this.#next += 1;
      const addresses = isIP(host.host) ? [host.host] : await this.#resolved(host.host, limitMs, signal);
      this.#found.set(host, addresses.length);
      this.#addresses = this.#shuffled(addresses).map((address) => ({
        name: host.host,
        host: address,
        port: host.port,
      }));
    }
    return this.#addresses.shift() as Server;
  }

  /** Makes this server the next one that `take` returns. */
  putFirst(server: Server): void {
    this.#first = server;
  }

  /** Records that the last server from `take` has served the client, and resets the back-off. */
  served(): void {
    this.#addresses = [];
    this.#next %= this.#hosts.length;
    this.#rounds = 0;
    this.#sinceServed = 0;
  }

  /** Records that the last server from `take` failed. @returns ms to wait before the next attempt; 0 within a round */
  failed(): number {
    if (this.#addresses.length > 0) return 0;
    this.#sinceServed += 1;
    if (this.#sinceServed % this.#hosts.length !== 0) return 0;
    const full = Math.min(limits.maxBackoffMs, limits.firstBackoffMs * 2 ** this.#rounds);
    this.#rounds = Math.min(this.#rounds + 1, 16);
    return full * (0.5 + this.#random() / 2);
  }

  async #resolved(name: string, limitMs: number, signal: AbortSignal): Promise<readonly string[]> {
    const addresses = await new Promise<readonly string[]>((resolve, reject) => {
      const givenUp = () => done(() => reject(new Error(`finding the address of ${name} was given up`)));
      const late = setTimeout(() => done(() => reject(new Error(`no address of ${name} in time`))), limitMs);
      const done = (settle: () => void) => {
        clearTimeout(late);
        signal.removeEventListener("abort", givenUp);
        settle();
      };
      signal.addEventListener("abort", givenUp, { once: true });
      if (signal.aborted) return givenUp();
      this.#resolve(name).then(
        (found) => done(() => resolve(found)),
        (error) => done(() => reject(error)),
      );
    });
    if (addresses.length === 0) throw new Error(`${name} has no address`);
    return addresses;
  }

  #shuffled<T>(all: readonly T[]): T[] {
    const shuffled = [...all];
    for (let last = shuffled.length - 1; last > 0; last--) {
      const other = Math.floor(this.#random() * (last + 1));
      [shuffled[last], shuffled[other]] = [shuffled[other] as T, shuffled[last] as T];
    }
    return shuffled;
  }
}

/**
 * Returns the time limit in ms for one server to accept a session. The limit is short, so that a session can be resumed at another server
 * before it expires. A new session cannot expire yet, so each failed round doubles its limit, up to the session timeout.
 */
export function maxConnectMs(timeoutMs: number, hosts: number, isNew: boolean, rounds: number): number {
  const firstMs = Math.min(limits.maxConnectMs, Math.max(limits.minConnectMs, timeoutMs / (3 * hosts)));
  return isNew ? Math.max(firstMs, Math.min(timeoutMs, firstMs * 2 ** rounds)) : firstMs;
}
