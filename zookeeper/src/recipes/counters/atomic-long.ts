/**
 * A 64-bit number that many clients change, stored like Java Curator's DistributedAtomicLong: 8 bytes, big-endian; a missing or empty
 * node counts as 0. A change reads the number and writes the new one only if no other client has written in between; otherwise it tries
 * again, `tries` times in all. If all tries fail and a lock path is given, the change takes that lock and tries again, so that
 * colliding clients queue.
 */

import { isZooKeeperError, ZooKeeperError } from "../../base/errors.ts";
import { checkNames } from "../../base/options.ts";
import { checkPath, parentOf } from "../../base/paths.ts";
import type { CallOptions } from "../../operations/operations.ts";
import type { Session, ZooKeeper } from "../../operations/session.ts";
import { backOffMs } from "../base/follow.ts";
import { createContainers } from "../base/protect.ts";
import { pause } from "../base/waiting.ts";
import { Mutex } from "../locks/mutex.ts";

export interface AtomicLongOptions {
  /** How many times a change is tried without the lock, and then again under the lock. Default 10. */
  readonly tries?: number;
  /** Path of a mutex that all clients of this number share. Without it, a change whose tries all fail rejects. */
  readonly lockPath?: string;
  /** How long to wait for the mutex at `lockPath`, in ms. Default 10,000. */
  readonly lockLimitMs?: number;
}

/** The values before and after a change. */
export interface LongChange {
  readonly before: bigint;
  readonly after: bigint;
}

/** Encodes a number of 64 bits, signed. @throws OPTION_INVALID if the value does not fit */
export function encodeLong(value: bigint, path: string): Buffer {
  if (typeof value !== "bigint" || BigInt.asIntN(64, value) !== value) {
    const options = { path, hint: "give a bigint from -2^63 to 2^63 - 1" };
    throw new ZooKeeperError("OPTION_INVALID", `${path} cannot be set to ${String(value)}`, options);
  }
  const data = Buffer.alloc(8);
  data.writeBigInt64BE(value);
  return data;
}

/** @throws DATA_INVALID */
export function decodeLong(data: Buffer, path: string): bigint {
  if (data.length === 0) return 0n;
  if (data.length === 8) return data.readBigInt64BE();
  const options = { path, hint: "an atomic long is 8 bytes, high byte first: does something else use this path?" };
  throw new ZooKeeperError("DATA_INVALID", `${path} holds ${data.length} bytes, which is no atomic long`, options);
}

const optionNames: ReadonlySet<string> = new Set<keyof AtomicLongOptions>(["tries", "lockPath", "lockLimitMs"]);

export class AtomicLong {
  readonly path: string;
  readonly #zk: ZooKeeper;
  readonly #tries: number;
  readonly #lockPath: string | undefined;
  readonly #lockLimitMs: number;

  /** @throws PATH_INVALID, OPTION_INVALID */
  constructor(zk: ZooKeeper, path: string, given: AtomicLongOptions = {}) {
    checkPath(path);
    checkNames(`the number at ${path}`, path, given, optionNames);
    const { tries = 10, lockPath, lockLimitMs = 10_000 } = given;
    if (lockPath !== undefined) checkPath(lockPath);
    if (!Number.isInteger(tries) || tries < 1) {
      const options = { path, hint: "give a whole number from 1 on" };
      throw new ZooKeeperError("OPTION_INVALID", `the option tries is ${tries}`, options);
    }
    this.path = path;
    this.#zk = zk;
    this.#tries = tries;
    this.#lockPath = lockPath;
    this.#lockLimitMs = lockLimitMs;
  }

