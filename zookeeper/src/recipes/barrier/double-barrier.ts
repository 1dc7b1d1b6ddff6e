/**
 * A double barrier: all members begin together once `members` of them have entered, and all end together. It is compatible with Java
 * Curator's DistributedDoubleBarrier on the same path. Each member is an ephemeral node `<path>/<uuid>`; `<path>/ready` exists from the
 * moment at which all have entered. A member that arrives while other members are still inside enters at once.
 *
 * When members leave, the one with the smallest name waits for the one with the largest name. All others delete their nodes and wait for
 * the smallest, so that each departure notifies few members. A member waits only for members that were inside when it began to leave, so
 * never for members of the next round.
 *
 * If all members die inside, `ready` remains, and would let later members enter one by one. Therefore an entering member deletes `ready`
 * if no member is inside, which Curator does not do.
 */
import { randomUUID } from "node:crypto";
import { isZooKeeperError, ZooKeeperError } from "../../base/errors.ts";
import { callNames, checkNames, waitNames } from "../../base/options.ts";
import { checkPath } from "../../base/paths.ts";
import type { CallOptions, OnceEvent } from "../../operations/operations.ts";
import type { Session, ZooKeeper } from "../../operations/session.ts";
import { acrossSessions } from "../base/follow.ts";
import { departure, unwatch, watchExistence } from "../base/node-watch.ts";
import { createContainers, deleteSurely } from "../base/protect.ts";
import { type WaitOptions, waitFor } from "../base/waiting.ts";
import { limited } from "../locks/acquisition.ts";
import { Hold } from "../locks/hold.ts";
import { leave, leaveBehind, type TurnOptions } from "../locks/line.ts";

/** A member that is inside the barrier. */
export interface Inside {
  /** The path of the member's node. */
  readonly path: string;
  /** Aborts when the member is no longer inside: it began to leave, its session ended, or its node was deleted. */
  readonly signal: AbortSignal;
  /**
   * Waits until all members leave. When the call settles, the member's node has been deleted, or will be deleted with its ended session.
   * @returns false if the limit passes before all have left
   * @throws NOT_HELD if the member is no longer inside; SESSION_EXPIRED, ABORTED
   */
  leave(options?: WaitOptions): Promise<boolean>;
}

export class DoubleBarrier {
  readonly path: string;
  readonly members: number;
  readonly #zk: ZooKeeper;

  /**
   * @param members the number of members; it must be the same for all users of the path
   * @throws PATH_INVALID, OPTION_INVALID
   */
  constructor(zk: ZooKeeper, path: string, members: number) {
    checkPath(path === "/" ? "//" : path);
    if (!Number.isInteger(members) || members < 1) {
      const options = { path, hint: "give a whole number from 1 on" };
      throw new ZooKeeperError("OPTION_INVALID", `the barrier ${path} has ${members} members`, options);
    }
    this.path = path;
    this.members = members;
    this.#zk = zk;
  }

  /**
   * Enters the barrier and waits until all members have entered. If the session ends first, it enters again in the next session.
   * @throws ABORTED, CLOSED, OPTION_INVALID, NO_AUTH
   */
  async enter(options: CallOptions = {}): Promise<Inside> {
    checkNames(`the barrier ${this.path}`, this.path, options, callNames);
    const inside = await this.tryEnter({ ...options, limitMs: Number.POSITIVE_INFINITY });
    if (!inside) throw new Error(`${this.path}: waited without a limit, and in vain`);
    return inside;
  }

  /**
   * Enters the barrier like `enter`, but with a time limit.
   * @param options.limitMs default 0: enters only if this is the last missing member, or if all are already inside
   * @returns undefined if the limit passes first; the member's node is then deleted
   * @throws as `enter`
   */
  async tryEnter(options: WaitOptions = {}): Promise<Inside | undefined> {
    checkNames(`the barrier ${this.path}`, this.path, options, waitNames);
    const { limitMs = 0, signal } = options;
    return limited<Member>(
      `the barrier ${this.path}`,
      { limitMs, signal },
      (limits) => acrossSessions(this.#zk, limits.signal, (session) => this.#enter(session, limits)),
      (member) => member.abandon(),
    );
  }

  async #enter(session: Session, limits: Required<TurnOptions>): Promise<Member | undefined> {
    const { signal } = limits;
    await this.#clear(session, signal);
    const path = `${this.path}/${randomUUID()}`;
    try {
      await this.#create(session, path);
      if (!(await this.#allIn(session, limits))) {
        await leave(session, path);
        return undefined;
      }
      const hold = new Hold(session, path, `the place in the barrier ${this.path}`);
      if (await hold.begin(Promise.resolve(0n), signal)) return new Member(this.path, hold);
    } catch (error) {
      leaveBehind(session, path);
      throw error;
    }
    return this.#enter(session, limits); // another client deleted this member's node meanwhile
  }

  /** Deletes the node `ready` if no member is inside: then the node is left over from members that all died inside. */
  async #clear(session: Session, signal: AbortSignal): Promise<void> {
    const { names } = await listed(session, this.path, signal);
    // If the next round has begun meanwhile, its members have already seen `ready`, and only members that enter later wait.
    if (names.length === 1 && names[0] === "ready") await deleteSurely(session, `${this.path}/ready`);
  }

