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

  async create(path: string, data?: Data, options: CreateOptions = {}): Promise<Created> {
    return this.target.ask(this.questions.create(path, data, options), options.signal);
  }

  async delete(path: string, { version, signal }: VersionOptions = {}): Promise<void> {
    return this.target.ask(this.questions.delete(path, version), signal);
  }

  async exists(path: string, options: ReadOptions = {}): Promise<Stat | undefined> {
    const target = this.target;
    const full = withChroot(this.chroot, path);
    const asked = target.watches.needsServer(full);
    const question = this.questions.exists(path, asked && options.watch !== undefined);
    return target.ask(watched(target, question, full, options, "exists", asked), options.signal);
  }

  async get(path: string, options: ReadOptions = {}): Promise<{ data: Buffer; stat: Stat }> {
    const target = this.target;
    const full = withChroot(this.chroot, path);
    const asked = target.watches.needsServer(full);
    const question = this.questions.get(path, asked && options.watch !== undefined);
    return target.ask(watched(target, question, full, options, "data", asked), options.signal);
  }

  async set(path: string, data: Data, { version, signal }: VersionOptions = {}): Promise<Stat> {
    return this.target.ask(this.questions.set(path, data, version), signal);
  }

  async children(path: string, options: ReadOptions = {}): Promise<{ names: string[]; stat: Stat }> {
    const target = this.target;
    const full = withChroot(this.chroot, path);
    const asked = target.watches.needsServer(full);
    const question = this.questions.children(path, asked && options.watch !== undefined);
    return target.ask(watched(target, question, full, options, "children", asked), options.signal);
  }

  async eachChild(path: string, each: (name: string) => void, { signal }: CallOptions = {}): Promise<number> {
    return this.target.ask(this.questions.eachChild(path, each), signal);
  }

  async multi(operations: readonly Operation[], { signal }: CallOptions = {}): Promise<OperationResult[]> {
    return this.target.ask(this.questions.multi(operations), signal);
  }

  async sync(path: string, { signal }: CallOptions = {}): Promise<void> {
    return this.target.ask(this.questions.sync(path), signal);
  }

  async getAcl(path: string, { signal }: CallOptions = {}): Promise<{ acl: Acl[]; stat: Stat }> {
    return this.target.ask(this.questions.getAcl(path), signal);
  }

  async setAcl(path: string, acl: readonly Acl[], { version, signal }: VersionOptions = {}): Promise<Stat> {
    return this.target.ask(this.questions.setAcl(path, acl, version), signal);
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

  async ephemerals(prefix = "/", { signal }: CallOptions = {}): Promise<string[]> {
    return this.target.ask(this.questions.ephemerals(prefix), signal);
  }

  async descendantCount(path: string, { signal }: CallOptions = {}): Promise<number> {
    return this.target.ask(this.questions.descendantCount(path), signal);
  }

  async whoAmI({ signal }: CallOptions = {}): Promise<{ scheme: string; id: string }[]> {
    return this.target.ask(this.questions.whoAmI(), signal);
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
