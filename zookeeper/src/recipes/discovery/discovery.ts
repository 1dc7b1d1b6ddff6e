/**
 * Service discovery with the layout of Java's curator-x-discovery: the node `<path>/<service>/<id>` contains an instance as JSON; its
 * parents are containers. A registered instance is registered again in each new session.
 */
import { isZooKeeperError } from "../../base/errors.ts";
import { checkNames } from "../../base/options.ts";
import { checkPath, childOf } from "../../base/paths.ts";
import type { Acl } from "../../operations/acl.ts";
import type { CallOptions } from "../../operations/operations.ts";
import type { ZooKeeper } from "../../operations/session.ts";
import { Listeners } from "../base/listeners.ts";
import { PersistentNode } from "../base/persistent-node.ts";
import {
  checkServiceName,
  decodeInstance,
  encodeInstance,
  instanceOf,
  type NewInstance,
  type ServiceInstance,
} from "./instance.ts";
import { type ProviderOptions, ServiceProvider } from "./provider.ts";
import { ServiceCache } from "./service-cache.ts";

export interface DiscoveryOptions {
  /** The ACL of the instances' nodes and of their parents. Default: every client has all permissions. */
  readonly acl?: readonly Acl[];
}

/** Listeners must not throw: an error that a listener throws becomes an uncaught exception. */
export interface DiscoveryListener {
  /** Called with an error of a registration: one that will be retried, or that of a failed deletion at the end. Meant for a log. */
  trouble?(error: unknown): void;
}

const optionNames: ReadonlySet<string> = new Set<keyof DiscoveryOptions>(["acl"]);
type Changeable = Exclude<keyof NewInstance, "name" | "id" | "serviceType">;
const changes: Changeable[] = ["address", "port", "sslPort", "payload", "registrationTimeUTC", "uriSpec", "enabled"];
const changeNames: ReadonlySet<string> = new Set(changes);
const instanceNames: ReadonlySet<string> = new Set<keyof NewInstance>([...changes, "name", "id", "serviceType"]);

/** An instance that is registered. */
export interface Registration<Payload = unknown> {
  readonly instance: ServiceInstance<Payload>;
  /**
   * Changes parts of the registered instance.
   * @throws OPTION_INVALID, NO_AUTH; CONNECTION_LOSS or SESSION_EXPIRED if it is unknown whether the change was written; it is
   * written again later
   */
  update(changes: Partial<Pick<NewInstance<Payload>, Changeable>>): Promise<void>;
  /** Removes the registration. Never rejects. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export class ServiceDiscovery<Payload = unknown> {
  readonly path: string;
  readonly #zk: ZooKeeper;
  readonly #acl: readonly Acl[] | undefined;
  readonly #listeners = new Listeners<DiscoveryListener>();
  /** The nodes of registrations, and the caches (including those of providers), which `close` must close. */
  readonly #open = new Set<{ close(): Promise<void> }>();

  /** @throws PATH_INVALID, OPTION_INVALID */
  constructor(zk: ZooKeeper, path: string, options: DiscoveryOptions = {}) {
    checkPath(path);
    checkNames(`the discovery at ${path}`, path, options, optionNames);
    this.path = path;
    this.#zk = zk;
    this.#acl = options.acl;
  }

  /** @returns a function that removes the listener */
  listen(listener: DiscoveryListener): () => void {
    return this.#listeners.add(listener);
  }

  /**
   * Registers an instance until the registration is closed. Replaces an existing instance with the same id.
   * @throws PATH_INVALID, OPTION_INVALID; CLOSED; the error that makes registration impossible, such as NO_AUTH
   */
  async register(given: NewInstance<Payload>): Promise<Registration<Payload>> {
    checkNames(`the registration of ${given?.name}`, this.path, given, instanceNames);
    let instance = instanceOf(given);
    const { name, id, registrationTimeUTC, address, serviceType } = instance;
    let current: NewInstance<Payload> = { ...given, id, registrationTimeUTC, address: address ?? undefined };
    const node = new PersistentNode(this.#zk, this.#pathOf(name, id), encodeInstance(instance), {
      mode: serviceType === "DYNAMIC" ? "ephemeral" : "persistent",
      acl: this.#acl,
    });
    node.listen({ trouble: (error) => this.#listeners.tell((one) => one.trouble?.(error)) });
    this.#open.add(node);
    const close = () => {
      this.#open.delete(node);
      return node.close();
    };
    try {
      await node.start();
    } catch (error) {
      await close();
      throw error;
    }
    return {
      get instance() {
        return instance;
      },
      update: async (changes) => {
        checkNames(`the update of ${name}`, this.path, changes, changeNames);
        instance = instanceOf({ ...current, ...changes });
        current = { ...current, ...changes };
        await node.setData(encodeInstance(instance));
      },
      close,
      [Symbol.asyncDispose]: close,
    };
  }

  /** Reads the names of the services, sorted as text. */
  async names(options: CallOptions = {}): Promise<string[]> {
    return this.#children(this.path, options);
  }

  /**
   * Reads the current instances of a service, in the order of their ids. The list is empty if there is no such service.
   * @throws DATA_INVALID if a node's data is not an instance, PATH_INVALID
   */
  async instances(name: string, options: CallOptions = {}): Promise<ServiceInstance<Payload>[]> {
    const ids = await this.#children(this.#pathOf(name), options);
    const found = await Promise.all(ids.map((id) => this.instance(name, id, options)));
    return found.filter((one) => one !== undefined); // undefined: the instance was deleted meanwhile
  }

  /** Reads one instance. @returns undefined if there is no such instance @throws DATA_INVALID, PATH_INVALID */
  async instance(name: string, id: string, options: CallOptions = {}): Promise<ServiceInstance<Payload> | undefined> {
    const path = this.#pathOf(name, id);
    try {
      return decodeInstance<Payload>((await this.#zk.get(path, options)).data, path);
    } catch (error) {
      if (isZooKeeperError(error, "NO_NODE")) return undefined;
      throw error;
    }
  }

  /** Opens a cache of a service's instances that is kept up to date. @throws PATH_INVALID */
  cache(name: string): ServiceCache<Payload> {
    const cache: ServiceCache<Payload> = new ServiceCache(this.#zk, this.#pathOf(name), () => this.#open.delete(cache));
    this.#open.add(cache);
    return cache;
  }

  /** Opens a provider, which chooses one instance of a service for each call. @throws OPTION_INVALID, PATH_INVALID */
  provider(name: string, options?: ProviderOptions<Payload>): ServiceProvider<Payload> {
    return new ServiceProvider(() => this.cache(name), name, options);
  }

  /** Closes all registrations, caches and providers of this object. Never rejects. */
  async close(): Promise<void> {
    const open = [...this.#open];
    this.#open.clear();
    await Promise.all(open.map((one) => one.close()));
    this.#listeners.clear();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #children(path: string, options: CallOptions): Promise<string[]> {
    try {
      return (await this.#zk.children(path, options)).names.sort();
    } catch (error) {
      if (isZooKeeperError(error, "NO_NODE")) return [];
      throw error;
    }
  }

  /** @throws PATH_INVALID */
  #pathOf(name: string, id?: string): string {
    for (const one of id === undefined ? [name] : [name, id]) checkServiceName(one);
    const service = childOf(this.path, name);
    return id === undefined ? service : childOf(service, id);
  }
}
