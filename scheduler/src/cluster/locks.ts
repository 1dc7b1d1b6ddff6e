import type { GraceLock, GraceLockOptions } from "@carillon/zookeeper";
import type { Duration } from "../base/duration.ts";
import { CarillonError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";

/**
 * The interface of locks for users. A driver only has to grant the permits of a name, each with a fence. A lock is a name with one permit,
 * a semaphore is a name with several, and an election is a lock whose holder leads.
 *
 * Every driver guarantees two things. First, the number of processes that believe they hold a permit never exceeds the number of permits: a
 * process stops believing so, by its own monotonic clock, before another process can get the permit. Second, the fences of a kind and name
 * only increase, across holders, processes and restarts. docs/coordination/locks.md lists under which faults each driver guarantees this.
 */
export interface Held extends AsyncDisposable {
  readonly name: string;
  /**
   * Higher than the fence of every earlier holder. Store it with the data that the lock protects, and reject writes with a lower fence:
   * nothing else protects the data from a holder that was paused between checking the lock and writing. Fits a PostgreSQL bigint.
   */
  readonly fence: bigint;
  /**
   * True if this process certainly holds the lock now, by its own clock. Correct even if the process was suspended and its timers have not
   * run yet.
   */
  readonly held: boolean;
  /**
   * Aborts when this process no longer holds the lock, before another holder can get the lock. The reason is a LOCK_NOT_HELD error.
   */
  readonly signal: AbortSignal;
  /**
   * Releases the lock: `held` is false from the call on. Resolves once other processes can get the lock; the value tells whether this
   * process held the lock until the call. Never rejects.
   */
  release(): Promise<boolean>;
}

export interface TryOptions {
  /** Cancels the call: the pending promise rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

export interface WaitOptions extends TryOptions {
  /** The maximum time to wait, such as "10s"; default: no limit. */
  readonly wait?: Duration;
}

export interface Lock {
  readonly name: string;
  /**
   * Waits for a permit. Keeps waiting while the store or the service is unreachable.
   * @throws LOCK_BUSY after `wait`; the signal's reason; STOPPED, LOCK_SIZE_DIFFERS, DURATION_INVALID; errors that need a correction, such
   * as COORDINATION_REFUSED
   */
  acquire(options?: WaitOptions): Promise<Held>;
  /**
   * Acquires the lock without waiting for other holders. If the holder seems to be dead, the call takes up to a session timeout to verify
   * that.
   * @returns undefined if another process holds the lock
   * @throws as `acquire`; also STORE_UNREACHABLE and COORDINATION_UNREACHABLE
   */
  tryAcquire(options?: TryOptions): Promise<Held | undefined>;
}

export interface LockOptions {
  /**
   * True: permits are granted in the order of the requests. The option concerns only Redis, where by default a waiter retries
   * after a random pause; PostgreSQL and ZooKeeper always grant in the order of the requests. All users of a name must give the
   * same value. Default false.
   */
  readonly fair?: boolean;
}

export interface SemaphoreOptions extends LockOptions {
  /**
   * How many processes may hold the semaphore at once. All holders and waiters must give the same number; it can change only while there
   * are none.
   */
  readonly permits: number;
}

/** One period in which this process leads an election. */
export interface Term {
  readonly name: string;
  /** Higher than the fence of every earlier leader. */
  readonly fence: bigint;
  /** Aborts when the term is over, before another process can lead. */
  readonly signal: AbortSignal;
  /** True if this process certainly leads at this moment, by its clock. */
  readonly leads: boolean;
  /** Ends this term: another process can lead as soon as `onLead` has settled, and this process then queues again. */
  resign(): void;
}

export interface ElectionOptions {
  /**
   * Called at the beginning of each term of this process. The term lasts until its signal aborts, even if this function has returned; if
   * the function rejects, the term ends. The function must settle soon after the signal has aborted. If it has not settled within `drain`,
   * this is logged and another process can lead; this process is a candidate again only after the function has settled.
   */
  readonly onLead: (term: Term) => void | Promise<void>;
}

export interface Election extends AsyncDisposable {
  readonly name: string;
  /** The current term while this process leads, by its clock; otherwise undefined. */
  readonly term: Term | undefined;
  /**
   * Leaves the election: the term's signal aborts. Another process can lead as soon as `onLead` has settled, or after `drain`. Resolves at
   * that moment, even if `onLead` has not settled. Never rejects.
   */
  close(): Promise<void>;
}

export type LockKind = "lock" | "semaphore" | "election";

export interface PermitSpec {
  readonly kind: LockKind;
  readonly name: string;
  readonly permits: number;
  readonly fair: boolean;
}

/** The interface that a driver of locks implements. */
export interface LockPlace {
  /** The service's name for messages, such as "ZooKeeper". */
  readonly title: string;
  /** Returns an object that grants the permits of a name; sends no request yet. */
  permits(spec: PermitSpec): Permits;
  /** Returns a grace lock of this name. @throws OPTION_INVALID; COORDINATION_UNSUPPORTED if the driver cannot give the guarantees */
  graceLock(name: string, options: GraceLockOptions): GraceLock;
  /** Releases everything that is held, so that other processes can get the permits, and cancels all waiting. Never rejects. */
  close(): Promise<void>;
}

/** The functions of the store that every driver needs, whichever service it uses. */
export interface LockNeeds {
  /** The lowest value for the upper half of fences; it is raised with each change of the coordination service. */
  readonly era: number;
  /** Returns an integer below 2^31 that is higher than every number returned before, to any process. */
  readonly nextBase: () => Promise<number>;
}

export interface Permits {
  /**
   * Acquires a permit.
   * @param wait false: returns undefined if it would have to wait for other holders, and rejects if the service is unreachable; true: waits
   * for a permit, also while the service is unreachable
   * @param signal cancels the waiting: rejects with the signal's reason, and leaves no entry that would block other processes
   */
  acquire(wait: boolean, signal: AbortSignal): Promise<Held | undefined>;
}

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._:/@-]*$/;

