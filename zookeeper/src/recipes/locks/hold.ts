/** A hold: an existing node of this session that is the first in its queue, or counts as a lease. */
import { ZooKeeperError } from "../../base/errors.ts";
import type { OnceEvent } from "../../operations/operations.ts";
import type { Session } from "../../operations/session.ts";
import { unwatch, watchNode } from "../base/node-watch.ts";
import { requireLive } from "../base/protect.ts";
import { leave } from "./line.ts";

/** The data that Curator's Revoker writes to a holder's node to request the lock. */
export const revokeRequest: Buffer = Buffer.from("__REVOKE__");

/** A lock or lease that this process holds. */
export interface Held {
  /** The path of the node that represents the hold. */
  readonly path: string;
  /** The session that owns the node. */
  readonly session: Session;
  /**
   * A number that is larger than the fence of every earlier holder. Pass it to the protected resource, which should refuse smaller ones. It
   * is the only protection against a process that was stopped for too long and continues without having noticed that.
   */
  readonly fence: bigint;
  /** Aborts when the hold ends: it is released, the session ends, or the node is deleted. */
  readonly signal: AbortSignal;
  /** Aborts when another client requests the lock (`revoke`, or Curator's Revoker). The holder decides whether to release it. */
  readonly revocation: AbortSignal;
  /** True while the lock is held, by the clock at the time of the call; correct even right after the process was stopped for some time. */
  readonly held: boolean;
  /**
   * Releases the hold, which counts as ended from the moment of the call. Resolves when other processes can acquire the lock.
   * @throws NOT_HELD, without any effect, if it is no longer held; errors that prevent the node's deletion, such as NO_AUTH
   */
  release(): Promise<void>;
  /** Releases the hold if it has not ended. */
  [Symbol.asyncDispose](): Promise<void>;
}

export class Hold implements Held {
  readonly session: Session;
  readonly path: string;
  readonly #what: string;
  readonly #over = new AbortController();
  readonly #revocation = new AbortController();
  readonly #stopListening: () => void;
  #fence = 0n;
  #left: Promise<void> | undefined;

  /** @param what the lock's name, for messages */
  constructor(session: Session, path: string, what: string) {
    this.session = session;
    this.path = path;
    this.#what = what;
    this.#stopListening = session.onState((state) => {
      if (state === "ended") this.#lose("its session has ended", session.signal.reason);
    });
  }

  get fence(): bigint {
    return this.#fence;
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  get revocation(): AbortSignal {
    return this.#revocation.signal;
  }

  get held(): boolean {
    return !this.#over.signal.aborted && this.session.live;
  }

  /**
   * Begins the hold and watches its node.
   * @returns false, without a hold, if the node is deleted or belongs to another session
   * @throws SESSION_EXPIRED; ABORTED by the signal
   */
  async begin(fence: Promise<bigint>, signal?: AbortSignal): Promise<boolean> {
    const [there, value] = await Promise.all([this.#look(signal), fence]);
    requireLive(this.session, this.#what);
    if (!there || this.#over.signal.aborted) {
      this.end();
      return false;
    }
    this.#fence = value;
    return true;
  }

  async release(): Promise<void> {
    if (!this.held) throw this.notHeld();
    this.end();
    await this.leave();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.held) await this.release();
  }

  /** Marks the hold as ended. No other process can get the lock before `leave` has deleted the hold's node, if the node still exists. */
  end(): void {
    this.#end(new ZooKeeperError("NOT_HELD", `${this.#what} has been released`, { path: this.path }));
  }

  leave(): Promise<void> {
    this.#left ??= leave(this.session, this.path);
    return this.#left;
  }

  /** Ends a hold that no caller has got, and deletes its node in the background. */
  abandon(): void {
    this.end();
    this.#leaveBehind();
  }

  notHeld(): ZooKeeperError {
    return new ZooKeeperError("NOT_HELD", `${this.#what} is not held`, {
      path: this.path,
      hint: "it was released or lost before: someone else may have it now",
      cause: this.#over.signal.reason,
    });
  }

  async #look(signal?: AbortSignal): Promise<boolean> {
    const seen = await watchNode(this.session, this.path, this.#changed, signal);
    if (this.#over.signal.aborted) {
      unwatch(this.session, this.path, this.#changed);
      return false;
    }
    if (seen?.stat.ephemeralOwner !== this.session.id) return false;
    if (revokeRequest.equals(seen.data)) {
      this.#revocation.abort(new ZooKeeperError("NOT_HELD", `${this.#what} is asked for`, { path: this.path }));
    }
    return true;
  }

  readonly #changed = (event: OnceEvent): void => {
    if (this.#over.signal.aborted || (event.type === "ended" && this.session.state === "ended")) return;
    if (event.type === "deleted") {
      this.#lose("somebody deleted its node");
      return;
    }
    this.#look().then(
      (there) => there || this.#lose("somebody deleted its node"),
      // If the node cannot be read, it is unknown whether the lock is still held, so the hold counts as lost.
      (error: unknown) => {
        this.#lose("its node cannot be read", error);
        this.#leaveBehind();
      },
    );
  };

  #leaveBehind(): void {
    // Errors are ignored, because the caller has already got the error that came first; see `leaveBehind` in line.ts.
    this.leave().catch(() => undefined);
  }

  #lose(why: string, cause?: unknown): void {
    const hint = "stop what it protects, and take it anew";
    this.#end(new ZooKeeperError("NOT_HELD", `${this.#what} is lost: ${why}`, { path: this.path, hint, cause }));
  }

  #end(reason: ZooKeeperError): void {
    this.#stopListening();
    this.#over.abort(reason);
  }
}
