/** One use of a grace lock: the object that `lock` and `tryLock` return. */
import type { ZooKeeperError } from "../../base/errors.ts";
import type { LastUse } from "./place.ts";

/** The owner that vanished or that released the lock during a use, and the record of the last use. */
export interface TakenOver {
  readonly owner: string;
  /** The last use; undefined if the lock was never used. `endedMs: null` means that its work may be unfinished. */
  readonly use: LastUse | undefined;
}

/** One use of the lock. At most one caller in all processes has a use that is `held`. */
export interface Use extends AsyncDisposable {
  /** The current fence, to be sent with every write. It increases when the lock is taken back, so read it before each write. */
  readonly fence: bigint;
  /** Aborts when the use loses the lock or the lock is released. The reason is a ZooKeeperError (NOT_HELD). */
  readonly signal: AbortSignal;
  /** True until this use ends, loses the lock, or the lock is released; by the clock at the time of the call. */
  readonly held: boolean;
  /** Set if the lock was taken over before this use from an owner that vanished, or released the lock during a use. */
  readonly takenOver: TakenOver | undefined;
  /** Writes a text to the record for the next holder. @returns false if the use has ended or has lost the lock */
  note(text: string): Promise<boolean>;
  /** Ends the use; this owner keeps the lock. @returns false if the end was not recorded, because the lock was lost or released before */
  end(): Promise<boolean>;
}

/** Functions of the lock that its use calls. */
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