/** Checks the characters and the length of a lock's name. @throws OPTION_INVALID */
export function checkLockName(kind: string, name: unknown): asserts name is string {
  if (typeof name === "string" && name.length <= limits.lockNameLength && namePattern.test(name)) return;
  throw new CarillonError("OPTION_INVALID", `${kind} cannot be called ${JSON.stringify(name)?.slice(0, 300)}`, {
    hint: `Use 1 to ${limits.lockNameLength} letters, digits and . _ : / @ -, the first a letter or digit.`,
  });
}

/** Checks that `permits` is an integer from 1 to `limits.permits`. @throws OPTION_INVALID */
export function checkPermits(name: string, permits: unknown): asserts permits is number {
  if (Number.isInteger(permits) && (permits as number) >= 1 && (permits as number) <= limits.permits) return;
  throw new CarillonError("OPTION_INVALID", `the semaphore ${name} cannot have ${String(permits)} permits`, {
    hint: `Give a whole number from 1 to ${limits.permits}.`,
  });
}

/** The error for a semaphore that other processes use with a different number of permits. */
export function sizeDiffers({ name, permits }: PermitSpec, present: number | string): CarillonError {
  return new CarillonError(
    "LOCK_SIZE_DIFFERS",
    `the semaphore ${name} is in use with ${present} permits, and ${permits} are asked for`,
    {
      hint: "Give the same number wherever the name is used; it can be changed while nobody holds it or waits for it.",
    },
  );
}

export function notHeld(name: string, why: string, cause?: unknown): CarillonError {
  return new CarillonError("LOCK_NOT_HELD", `${name} is not held any more: ${why}`, {
    hint: "Stop what it protects, and take it anew.",
    cause,
  });
}

/** Waits for `work`. If the signal aborts first, rejects with its reason; `work` continues, and its result is ignored. */
export function whileWaiting<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
