import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { LockPlace } from "../cluster/locks.ts";
import type { MembershipProvider } from "../cluster/membership-provider.ts";
import type { Store } from "../store/store.ts";
import type { StoreClock } from "../store/store-clock.ts";
import { agreeOnCoordination, coordinationOf } from "./agreement.ts";
import { type OpenOptions, openCoordination } from "./open.ts";
import { serviceAddress } from "./service-address.ts";

export interface ServiceOptions {
  /** The service's URL; undefined if only the store is used. */
  readonly url: string | undefined;
  readonly sessionTimeoutMs: number;
  readonly failFast: boolean;
  readonly clock: Clock;
  readonly storeClock: StoreClock;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly openProvider?: OpenOptions["openProvider"];
}

/** The coordination service of one process. It is opened when the process joins the cluster or first uses a lock. */
export class CoordinationService {
  readonly #options: ServiceOptions;
  #provider: Promise<MembershipProvider | undefined> | undefined;
  #locked = false;
  #joined = false;

  constructor(options: ServiceOptions) {
    this.#options = options;
  }

  /** The service's address for comparison; undefined if only the store is used. */
  get at(): string | undefined {
    const { url } = this.#options;
    return url === undefined ? undefined : serviceAddress(url);
  }

  /** Opens the service for a process that becomes a member. @throws COORDINATION_…, STORE_… */
  async join(store: Store): Promise<MembershipProvider | undefined> {
    this.#joined = true;
    const provider = await this.#open(store, true);
    // The service may have been opened for locks before; since then the cluster may have changed to another service.
    if (this.#locked) {
      await agreeOnCoordination(store.sessions, coordinationOf(this.#options.url, provider), this.#options);
    }
    return provider;
  }

  /** Opens the locks for users: in the service if there is one, otherwise in the store. @throws STORE_…, COORDINATION_… */
  async locks(store: Store): Promise<LockPlace> {
    const { sessionTimeoutMs: timeoutMs, clock, storeClock, log } = this.#options;
    this.#locked = true;
    const provider = await this.#open(store, false);
    const { lockEra: era } = await store.sessions.cluster();
    if (provider) return provider.locks({ era, nextBase: () => store.locks.nextBase() });
    const { StoreLocks } = await import("./store/locks.ts");
    return new StoreLocks({ store, clock, nowMs: () => storeClock.now(), timeoutMs, log, era });
  }

  /** Called if joining has failed: disconnects from the service, unless locks use it. */
  async abandon(): Promise<void> {
    this.#joined = false;
    if (!this.#locked) await this.leave();
  }

  /** Called when no locks are in use: disconnects from the service until the next use, unless this process is a member. */
  async rest(): Promise<void> {
    this.#locked = false;
    if (!this.#joined) await this.leave();
  }

  async leave(): Promise<void> {
    const opened = this.#provider;
    // Cleared before the first await, so that later callers open a new connection.
    this.#provider = undefined;
    const [provider] = await Promise.allSettled([opened]);
    if (provider.status === "fulfilled") await provider.value?.leave();
  }

  #open(store: Store, joins: boolean): Promise<MembershipProvider | undefined> {
    this.#provider ??= openCoordination(this.#options.url, store.sessions, { ...this.#options, joins }).catch(
      (error) => {
        this.#provider = undefined;
        throw error;
      },
    );
    return this.#provider;
  }
}
