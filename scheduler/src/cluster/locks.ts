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
   * Above the fence of every holder before: write it beside the data that the lock protects, and reject lower ones there. Nothing else
   * protects against a process that was stopped for too long between checking and acting. Fits a PostgreSQL bigint.
   */
  readonly fence: bigint;
  /** Certain, by the clock at this moment: correct even in a process that was stopped and has not noticed yet. */
  readonly held: boolean;
  /** Aborts when the lock is no longer held, before another holder can get it. The reason is LOCK_NOT_HELD. */
  readonly signal: AbortSignal;
  /** Ends the holding at the call. @returns, once others can have the lock, whether it was held until the call. Never rejects. */
  release(): Promise<boolean>;
}

export interface TryOptions {
  /** Gives up; the pending call rejects with the signal's reason. */
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
   * @throws LOCK_BUSY when `wait` is over; the signal's reason; STOPPED, LOCK_SIZE_DIFFERS, DURATION_INVALID; errors that do not
   *   go away by themselves, such as COORDINATION_REFUSED
   */
  acquire(options?: WaitOptions): Promise<Held>;
  /**
   * Does not wait for other holders. If the holder seems to have died, it takes up to a session timeout to make sure.
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
  /** How many may hold it at once. All holders and waiters must give the same number; while there are none, it may change. */
  readonly permits: number;
}

/** One period of leadership. */
export interface Term {
  readonly name: string;
  /** Above the fence of every leader before. */
  readonly fence: bigint;
  /** Aborts when the term is over, before another process can lead. */
  readonly signal: AbortSignal;
  /** Certain, by the clock at this moment. */
  readonly leads: boolean;
  /** Gives this term up: another process can lead as soon as `onLead` has settled, and this process gets in line again. */
  resign(): void;
}

export interface ElectionOptions {
  /**
   * Called at the beginning of each term of this process. It leads until the term's signal aborts, whether this function has returned or
   * not; a rejection gives the term up. The function has to end soon after the signal has aborted. If it goes on for `drain`, it is logged
   * and another process can lead; this process stands again only when it has settled.
   */
  readonly onLead: (term: Term) => void | Promise<void>;
}

export interface Election extends AsyncDisposable {
  readonly name: string;
  /** The term while this process leads, by the clock at this moment. */
  readonly term: Term | undefined;
  /**
   * Leaves the election: the term's signal aborts, and as soon as `onLead` has settled, at most `drain` later, another process can lead.
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

/** The interface of a driver. */
export interface LockPlace {
  /** For messages, such as "ZooKeeper". */
  readonly title: string;
  /** Sends no request yet. */
  permits(spec: PermitSpec): Permits;
  /** @throws COORDINATION_UNSUPPORTED where the guarantees cannot be kept; OPTION_INVALID */
  graceLock(name: string, options: GraceLockOptions): GraceLock;
  /** Ends all holdings, so that other processes can have the permits, and all waiting. Never rejects. */
  close(): Promise<void>;
}

/** The parts of the store that every driver needs, whatever service it uses. */
export interface LockNeeds {
  /** The least value of the higher half of fences; it changes with each change of service. */
  readonly era: number;
  /** A whole number below 2^31, above every one returned before, to any process. */
  readonly nextBase: () => Promise<number>;
}

export interface Permits {
  /**
   * @param wait false: returns undefined where it would have to wait for others, and rejects when it cannot find out; true:
   *   goes on until it holds, also while the service is away
   * @param signal ends the waiting: rejects with its reason, and leaves nothing that blocks others
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

/** The semaphore is in use with another size. */
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

/** Waits no longer than the signal allows: then rejects with its reason. The work goes on, and its result is ignored. */
export function whileWaiting<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
