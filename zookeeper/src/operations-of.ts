/** The operations, said once for sessions and clients: each asks the session that `target` names at that moment. */

import type { Acl } from "./acl.ts";
import type { Question } from "./call.ts";
import { ZooKeeperError } from "./errors.ts";
import { limits } from "./limits.ts";
import type {
  CallOptions,
  Created,
  CreateOptions,
  Data,
  Operation,
  OperationResult,
  Operations,
  ReadOptions,
  VersionOptions,
  Watch,
  WatchOptions,
} from "./operations.ts";
import { withChroot } from "./paths.ts";
import type { Questions } from "./questions.ts";
import type { SessionCore } from "./session-core.ts";
import type { Stat } from "./stat.ts";
import type { OnceKind } from "./watches.ts";

export abstract class OperationsOf implements Operations {
  protected readonly questions: Questions;
  protected readonly chroot: string;

  constructor(questions: Questions, chroot: string) {
    this.questions = questions;
    this.chroot = chroot;
  }

  protected abstract get target(): SessionCore;

  /** What is wrong with the question rejects like everything else. An async function's second promise would cost more. */
  #ask<T>(question: () => Question<T>, signal: AbortSignal | undefined): Promise<T> {
    try {
      return this.target.ask(question(), signal);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #read<T>(path: string, options: ReadOptions, kind: OnceKind, question: (watch: boolean) => Question<T>): Promise<T> {
    if (!options.watch) return this.#ask(() => question(false), options.signal);
    const { target } = this;
    const full = withChroot(this.chroot, path);
    const asked = target.watches.needsServer(full);
    return this.#ask(() => watched(target, question(asked), full, options, kind, asked), options.signal);
  }

  create(path: string, data?: Data, options: CreateOptions = {}): Promise<Created> {
    return this.#ask(() => this.questions.create(path, data, options), options.signal);
  }

  delete(path: string, { version, signal }: VersionOptions = {}): Promise<void> {
    return this.#ask(() => this.questions.delete(path, version), signal);
  }

  exists(path: string, options: ReadOptions = {}): Promise<Stat | undefined> {
    return this.#read(path, options, "exists", (watch) => this.questions.exists(path, watch));
  }

  get(path: string, options: ReadOptions = {}): Promise<{ data: Buffer; stat: Stat }> {
    return this.#read(path, options, "data", (watch) => this.questions.get(path, watch));
  }

  set(path: string, data: Data, { version, signal }: VersionOptions = {}): Promise<Stat> {
    return this.#ask(() => this.questions.set(path, data, version), signal);
  }

  children(path: string, options: ReadOptions = {}): Promise<{ names: string[]; stat: Stat }> {
    return this.#read(path, options, "children", (watch) => this.questions.children(path, watch));
  }

  eachChild(path: string, each: (name: string) => void, { signal }: CallOptions = {}): Promise<number> {
    return this.#ask(() => this.questions.eachChild(path, each), signal);
  }

  multi(operations: readonly Operation[], { signal }: CallOptions = {}): Promise<OperationResult[]> {
    return this.#ask(() => this.questions.multi(operations), signal);
  }

  sync(path: string, { signal }: CallOptions = {}): Promise<void> {
    return this.#ask(() => this.questions.sync(path), signal);
  }

  getAcl(path: string, { signal }: CallOptions = {}): Promise<{ acl: Acl[]; stat: Stat }> {
    return this.#ask(() => this.questions.getAcl(path), signal);
  }

  setAcl(path: string, acl: readonly Acl[], { version, signal }: VersionOptions = {}): Promise<Stat> {
    return this.#ask(() => this.questions.setAcl(path, acl, version), signal);
  }

  async watch(path: string, options: WatchOptions = {}): Promise<Watch> {
    const { maxWaiting = limits.maxWaitingEvents } = options;
    if (!Number.isInteger(maxWaiting) || maxWaiting < 1) {
      const hint = "a whole number of events, at least 1";
      throw new ZooKeeperError("OPTION_INVALID", `watch ${path}: maxWaiting is ${maxWaiting}`, { path, hint });
    }
    return this.target.watchWith(path, options);
  }

  async removeWatches(path: string, { signal }: CallOptions = {}): Promise<void> {
    const target = this.target;
    const question = this.questions.removeWatches(path);
    // With the answer, at once: a watch that is set after it stays.
    const read = () => target.watches.remove(withChroot(this.chroot, path));
    return target.ask({ ...question, read }, signal);
  }

  ephemerals(prefix = "/", { signal }: CallOptions = {}): Promise<string[]> {
    return this.#ask(() => this.questions.ephemerals(prefix), signal);
  }

  descendantCount(path: string, { signal }: CallOptions = {}): Promise<number> {
    return this.#ask(() => this.questions.descendantCount(path), signal);
  }

  whoAmI({ signal }: CallOptions = {}): Promise<{ scheme: string; id: string }[]> {
    return this.#ask(() => this.questions.whoAmI(), signal);
  }

  async config(options: ReadOptions = {}): Promise<{ data: Buffer; stat: Stat }> {
    const target = this.target;
    const question = this.questions.config(options.watch !== undefined);
    return target.ask(watched(target, question, question.path, options, "data", true), options.signal);
  }
}

/**
 * The watch counts from the answer on, in the same turn of the event loop: an event that follows on the connection must
 * find it. `exists` of a node that is there waits for what `get` would.
 */
function watched<T>(
  target: SessionCore,
  question: Question<T>,
  full: string,
  { watch }: ReadOptions,
  kind: OnceKind,
  asked: boolean,
): Question<T> {
  if (!watch) return question;
  return {
    ...question,
    read: (reader) => {
      const value = question.read(reader);
      target.watches.addOnce(kind === "exists" ? "data" : kind, full, watch, asked);
      return value;
    },
    readError: (code) => {
      const value = question.readError?.(code);
      if (value) target.watches.addOnce("exists", full, watch, asked);
      return value;
    },
  };
}
