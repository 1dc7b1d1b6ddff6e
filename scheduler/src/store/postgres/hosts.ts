import type { Clock } from "../../base/clock.ts";
import { CarillonError, isCarillonError, messageOf } from "../../base/errors.ts";
import type { Host } from "../store-url.ts";
import { storeError } from "./store-errors.ts";

/** The state that one server reported. */
export interface Looked {
  readonly writable: boolean;
  /** The server's timeline, which rises with each promotion; null if the server does not report it. */
  readonly timeline: number | null;
}

/** After the first server that accepts writes is found, the other servers have this long to answer, in ms. */
const othersMs = 100;

/**
 * Chooses which of several servers to connect to: the one that accepts writes. While this is unknown, all hosts are queried at once. The
 * choice stays until a connection fails or the server refuses a write. If two servers accept writes, for example because the former primary
 * was restarted, the one with the higher timeline is chosen.
 */
export class Hosts {
  readonly #hosts: readonly Host[];
  readonly #look: (host: Host) => Promise<Looked>;
  readonly #clock: Clock;
  #chosen: Promise<Host> | undefined;

  constructor(hosts: readonly Host[], look: (host: Host) => Promise<Looked>, clock: Clock) {
    this.#hosts = hosts;
    this.#look = look;
    this.#clock = clock;
  }

  /**
   * Returns the host to connect to.
   * @throws STORE_READ_ONLY if no host accepts writes and at least one is a standby; if no host answers, STORE_UNREACHABLE, or the code
   * with which all hosts failed, such as STORE_TLS
   */
  choose(): Promise<Host> {
    if (this.#chosen) return this.#chosen;
    const chosen = this.#find();
    this.#chosen = chosen;
    chosen.catch(() => {
      if (this.#chosen === chosen) this.#chosen = undefined; // this caller gets the error; the next call tries again
    });
    return chosen;
  }

  /** Discards the choice, because a connection failed or the server refused a write. The next connection queries the hosts again. */
  doubt(): void {
    this.#chosen = undefined;
  }

  async #find(): Promise<Host> {
    let best: { host: Host; timeline: number } | undefined;
    let standby = false;
    const refused: string[] = [];
    const failures: unknown[] = [];
    await new Promise<void>((resolve) => {
      const one = async (host: Host) => {
        const place = `${host.host}:${host.port}`;
        try {
          const { writable, timeline } = await this.#look(host);
          if (!writable) {
            standby = true;
            refused.push(`${place} is a standby`);
          } else if (!best || (timeline ?? 0) > best.timeline) {
            if (!best) this.#clock.after(othersMs, resolve);
            best = { host, timeline: timeline ?? 0 };
          }
        } catch (error) {
          refused.push(`${place}: ${messageOf(error)}`);
          failures.push(storeError(error));
        }
      };
      void Promise.all(this.#hosts.map(one)).then(() => resolve());
    });
    if (best) return (best as { host: Host }).host;
    const told = `none of the store's ${this.#hosts.length} hosts accepts writes: ${refused.join("; ")}`;
    // If all hosts refuse the password or the certificate, another try does not help, so the error is not STORE_UNREACHABLE.
    const [first] = failures;
    if (!standby && isCarillonError(first) && failures.every((one) => isCarillonError(one, first.code)))
      throw new CarillonError(first.code, told, { hint: first.hint });
    throw new CarillonError(standby ? "STORE_READ_ONLY" : "STORE_UNREACHABLE", told, {
      hint: standby
        ? "No standby has been promoted yet, or the URL leaves the primary out. A running process keeps trying."
        : "Check that PostgreSQL runs and that the URL's hosts and ports are right.",
    });
  }
}
