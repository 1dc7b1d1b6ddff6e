import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { limits } from "../base/limits.ts";
import type { Host } from "./connect-string.ts";

/** Resolves a server's name to its current addresses. */
export type Resolve = (name: string) => Promise<readonly string[]>;

export const systemResolve: Resolve = async (name) => (await lookup(name, { all: true })).map(({ address }) => address);

/** A server to try: `host` is an address, `name` what the connect string calls it. */
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
 * The order in which servers are tried, and the waits between rounds. The order is shuffled, so that the clients of a dead server
 * spread over the others; waits are jittered, so that clients do not act in step. A name is resolved again at each of its turns,
 * and all its addresses are tried: it may stand for a whole ensemble, whose servers move.
 */
export class Hosts {
  #hosts: readonly Host[];
  readonly #random: () => number;
  readonly #resolve: Resolve;
  /** The number of addresses that each host had when it was last resolved. */
  readonly #found = new Map<Host, number>();
  /** Addresses of the present host that have not been tried yet. */
  #addresses: Server[] = [];
  #first: Server | undefined;
  #next = 0;
  #rounds = 0;
  #sinceServed = 0;

  /** @param random returns numbers in [0, 1) */
  constructor(hosts: readonly Host[], random: () => number, resolve: Resolve) {
    this.#random = random;
    this.#resolve = resolve;
    this.#hosts = this.#shuffled(hosts);
  }

  /** Replaces the list of servers. */
  replace(hosts: readonly Host[]): void {
    this.#hosts = this.#shuffled(hosts);
    this.#found.clear();
    this.#addresses = [];
    this.#first = undefined;
    this.#next = this.#rounds = this.#sinceServed = 0;
  }

  /** True for an address of one of the servers. */
  has({ name, port }: Server): boolean {
    return this.#hosts.some((host) => host.host === name && host.port === port);
  }

  /** The number of addresses found so far; a host that has not been resolved yet counts as one. */
  get count(): number {
    return this.#hosts.reduce((sum, host) => sum + (this.#found.get(host) ?? 1), 0);
  }

  /** The number of consecutive rounds in which no server accepted the client. */
  get failedRounds(): number {
    return this.#rounds;
  }

  /** @throws the name service's error, or an error if it gave no answer within `limitMs` or before the signal aborted */
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

  /** Makes this server the next that `take` returns. */
  putFirst(server: Server): void {
    this.#first = server;
  }

  /** Records that the server taken last works: resets the back-off. */
  served(): void {
    this.#addresses = [];
    this.#next %= this.#hosts.length;
    this.#rounds = 0;
    this.#sinceServed = 0;
  }

  /** Records that the server taken last failed. @returns ms to wait before the next attempt: 0 within a round */
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
 * The time limit for one server to accept a session. The limit is short enough to resume a session at another server before the
 * session expires. For a new session, which cannot expire yet, each failed round doubles the limit.
 */
export function maxConnectMs(timeoutMs: number, hosts: number, isNew: boolean, rounds: number): number {
  const firstMs = Math.min(limits.maxConnectMs, Math.max(limits.minConnectMs, timeoutMs / (3 * hosts)));
  return isNew ? Math.max(firstMs, Math.min(timeoutMs, firstMs * 2 ** rounds)) : firstMs;
}
