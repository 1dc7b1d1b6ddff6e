/**
 * A read-write lock: many readers at once, or one writer. Locks are granted in the order of the queue, so that writers do not starve. It
 * is compatible with Java Curator's InterProcessReadWriteLock on the same path: nodes `<path>/_c_<uuid>-__READ__<number>` and
 * `…-__WRIT__<number>`.
 *
 * A writer may also acquire the read lock, and keep it when it releases the write lock. Its read node is then at the end of the queue,
 * behind waiting writers. If its write node were deleted at once, as Curator does, the first waiting writer would write while this reader
 * reads. So if a writer waits between the two nodes, the write node remains until the read lock is released.
 */

import { ZooKeeperError } from "../../base/errors.ts";
import { checkNames } from "../../base/options.ts";
import type { CallOptions } from "../../operations/operations.ts";
import type { Session, ZooKeeper } from "../../operations/session.ts";
import { acrossSessions } from "../base/follow.ts";
import { type AcquireOptions, Acquisition, type Lock, type TryOptions, takeHold } from "./acquisition.ts";
import type { Held, Hold } from "./hold.ts";
import { type Line, placeIn, type TurnOptions } from "./line.ts";
import { checkLockPath, type LockOptions, localAddress, lockOptionNames, nodesInLine } from "./mutex.ts";

const read = "__READ__";
const write = "__WRIT__";

export class ReadWriteLock {
  readonly path: string;
  /** Many owners can hold it at once. The holder of the write lock gets the read lock without waiting if it passes the same owner. */
  readonly read: Lock;
  /**
   * Held by one owner. An owner that holds only the read lock gets OPTION_INVALID instead of the write lock, because it would wait for
   * itself.
   */
  readonly write: Lock;
  readonly #zk: ZooKeeper;
  readonly #what: string;
  readonly #readLine: Line;
  readonly #writeLine: Line;
  readonly #reading: Acquisition;
  readonly #writing: Acquisition;
  /** Maps a read hold to a released write hold, whose node remains until the read hold ends. */
  readonly #kept = new Map<Hold, Hold>();

  /** @throws PATH_INVALID, OPTION_INVALID */
  constructor(zk: ZooKeeper, path: string, options: LockOptions = {}) {
    checkLockPath(path);
    checkNames(`the lock at ${path}`, path, options, lockOptionNames);
    const { data = localAddress(), acl } = options;
    this.path = path;
    this.#zk = zk;
    this.#what = `lock at ${path}`;
    this.#readLine = { path, marker: read, data, acl, blockedBy: [write] };
    this.#writeLine = { path, marker: write, data, acl, blockedBy: [read, write] };
    this.#reading = new Acquisition(
      `the read ${this.#what}`,
      (turn, owner) => acrossSessions(zk, turn.signal, (session) => this.#takeRead(session, turn, owner)),
      (hold) => this.#giveUpRead(hold),
    );
    this.#writing = new Acquisition(
      `the write ${this.#what}`,
      (turn, owner) => acrossSessions(zk, turn.signal, (session) => this.#takeWrite(session, turn, owner)),
      (hold, owner) => this.#giveUpWrite(hold, owner),
    );
    this.read = new Side(this.#reading, (options) => nodesInLine(this.#zk, path, [read], options));
    this.write = new Side(this.#writing, (options) => nodesInLine(this.#zk, path, [write], options));
  }

  async #takeRead(session: Session, options: Required<TurnOptions>, owner: unknown): Promise<Hold | undefined> {
    const what = `the read ${this.#what}`;
    const writing = this.#writing.of(owner);
    if (writing) {
      // The read hold gets the write hold's fence. The fence of the read node would be larger than the fences of writers that queue before
      // that node.
      const line = { ...this.#readLine, blockedBy: [] };
      const hold = await takeHold(writing.session, line, what, options, writing.fence);
      if (writing.held || !hold) return hold;
      // The write hold ended before the read node was created, so another writer may hold the lock by now.
      hold.end();
      await hold.leave();
    }
    return takeHold(session, this.#readLine, what, options);
  }

  async #takeWrite(session: Session, options: Required<TurnOptions>, owner: unknown): Promise<Hold | undefined> {
    if (this.#reading.of(owner)) {
      const hint = "release the read lock first, or acquire the write lock before it";
      throw new ZooKeeperError("OPTION_INVALID", `the ${this.#what}: a reader cannot become the writer`, {
        path: this.path,
        hint,
      });
    }
    return takeHold(session, this.#writeLine, `the write ${this.#what}`, options);
  }

  async #giveUpRead(hold: Hold): Promise<void> {
    const kept = this.#kept.get(hold);
    await hold.release();
    await kept?.leave();
  }

  async #giveUpWrite(hold: Hold, owner: unknown): Promise<void> {
    const reading = this.#reading.of(owner);
    if (!reading) return hold.release();
    hold.end();
    // From here on the read hold may end at any time. `over` then deletes the write node, whatever the check below finds.
    this.#kept.set(reading, hold);
    const over = () => {
      this.#kept.delete(reading);
      hold.abandon();
    };
    reading.signal.addEventListener("abort", over, { once: true });
    if (await this.#writerBetween(hold, reading)) return;
    reading.signal.removeEventListener("abort", over);
    this.#kept.delete(reading);
    await hold.leave();
  }

  /**
   * Returns true if a writer waits between the two nodes. A result of false remains valid, because later contenders queue behind the read
   * node.
   */
  async #writerBetween(writing: Hold, reading: Hold): Promise<boolean> {
    const place = placeIn(nameOf(reading), [read]) ?? "";
    const { names } = await writing.session.children(this.path);
    return names.some((name) => name !== nameOf(writing) && (placeIn(name, [write]) ?? place) < place);
  }
}

function nameOf({ path }: Hold): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

class Side implements Lock {
  readonly #acquisition: Acquisition;
  readonly #participants: (options?: CallOptions) => Promise<string[]>;

  constructor(acquisition: Acquisition, participants: (options?: CallOptions) => Promise<string[]>) {
    this.#acquisition = acquisition;
    this.#participants = participants;
  }

  acquire(options: AcquireOptions = {}): Promise<Held> {
    return this.#acquisition.acquire(options);
  }

  tryAcquire(options: TryOptions = {}): Promise<Held | undefined> {
    return this.#acquisition.tryAcquire(options);
  }

  participants(options?: CallOptions): Promise<string[]> {
    return this.#participants(options);
  }
}
