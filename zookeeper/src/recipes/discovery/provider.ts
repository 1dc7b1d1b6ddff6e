/** Chooses one instance of a service for each call, and skips instances that failed. Curator: ServiceProvider. */
import { ZooKeeperError } from "../../base/errors.ts";
import { checkNames } from "../../base/options.ts";
import type { ServiceInstance } from "./instance.ts";
import type { ServiceCache } from "./service-cache.ts";
import { type ProviderStrategy, roundRobin } from "./strategies.ts";

export interface ProviderOptions<Payload = unknown> {
  /** Default: `roundRobin()`. */
  readonly strategy?: ProviderStrategy<Payload>;
  /** Only instances for which this function returns true are chosen. */
  readonly filter?: (instance: ServiceInstance<Payload>) => boolean;
  /** An instance with this number of errors (`noteError`) within `downMs` is not chosen. Default 2. */
  readonly downAfter?: number;
  /** Errors are forgotten this many ms after the first of them. Default 30,000. */
  readonly downMs?: number;
}

const names: ReadonlySet<string> = new Set<keyof ProviderOptions>(["strategy", "filter", "downAfter", "downMs"]);

/** Number of errors of one instance. */
interface Errors {
  count: number;
  /** Monotonic ms of the first error. */
  readonly since: number;
}

export class ServiceProvider<Payload = unknown> {
  readonly #cache: ServiceCache<Payload>;
  readonly #strategy: ProviderStrategy<Payload>;
  readonly #filter: (instance: ServiceInstance<Payload>) => boolean;
  readonly #downAfter: number;
  readonly #downMs: number;
  readonly #errors = new Map<string, Errors>();

  /** @param open opens the cache of instances @throws OPTION_INVALID */
  constructor(open: () => ServiceCache<Payload>, name: string, options: ProviderOptions<Payload> = {}) {
    checkNames(`the provider of ${name}`, "", options, names);
    const { strategy = roundRobin(), filter = () => true, downAfter = 2, downMs = 30_000 } = options;
    if (!Number.isInteger(downAfter) || downAfter < 1 || !(downMs >= 0)) {
      const hint = "give a whole number of errors from 1 on, and milliseconds from 0 on";
      const message = `the provider of ${name}: downAfter is ${downAfter}, downMs is ${downMs}`;
      throw new ZooKeeperError("OPTION_INVALID", message, { hint });
    }
    this.#cache = open();
    this.#strategy = strategy;
    this.#filter = filter;
    this.#downAfter = downAfter;
    this.#downMs = downMs;
  }

  /** Resolves once all instances have been read, like `ServiceCache.ready`. */
  get ready(): Promise<void> {
    return this.#cache.ready;
  }

  /** The enabled instances that pass the filter and have fewer than `downAfter` recent errors, in the order of their ids. */
  get instances(): readonly ServiceInstance<Payload>[] {
    return this.#cache.instances.filter((one) => one.enabled && !this.#isDown(one) && this.#filter(one));
  }

  /** Chooses an instance; undefined if there is none. */
  get(): ServiceInstance<Payload> | undefined {
    const { instances } = this;
    return instances.length === 0 ? undefined : this.#strategy(instances);
  }

  /** Records an error of the instance; after `downAfter` errors the instance is not chosen until its errors are forgotten. */
  noteError({ id }: ServiceInstance<Payload>): void {
    const now = performance.now();
    for (const [one, { since }] of this.#errors) {
      if (now - since >= this.#downMs) this.#errors.delete(one);
    }
    const errors = this.#errors.get(id);
    if (errors) errors.count++;
    else this.#errors.set(id, { count: 1, since: now });
  }

  /** Closes the cache of instances. Never rejects. */
  close(): Promise<void> {
    return this.#cache.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #isDown({ id }: ServiceInstance<Payload>): boolean {
    const errors = this.#errors.get(id);
    return errors !== undefined && errors.count >= this.#downAfter && performance.now() - errors.since < this.#downMs;
  }
}
