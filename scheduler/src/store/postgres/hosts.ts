import type { Clock } from "../../base/clock.ts";
import { CarillonError, isCarillonError, messageOf } from "../../base/errors.ts";
import type { Host } from "../store-url.ts";
import { storeError } from "./store-errors.ts";

/** The result of a look at one server. */
export interface Looked {
  readonly writable: boolean;
  /** Rises with each promotion; null: the server does not report its timeline. */
  readonly timeline: number | null;
}

/** Once one server is found, the others have this long to show that they accept writes too. */
const othersMs = 100;

/**
 * Chooses which of several servers to connect to: the one that accepts writes. While this is unknown, all hosts are queried at once; the
 * choice is kept until a connection fails or a server refuses a write. If two servers accept writes, for example because the former primary
 * came back by itself, the one with the higher timeline is chosen.
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

  /** @throws STORE_READ_ONLY, STORE_UNREACHABLE if no host accepts writes; if all hosts fail with one code, such as STORE_TLS, that code */
  choose(): Promise<Host> {
    if (this.#chosen) return this.#chosen;
    const chosen = this.#find();
    this.#chosen = chosen;
    chosen.catch(() => {
      if (this.#chosen === chosen) this.#chosen = undefined; // this caller gets the error; the next call tries again
    });
    return chosen;
  }

  /** Called when a connection failed or the server refused a write: the next connection searches again. */
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
    // If all hosts refuse the password or the certificate, waiting does not help, so the error is not treated as an outage.
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
