/** The use of a grace lock: the object that its holder gets. */
import type { ZooKeeperError } from "../../base/errors.ts";
import type { LastUse } from "./place.ts";

/** The owner that vanished, or gave the lock up in the midst of a use, and how far that use came. */
export interface TakenOver {
  readonly owner: string;
  /** undefined if the lock was never used. `endedMs: null` means that the work was cut off, or may have been. */
  readonly use: LastUse | undefined;
}

/** One use of the lock: one caller of one process at a time. */
export interface Use extends AsyncDisposable {
  /** Send it with every write. It rises if the lock had to be taken back meanwhile, so read it each time. */
  readonly fence: bigint;
  /** Aborts when the lock is lost or released; the reason is a ZooKeeperError (NOT_HELD). */
  readonly signal: AbortSignal;
  /** No other contender can have the lock at this moment, by the clock at the call. */
  readonly held: boolean;
  /** Set if the lock was taken over, before this use, from an owner that vanished or was stopped. */
  readonly takenOver: TakenOver | undefined;
  /** Leaves a text in the record, for the next holder to read. @returns false if the lock was not held */
  note(text: string): Promise<boolean>;
  /** The lock stays with this owner. @returns false when the end could not be recorded: the lock was not held */
  end(): Promise<boolean>;
}

/** The lock's functions for its use. */
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
