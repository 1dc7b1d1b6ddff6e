import type { GraceLock, GraceLockOptions } from "@carillon/zookeeper";
import type { Duration } from "../base/duration.ts";
import { CarillonError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";

/**
 * The port of locks for users. One thing is asked of a driver: to give out the permits of a name, each with a fence. A
 * lock is a name with one permit, a semaphore one with several, an election a lock whose holder leads.
 *
 * What every driver promises: no more permits are believed in at once than there are, because each belief ends by its
 * process's own monotonic clock before another can get the permit; and fences only rise, per kind and name, over holders,
 * processes, and restarts. Under which faults each driver keeps that: docs/locks.md.
 */
export interface Held extends AsyncDisposable {
  readonly name: string;
  /**
   * Above that of every holder before: write it beside what the lock protects, and let that refuse lower ones. The only
   * protection against a process that was stopped for too long between looking and acting. Fits a PostgreSQL bigint.
   */
  readonly fence: bigint;
  /** For sure, asked of the clock at this moment: right also in a process that was stopped and has not noticed yet. */
  readonly held: boolean;
  /** Aborts when it is held no more, before another can hold it. The reason is LOCK_NOT_HELD. */
  readonly signal: AbortSignal;
  /** Held no more from the call on. @returns when others can have it: whether it was held until now. Never rejects. */
  release(): Promise<boolean>;
}

export interface TryOptions {
  /** Gives up; what was asked for rejects with the signal's reason. */
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
   * @throws LOCK_BUSY when `wait` is over; the signal's reason; STOPPED, LOCK_SIZE_DIFFERS, DURATION_INVALID; what does not
   *   mend by itself, such as COORDINATION_REFUSED
   */
  acquire(options?: WaitOptions): Promise<Held>;
  /**
   * Does not wait for others. Where the holder seems to have died, it takes up to a session timeout to make sure.
   * @returns undefined when it is taken
   * @throws as `acquire`; STORE_UNREACHABLE, COORDINATION_UNREACHABLE
   */
  tryAcquire(options?: TryOptions): Promise<Held | undefined>;
}

export interface LockOptions {
  /**
   * In the order in which they asked. PostgreSQL and ZooKeeper are always fair; Redis is when told so, by default whoever
   * waits comes back after a random pause. The same for all who use the name. Default false.
   */
  readonly fair?: boolean;
}

export interface SemaphoreOptions extends LockOptions {
  /** How many may hold it at once: the same for all that hold it or wait; with none, it may change. */
  readonly permits: number;
}

/** One period of leadership. */
export interface Term {
  readonly name: string;
  /** Above that of every leader before. */
  readonly fence: bigint;
  /** Aborts when it is over, before another can lead. */
  readonly signal: AbortSignal;
  /** For sure, asked of the clock at this moment. */
  readonly leads: boolean;
  /** Gives this term up: another can lead as soon as `onLead` has settled, and this process gets in line again. */
  resign(): void;
}

export interface ElectionOptions {
  /**
   * Called at the beginning of each term of this process. It leads until the term's signal aborts, whether this has
   * returned or not; a rejection gives the term up. It has to end soon after the signal has aborted: one that goes on for
   * `drain` is named in the log, another process can lead then, and this one stands again only when it has settled.
   */
  readonly onLead: (term: Term) => void | Promise<void>;
}

export interface Election extends AsyncDisposable {
  readonly name: string;
  /** The term while this process leads, asked of the clock at this moment. */
  readonly term: Term | undefined;
  /**
   * Leaves: the term's signal aborts, and as soon as `onLead` has settled, at most `drain` later, another can lead. Resolves
   * then, also where `onLead` goes on. Never rejects.
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

/** What a driver is. */
export interface LockPlace {
  /** For messages, such as "ZooKeeper". */
  readonly title: string;
  /** Asks nothing yet. */
  permits(spec: PermitSpec): Permits;
  /** @throws COORDINATION_UNSUPPORTED where its promises cannot be kept; OPTION_INVALID */
  graceLock(name: string, options: GraceLockOptions): GraceLock;
  /** Ends all that is held, so that others can have it, and all waiting. Never rejects. */
  close(): Promise<void>;
}

/** What a place needs of the store, whatever it rests on. */
export interface LockNeeds {
  /** The higher half of fences, at least: another after each change of service. */
  readonly era: number;
  /** A whole number below 2^31, above every one that it gave before, also to others. */
  readonly nextBase: () => Promise<number>;
}

export interface Permits {
  /**
   * @param wait false: returns undefined where it would have to wait for others, and rejects when it cannot tell; true: goes
   *   on until it holds, also while the service is away
   * @param signal ends the waiting: rejects with its reason, and nothing stays in anybody's way
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

/** Waits no longer than the signal allows: rejects with its reason. What was waited for goes on, unheard. */
export function whileWaiting<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
