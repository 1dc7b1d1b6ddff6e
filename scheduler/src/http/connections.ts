import { existsSync, readFileSync } from "node:fs";
import type { Socket } from "node:net";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";

const mostEver = 10_000;
/** The share of the process's limit of open files that incoming connections may use; the rest is for the store's connections and files. */
const share = 0.5;
/** How many addresses are searched for an idle connection, because an address may have none. */
const lookedAt = 20;
const toldEveryMs = 60_000;

/**
 * The maximum number of connections to this process's server: `mostEver`, or on Linux the `share` of the limit of open files if that is
 * less.
 */
export function connectionsMost(limits = "/proc/self/limits"): number {
  const [, soft] = /^Max open files +(\d+)/m.exec(existsSync(limits) ? readFileSync(limits, "utf8") : "") ?? [];
  return soft === undefined ? mostEver : Math.min(mostEver, Math.floor(Number(soft) * share));
}

/**
 * Limits incoming connections, so that they never use up the process's open files, and so that one client with many connections does not
 * lock out others. Below the limit, every connection is accepted. At the limit, the oldest idle connection of an address with the most
 * connections is closed in favour of the new one; if no such connection is found, the new one is closed. A connection is idle unless it has
 * a request whose header has arrived completely and that has not been answered. The address is the connection's peer: behind a proxy it is
 * the proxy's address, and the proxy must limit its own clients.
 */
export class Connections {
  readonly #most: number;
  readonly #isBusy: (socket: Socket) => boolean;
  readonly #clock: Clock;
  readonly #log: Log;
  /** Connections by address, the oldest first. */
  readonly #held = new Map<string, Set<Socket>>();
  /** The addresses by their number of connections: index 3 holds the addresses with three, in the order in which they reached three. */
  readonly #having: Set<string>[] = [];
  #count = 0;
  #closed = 0;
  #endWindow: (() => void) | undefined;

  /** @param isBusy returns true while the socket has a request in progress */
  constructor(most: number, isBusy: (socket: Socket) => boolean, clock: Clock, log: Log) {
    this.#most = most;
    this.#isBusy = isBusy;
    this.#clock = clock;
    this.#log = log;
  }

  get count(): number {
    return this.#count;
  }

  add(socket: Socket): void {
    const address = socket.remoteAddress;
    // The socket has been closed already.
    if (address === undefined) return;
    if (this.#count >= this.#most) {
      const idle = this.#idle();
      this.#tell();
      if (!idle) return void socket.destroy();
      this.#remove(idle.address, idle.socket);
      idle.socket.destroy();
    }
    const own = this.#held.get(address) ?? new Set();
    this.#held.set(address, own.add(socket));
    this.#count++;
    this.#move(address, own.size - 1, own.size);
    socket.once("close", () => this.#remove(address, socket));
  }

  close(): void {
    this.#endWindow?.();
    this.#tellRest();
  }

  #remove(address: string, socket: Socket): void {
    const own = this.#held.get(address);
    if (!own?.delete(socket)) return;
    this.#count--;
    if (own.size === 0) this.#held.delete(address);
    this.#move(address, own.size + 1, own.size);
  }

  #move(address: string, from: number, to: number): void {
    this.#having[from]?.delete(address);
    while (this.#having.at(-1)?.size === 0) this.#having.pop();
    if (to === 0) return;
    while (this.#having.length <= to) this.#having.push(new Set());
    this.#having[to]?.add(address);
  }

  #idle(): { address: string; socket: Socket } | undefined {
    let looked = 0;
    for (const address of this.#having.at(-1) ?? []) {
      for (const socket of this.#held.get(address) ?? []) if (!this.#isBusy(socket)) return { address, socket };
      if (++looked === lookedAt) break;
    }
    return undefined;
  }

  #tell(): void {
    if (this.#closed++ === 0)
      this.#log.warn({ most: this.#most }, "as many connections as this process holds: some are closed");
    this.#endWindow ??= this.#clock.after(toldEveryMs, () => this.#tellRest());
  }

  #tellRest(): void {
    if (this.#closed > 1)
      this.#log.warn({ closed: this.#closed, most: this.#most }, "connections were closed for others");
    this.#closed = 0;
    this.#endWindow = undefined;
  }
}
