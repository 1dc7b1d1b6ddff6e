/** The operations, implemented once for sessions and clients: each call goes to the session that `target` returns at that moment. */

import { isZooKeeperError, ZooKeeperError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import { callNames, checkNames } from "../base/options.ts";
import { checkPath, parentOf, withChroot } from "../base/paths.ts";
import type { Acl } from "../operations/acl.ts";
import type {
  CallOptions,
  Created,
  CreateOptions,
  Data,
  OnceEvent,
  Operation,
  OperationResult,
  Operations,
  ReadOptions,
  ReconfigOptions,
  Transaction,
  VersionOptions,
  Watch,
  WatchOptions,
} from "../operations/operations.ts";
import type { Stat } from "../operations/stat.ts";
import type { Question } from "../requests/call.ts";
import type { Questions } from "../requests/questions.ts";
import { OperationList } from "./transaction.ts";
import type { OnceKind, PersistentWatch, Watches } from "./watches.ts";

/** The session to which operations are sent. */
export interface Target {
  readonly watches: Watches;
  ask<T>(question: Question<T>, signal: AbortSignal | undefined): Promise<T>;
  watchWith(path: string, options: WatchOptions): Promise<PersistentWatch>;
}

const nodeNames = ["ephemeral", "sequential", "container", "ttlMs", "acl"];
const createNames = new Set([...nodeNames, "parents", "signal"]);
const versionNames = new Set(["version", "signal"]);
const readNames = new Set(["watch", "signal"]);
const watchNames = new Set(["recursive", "maxWaiting", "signal"]);
const reconfigNames = new Set(["joining", "leaving", "members", "version", "signal"]);
const operationNames = new Set(["type", "path", "data", "version", ...nodeNames]);

/** The largest number of concurrent requests of one `deleteAll`. */
const atOnce = 256;

export abstract class OperationsOf implements Operations {
  protected readonly questions: Questions;
  protected readonly chroot: string;

  constructor(questions: Questions, chroot: string) {
    this.questions = questions;
    this.chroot = chroot;
  }

  protected abstract get target(): Target;

  /**
   * Sends a request. An error in building it also rejects the returned promise. This is not an async function, because that would create a
   * second promise, which costs time.
   */
  #ask<T>(question: () => Question<T>, signal: AbortSignal | undefined): Promise<T> {
    try {
      return this.target.ask(question(), signal);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #call<T>(what: string, path: string, options: CallOptions, question: () => Question<T>): Promise<T> {
    return this.#ask(() => {
      checkNames(what, path, options, callNames);
      return question();
    }, options?.signal);
  }

  #read<T>(path: string, options: ReadOptions, kind: OnceKind, question: (watch: boolean) => Question<T>): Promise<T> {
    const named = () => checkNames(`the read of ${path}`, path, options, readNames);
    if (!options?.watch) {
      return this.#ask(() => {
        named();
        return question(false);
      }, options?.signal);
    }
    const { target } = this;
    const full = withChroot(this.chroot, path);
    const asked = target.watches.needsServer(full);
    const watch = { full, kind, asked, told: options.watch };
    return this.#ask(() => {
      named();
      return watched(target, question(asked), watch);
    }, options.signal);
  }

  create(path: string, data?: Data, options: CreateOptions = {}): Promise<Created> {
    if (options?.parents) return this.#createWithParents(path, data, options);
    return this.#ask(() => {
      checkNames(`create ${path}`, path, options, createNames);
      return this.questions.create(path, data, options);
    }, options?.signal);
  }

  async #createWithParents(path: string, data: Data | undefined, options: CreateOptions): Promise<Created> {
    const { parents, ...own } = options;
    for (;;) {
      try {
        return await this.create(path, data, own);
      } catch (error) {
        const parent = parentOf(path);
        if (!isZooKeeperError(error, "NO_NODE") || parent === "/") throw error;
        const { acl, signal } = options;
        await this.create(parent, "", { parents, acl, signal }).catch((failure: unknown) => {
          // Another client has created the parent, or the answer was lost. The loop then creates the node, or tries the parent again.
          if (!isZooKeeperError(failure, "NODE_EXISTS", "CONNECTION_LOSS")) throw failure;
        });
      }
    }
  }

  async deleteAll(path: string, options: CallOptions = {}): Promise<void> {
    checkPath(path);
    checkNames(`deleteAll ${path}`, path, options, callNames);
    const { signal } = options;
    if (path === "/") {
      const hint = "delete what is below it by name";
      throw new ZooKeeperError("PATH_INVALID", "deleteAll /: the root cannot be deleted", { path, hint });
    }
    for (let left = await this.#below(path, signal); left.length > 0; left = await this.#below(path, signal)) {
      // Parents precede their children in the list, so it is processed from its end. A server executes the requests of one connection
      // in order, so children are deleted before their parents.
      while (left.length > 0) {
        const batch = left.splice(-atOnce).reverse();
        await Promise.all(
          batch.map((one) =>
            this.delete(one, { signal }).catch((error: unknown) => {
              // The node is already deleted, has a new child, or the result is unknown. The next listing shows the remaining nodes.
              if (!isZooKeeperError(error, "NO_NODE", "NOT_EMPTY", "CONNECTION_LOSS")) throw error;
            }),
          ),
        );
      }
    }
  }

  /** Returns the paths of the node and of all its descendants, parents before children; an empty array if there is no node. */
  async #below(path: string, signal: AbortSignal | undefined): Promise<string[]> {
    const all = (await this.exists(path, { signal })) ? [path] : [];
    for (let next = 0; next < all.length; ) {
      const parents = all.slice(next, next + atOnce);
      next += parents.length;
      const add = (parent: string) => this.eachChild(parent, (name) => all.push(`${parent}/${name}`), { signal });
      await Promise.all(
        parents.map((parent) =>
          add(parent).catch((error: unknown) => {
            if (!isZooKeeperError(error, "NO_NODE")) throw error;
          }),
        ),
      );
    }
    return all;
  }

  transaction(): Transaction {
    return new OperationList((operations, options) => this.multi(operations, options));
  }

  delete(path: string, options: VersionOptions = {}): Promise<void> {
    return this.#ask(() => {
      checkNames(`delete ${path}`, path, options, versionNames);
      return this.questions.delete(path, options.version);
    }, options?.signal);
  }

  exists(path: string, options: ReadOptions = {}): Promise<Stat | undefined> {
    return this.#read(path, options, "exists", (watch) => this.questions.exists(path, watch));
  }

  get(path: string, options: ReadOptions = {}): Promise<{ data: Buffer; stat: Stat }> {
    return this.#read(path, options, "data", (watch) => this.questions.get(path, watch));
  }

  set(path: string, data: Data, options: VersionOptions = {}): Promise<Stat> {
    return this.#ask(() => {
      checkNames(`set ${path}`, path, options, versionNames);
      return this.questions.set(path, data, options.version);
    }, options?.signal);
  }

  children(path: string, options: ReadOptions = {}): Promise<{ names: string[]; stat: Stat }> {
    return this.#read(path, options, "children", (watch) => this.questions.children(path, watch));
  }

  eachChild(path: string, each: (name: string) => void, options: CallOptions = {}): Promise<number> {
    return this.#call(`eachChild ${path}`, path, options, () => this.questions.eachChild(path, each));
  }

  multi(operations: readonly Operation[], options: CallOptions = {}): Promise<OperationResult[]> {
    return this.#ask(() => {
      checkNames("multi", "", options, callNames);
      for (const one of operations) checkNames(`multi: ${one.type} ${one.path}`, one.path, one, operationNames);
      return this.questions.multi(operations);
    }, options?.signal);
  }

  sync(path: string, options: CallOptions = {}): Promise<void> {
    return this.#call(`sync ${path}`, path, options, () => this.questions.sync(path));
  }

  getAcl(path: string, options: CallOptions = {}): Promise<{ acl: Acl[]; stat: Stat }> {
    return this.#call(`getAcl ${path}`, path, options, () => this.questions.getAcl(path));
  }

  setAcl(path: string, acl: readonly Acl[], options: VersionOptions = {}): Promise<Stat> {
    return this.#ask(() => {
      checkNames(`setAcl ${path}`, path, options, versionNames);
      return this.questions.setAcl(path, acl, options.version);
    }, options?.signal);
  }

  async watch(path: string, options: WatchOptions = {}): Promise<Watch> {
    checkNames(`watch ${path}`, path, options, watchNames);
    const { maxWaiting = limits.maxWaitingEvents } = options;
    if (!Number.isInteger(maxWaiting) || maxWaiting < 1) {
      const hint = "a whole number of events, at least 1";
      throw new ZooKeeperError("OPTION_INVALID", `watch ${path}: maxWaiting is ${maxWaiting}`, { path, hint });
    }
    return this.target.watchWith(path, options);
  }

  async removeWatches(path: string, options: CallOptions = {}): Promise<void> {
    checkNames(`removeWatches ${path}`, path, options, callNames);
    const target = this.target;
    const question = this.questions.removeWatches(path);
    // The client forgets its watches in the same turn of the event loop as the answer, so that watches that are set later remain.
    const read = () => target.watches.remove(withChroot(this.chroot, path));
    return target.ask({ ...question, read }, options.signal);
  }

  ephemerals(prefix = "/", options: CallOptions = {}): Promise<string[]> {
    return this.#call("ephemerals", prefix, options, () => this.questions.ephemerals(prefix));
  }

  descendantCount(path: string, options: CallOptions = {}): Promise<number> {
    return this.#call(`descendantCount ${path}`, path, options, () => this.questions.descendantCount(path));
  }

  whoAmI(options: CallOptions = {}): Promise<{ scheme: string; id: string }[]> {
    return this.#call("whoAmI", "", options, () => this.questions.whoAmI());
  }

  async reconfig(options: ReconfigOptions): Promise<{ data: Buffer; stat: Stat }> {
    checkNames("reconfig", "", options, reconfigNames);
    return this.target.ask(this.questions.reconfig(options), options.signal);
  }

  async config(options: ReadOptions = {}): Promise<{ data: Buffer; stat: Stat }> {
    checkNames("config", "", options, readNames);
    const target = this.target;
    const question = this.questions.config(options.watch !== undefined);
    if (!options.watch) return target.ask(question, options.signal);
    const watch = { full: question.path, kind: "data", asked: true, told: options.watch } as const;
    return target.ask(watched(target, question, watch), options.signal);
  }
}

/** A watch that fires once, set by a read. */
interface OnceWatch {
  /** The watched path, including the chroot. */
  readonly full: string;
  readonly kind: OnceKind;
  /** True if the request tells the server to set the watch. */
  readonly asked: boolean;
  readonly told: (event: OnceEvent) => void;
}

/**
 * Adds the registration of a watch to a request. The watch is registered in the same turn of the event loop as the answer, so that an
 * event right after the answer finds it. After an `exists` that found a node, the watch fires for the same changes as after `get`.
 */
function watched<T>({ watches }: Target, question: Question<T>, { full, kind, asked, told }: OnceWatch): Question<T> {
  return {
    ...question,
    read: (reader) => {
      const value = question.read(reader);
      watches.addOnce(kind === "exists" ? "data" : kind, full, told, asked);
      return value;
    },
    readError: (code) => {
      const value = question.readError?.(code);
      if (value) watches.addOnce("exists", full, told, asked);
      return value;
    },
  };
}