  /**
   * Creates the member's node. Takes no signal, because an aborted creation may leave a node whose name this client has not received: see
   * locks/line.ts.
   */
  async #create(session: Session, path: string): Promise<void> {
    for (;;) {
      try {
        await session.create(path, undefined, { ephemeral: true });
        return;
      } catch (error) {
        if (isZooKeeperError(error, "NODE_EXISTS")) return; // the name is random, so this client created the node and the answer was lost
        if (isZooKeeperError(error, "NO_NODE")) await createContainers(session, this.path);
        else if (!isZooKeeperError(error, "CONNECTION_LOSS")) throw error;
      }
    }
  }

  /**
   * Waits until `ready` exists. A member that sees that all have entered creates it.
   * @returns false if `wait` is false and some members have not entered
   */
  async #allIn(session: Session, { signal, wait }: Required<TurnOptions>): Promise<boolean> {
    const ready = `${this.path}/ready`;
    for (;;) {
      const type = await waitFor<OnceEvent["type"] | "none">(
        `the barrier ${this.path}`,
        { signal },
        (resolve, reject) => {
          const listener = (event: OnceEvent) => resolve(event.type);
          const look = async () => {
            if (await watchExistence(session, ready, listener, signal)) return resolve("created");
            const { members } = await listed(session, this.path, signal);
            if (members.length < this.members) return wait || resolve("none");
            await this.#makeReady(session, ready, signal);
            return resolve("created");
          };
          look().catch(reject);
          return () => unwatch(session, ready, listener);
        },
      );
      if (type === "none") return false;
      if (type === "created") return true;
      // The watch was removed, or ended with its session. The next read shows which: it rejects if the session has ended.
    }
  }

  async #makeReady(session: Session, ready: string, signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        await session.create(ready, undefined, { signal });
        return;
      } catch (error) {
        if (isZooKeeperError(error, "NODE_EXISTS")) return;
        if (!isZooKeeperError(error, "CONNECTION_LOSS")) throw error;
      }
    }
  }
}

class Member implements Inside {
  readonly #barrier: string;
  readonly #hold: Hold;

  constructor(barrier: string, hold: Hold) {
    this.#barrier = barrier;
    this.#hold = hold;
  }

  get path(): string {
    return this.#hold.path;
  }

  get signal(): AbortSignal {
    return this.#hold.signal;
  }

  abandon(): void {
    this.#hold.abandon();
  }

  async leave(options: WaitOptions = {}): Promise<boolean> {
    checkNames(`leaving the barrier ${this.#barrier}`, this.path, options, waitNames);
    if (!this.#hold.held) throw this.#hold.notHeld();
    this.#hold.end();
    try {
      const what = `leaving the barrier ${this.#barrier}`;
      return (
        (await limited(
          what,
          options,
          (limits) => this.#leave(limits),
          () => undefined,
        )) ?? false
      );
    } finally {
      await this.#hold.leave();
    }
  }

  async #leave({ signal, wait }: Required<TurnOptions>): Promise<boolean> {
    const { session, path } = this.#hold;
    const own = path.slice(this.#barrier.length + 1);
    let round: ReadonlySet<string> | undefined;
    for (;;) {
      const { names, members } = await listed(session, this.#barrier, signal);
      if (names.length === 1 && names[0] === "ready") await leave(session, `${this.#barrier}/ready`);
      round ??= new Set(members);
      const left = members.filter((name) => round?.has(name)).sort();
      const [smallest, largest] = [left[0], left.at(-1)];
      if (smallest === undefined || largest === undefined) return true;
      if (left.length === 1 && smallest === own) {
        await this.#last(session, path);
        return true;
      }
      if (!wait) return false;
      if (smallest !== own) await leave(session, path);
      await departure(session, `${this.#barrier}/${smallest === own ? largest : smallest}`, signal);
    }
  }

  /** Deletes the last member's node and `ready` in one transaction, so that no member can enter between the two deletions. */
  async #last(session: Session, path: string): Promise<void> {
    try {
      await session.multi([
        { type: "delete", path: `${this.#barrier}/ready` },
        { type: "delete", path },
      ]);
    } catch (error) {
      // `ready` was already deleted, or the answer was lost. The remaining nodes are deleted one by one, with retries.
      if (!isZooKeeperError(error, "NO_NODE", "CONNECTION_LOSS")) throw error;
      await leave(session, path);
      const { names } = await listed(session, this.#barrier);
      if (names.length === 1 && names[0] === "ready") await leave(session, `${this.#barrier}/ready`);
    }
  }
}

async function listed(
  session: Session,
  path: string,
  signal?: AbortSignal,
): Promise<{ names: string[]; members: string[] }> {
  try {
    const { names } = await session.children(path, { signal });
    return { names, members: names.filter((name) => name !== "ready") };
  } catch (error) {
    if (!isZooKeeperError(error, "NO_NODE")) throw error;
    return { names: [], members: [] };
  }
}