  /** @throws DATA_INVALID */
  async get(options: CallOptions = {}): Promise<bigint> {
    return (await this.#read(await this.#zk.established(options.signal), options)).value;
  }

  /** Sets the number unconditionally. @throws OPTION_INVALID; CONNECTION_LOSS if it is unknown whether the number was set */
  async set(value: bigint, options: CallOptions = {}): Promise<void> {
    const data = encodeLong(value, this.path);
    const session = await this.#zk.established(options.signal);
    for (;;) {
      try {
        await session.set(this.path, data, options);
        return;
      } catch (error) {
        if (!isZooKeeperError(error, "NO_NODE")) throw error;
      }
      if (await this.#create(session, data, options)) return;
    }
  }

  /** Sets the number if the node does not exist. @returns true if this call created the node @throws as `set` */
  async initialize(value: bigint, options: CallOptions = {}): Promise<boolean> {
    const data = encodeLong(value, this.path);
    return this.#create(await this.#zk.established(options.signal), data, options);
  }

  /**
   * Sets the number to `value` if it is `expected`.
   * @returns false if the number is not `expected`
   * @throws DATA_INVALID, OPTION_INVALID; BAD_VERSION if other clients changed the number in every try; CONNECTION_LOSS if it is unknown
   * whether the number was set
   */
  async compareAndSet(expected: bigint, value: bigint, options: CallOptions = {}): Promise<boolean> {
    encodeLong(value, this.path);
    const { before } = await this.#change((now) => (now === expected ? value : undefined), options);
    return before === expected;
  }

  /**
   * Adds `amount`; an overflow wraps around at 64 bits.
   * @throws DATA_INVALID, OPTION_INVALID; BAD_VERSION if other clients changed the number in every try; CONNECTION_LOSS if it is unknown
   * whether the amount was added
   */
  async add(amount: bigint, options: CallOptions = {}): Promise<LongChange> {
    encodeLong(amount, this.path);
    return this.#change((now) => BigInt.asIntN(64, now + amount), options);
  }

  /** @throws as `add` */
  async subtract(amount: bigint, options: CallOptions = {}): Promise<LongChange> {
    encodeLong(amount, this.path);
    return this.#change((now) => BigInt.asIntN(64, now - amount), options);
  }

  /** @throws as `add` */
  increment(options?: CallOptions): Promise<LongChange> {
    return this.add(1n, options);
  }

  /** @throws as `add` */
  decrement(options?: CallOptions): Promise<LongChange> {
    return this.subtract(1n, options);
  }

  /** @param make computes the new number from the present one; undefined: the number stays as it is */
  async #change(make: (now: bigint) => bigint | undefined, options: CallOptions): Promise<LongChange> {
    const session = await this.#zk.established(options.signal);
    const change = await this.#tryOften(session, make, options);
    if (change) return change;
    if (this.#lockPath !== undefined) {
      const mutex = new Mutex(this.#zk, this.#lockPath);
      const held = await mutex.tryAcquire({ limitMs: this.#lockLimitMs, signal: options.signal });
      try {
        const promoted = held && (await this.#tryOften(session, make, options));
        if (promoted) return promoted;
      } finally {
        await held?.[Symbol.asyncDispose]();
      }
    }
    throw new ZooKeeperError("BAD_VERSION", `${this.path}: others changed it ${this.#tries} times in between`, {
      path: this.path,
      hint: "try again later, raise the option tries, or give a lockPath",
    });
  }

  async #tryOften(
    session: Session,
    make: (now: bigint) => bigint | undefined,
    options: CallOptions,
  ): Promise<LongChange | undefined> {
    for (let tried = 0; tried < this.#tries; tried++) {
      const { value: before, version } = await this.#read(session, options);
      const after = make(before);
      if (after === undefined) return { before, after: before };
      if (await this.#tryOnce(session, encodeLong(after, this.path), version, options)) return { before, after };
      await pause(backOffMs(Math.min(tried, 4), Math.random()), options.signal);
    }
    return undefined;
  }

  async #tryOnce(session: Session, data: Buffer, version: number | undefined, options: CallOptions): Promise<boolean> {
    if (version === undefined) return this.#create(session, data, options);
    try {
      await session.set(this.path, data, { ...options, version });
      return true;
    } catch (error) {
      if (isZooKeeperError(error, "BAD_VERSION", "NO_NODE")) return false;
      throw error;
    }
  }

  /** @returns false if the node exists already */
  async #create(session: Session, data: Buffer, options: CallOptions): Promise<boolean> {
    for (;;) {
      try {
        await session.create(this.path, data, options);
        return true;
      } catch (error) {
        if (isZooKeeperError(error, "NODE_EXISTS")) return false;
        if (!isZooKeeperError(error, "NO_NODE")) throw error;
        await createContainers(session, parentOf(this.path), options.signal);
      }
    }
  }

  async #read(session: Session, options: CallOptions): Promise<{ value: bigint; version?: number }> {
    try {
      const { data, stat } = await session.get(this.path, options);
      return { value: decodeLong(data, this.path), version: stat.version };
    } catch (error) {
      if (isZooKeeperError(error, "NO_NODE")) return { value: 0n };
      throw error;
    }
  }
}
