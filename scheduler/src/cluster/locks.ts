import type { GraceLock, GraceLockOptions } from "@carillon/zookeeper";
import type { Duration } from "../base/duration.ts";
import { CarillonError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";

/**
 * The port of locks for users. A driver has one task: to grant the permits of a name, each with a fence. A lock is a name with one permit,
 * a semaphore a name with several, an election a lock whose holder leads.
 *
 * Every driver guarantees two things. The number of processes that believe they hold a permit never exceeds the number of permits, because
 * each belief ends by its process's own monotonic clock before another process can get the permit. And fences only rise, per kind and
 * name, across holders, processes and restarts. docs/locks.md lists under which faults each driver guarantees this.
 */
export interface Held extends AsyncDisposable {
  readonly name: string;
  /**
   * Higher than the fence of every earlier holder: write it beside the data that the lock protects, and reject writes with a lower fence.
   * Nothing else protects against a process that was stopped for too long between checking and acting. Fits a PostgreSQL bigint.
   */
  readonly fence: bigint;
  /**
   * True if this process certainly holds the lock at this moment, by its clock: correct even if the process was stopped and has not noticed
   * yet.
   */
  readonly held: boolean;
  /** Aborts when the lock is no longer held, before another holder can get it. The reason is LOCK_NOT_HELD. */
  readonly signal: AbortSignal;
  /**
   * Ends the holding as soon as it is called. Resolves once other processes can get the lock, with whether this process held the lock until
   * the call. Never rejects.
   */
  release(): Promise<boolean>;
}

export interface TryOptions {
  /** Gives up when it aborts; the pending call rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

export interface WaitOptions extends TryOptions {
  /** How long to wait at most, such as "10s"; default: for ever. */
  readonly wait?: Duration;
}

export interface Lock {
  readonly name: string;
  /**
   * Waits for a permit, also while the store or the service is away.
   * @throws LOCK_BUSY when `wait` is over; the signal's reason; STOPPED, LOCK_SIZE_DIFFERS, DURATION_INVALID; errors that do not pass by
   * themselves, such as COORDINATION_REFUSED
   */
  acquire(options?: WaitOptions): Promise<Held>;
  /**
   * Does not wait for other holders. If the holder seems to have died, the call takes up to a session timeout to make sure.
   * @returns undefined when the lock is taken
   * @throws as `acquire`; STORE_UNREACHABLE, COORDINATION_UNREACHABLE
   */
  tryAcquire(options?: TryOptions): Promise<Held | undefined>;
}

export interface LockOptions {
  /**
   * Grants permits in the order of the requests. PostgreSQL and ZooKeeper are always fair. Redis is fair only with this option; by default
   * a waiter retries after a random pause. All users of a name must give the same value. Default false.
   */
  readonly fair?: boolean;
}

export interface SemaphoreOptions extends LockOptions {
  /**
   * How many processes may hold it at once. All holders and waiters must give the same number; while there are none, the number may change.
   */
  readonly permits: number;
}

/** One period of leadership. */
export interface Term {
  readonly name: string;
  /** Higher than the fence of every earlier leader. */
  readonly fence: bigint;
  /** Aborts when the term is over, before another process can lead. */
  readonly signal: AbortSignal;
  /** True if this process certainly leads at this moment, by its clock. */
  readonly leads: boolean;
  /** Gives this term up: another process can lead as soon as `onLead` has settled, and this process gets in line again. */
  resign(): void;
}

export interface ElectionOptions {
  /**
   * Called at the beginning of each term of this process. The term lasts until its signal aborts, whether or not this function has
   * returned; if it rejects, the term is given up. The function must end soon after the signal has aborted. If it goes on for `drain` after
   * that, this is logged and another process can lead; this process stands again only once the function has settled.
   */
  readonly onLead: (term: Term) => void | Promise<void>;
}

export interface Election extends AsyncDisposable {
  readonly name: string;
  /** The present term, while this process leads by its clock; else undefined. */
  readonly term: Term | undefined;
  /**
   * Leaves the election: the term's signal aborts, and as soon as `onLead` has settled, or after `drain`, another process can lead.
   * Resolves then, even if `onLead` goes on. Never rejects.
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
  /** The name for messages, such as "ZooKeeper". */
  readonly title: string;
  /** Makes the permits of a name; sends no request yet. */
  permits(spec: PermitSpec): Permits;
  /** @throws COORDINATION_UNSUPPORTED if the driver cannot keep the guarantees; OPTION_INVALID */
  graceLock(name: string, options: GraceLockOptions): GraceLock;
  /** Ends all holdings, so that other processes can get the permits, and ends all waiting. Never rejects. */
  close(): Promise<void>;
}

/** The parts of the store that every driver needs, whatever service it uses. */
export interface LockNeeds {
  /** The least value of the higher half of fences; it changes with each change of service. */
  readonly era: number;
  /** Returns a whole number below 2^31, above every number that it returned before, to any process. */
  readonly nextBase: () => Promise<number>;
}

export interface Permits {
  /**
   * @param wait false: returns undefined where it would have to wait for other holders, and rejects when it cannot find out; true: waits
   * until it holds a permit, also while the service is away
   * @param signal ends the waiting: rejects with the signal's reason, and leaves nothing that blocks others
   */
  acquire(wait: boolean, signal: AbortSignal): Promise<Held | undefined>;
}

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._:/@-]*$/;

/** @throws OPTION_INVALID */
export function checkLockName(kind: string, name: unknown): asserts name is string {
  if (typeof name === "string" && name.length <= limits.lockNameLength && namePattern.test(name)) return;
  throw new CarillonError("OPTION_INVALID", `${kind} cannot be called ${JSON.stringify(name)?.slice(0, 300)}`, {
    hint: `Use 1 to ${limits.lockNameLength} letters, digits and . _ : / @ -, the first a letter or digit.`,
  });
}

/** @throws OPTION_INVALID */
export function checkPermits(name: string, permits: unknown): asserts permits is number {
  if (Number.isInteger(permits) && (permits as number) >= 1 && (permits as number) <= limits.permits) return;
  throw new CarillonError("OPTION_INVALID", `the semaphore ${name} cannot have ${String(permits)} permits`, {
    hint: `Give a whole number from 1 to ${limits.permits}.`,
  });
}

/** The error for a semaphore that is in use with another size. */
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

/** Waits for `work` until the signal aborts, and then rejects with the signal's reason. The work goes on, and its result is ignored. */
export function whileWaiting<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
