/** The use of a grace lock: the object that `lock` and `tryLock` return. */
import type { ZooKeeperError } from "../../base/errors.ts";
import type { LastUse } from "./place.ts";

/** The owner that vanished, or released the lock in the middle of a use, and the record of that use. */
export interface TakenOver {
  readonly owner: string;
  /** undefined if the lock was never used. `endedMs: null` means that the work was, or may have been, cut off. */
  readonly use: LastUse | undefined;
}

/** One use of the lock. Only one caller of one process has a use at a time. */
export interface Use extends AsyncDisposable {
  /** Send the fence with every write. It increases if the lock had to be taken back meanwhile, so read it again each time. */
  readonly fence: bigint;
  /** Aborts when the lock is lost or released; the reason is a ZooKeeperError (NOT_HELD). */
  readonly signal: AbortSignal;
  /** True if no other contender can have the lock, by the clock at the moment of the call. */
  readonly held: boolean;
  /** Set if the lock was taken over, before this use, from an owner that vanished or was stopped. */
  readonly takenOver: TakenOver | undefined;
  /** Writes a text into the record, for the next holder to read. @returns false if the lock was not held */
  note(text: string): Promise<boolean>;
  /** Ends the use; the lock stays with this owner. @returns false if the end could not be recorded because the lock was not held */
  end(): Promise<boolean>;
}

/** The functions of the lock that its use calls. */
export interface Ties {
  held(): boolean;
  note(text: string): Promise<boolean>;
  end(): Promise<boolean>;
}

export class RunningUse implements Use {
  fence: bigint;
  readonly takenOver: TakenOver | undefined;
  readonly #stop = new AbortController();
  readonly #ties: Ties;
  #ended: Promise<boolean> | undefined;

  constructor(fence: bigint, takenOver: TakenOver | undefined, ties: Ties) {
    this.fence = fence;
    this.takenOver = takenOver;
    this.#ties = ties;
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  get held(): boolean {
    return this.#ties.held();
  }

  note(text: string): Promise<boolean> {
    return this.#ties.note(text);
  }

  end(): Promise<boolean> {
    this.#ended ??= this.#ties.end();
    return this.#ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }

  stop(why: ZooKeeperError): void {
    this.#stop.abort(why);
  }
}
