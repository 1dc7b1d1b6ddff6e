/**
 * A read-write lock: many readers at once, or one writer; in line's order, so that writers do not starve. Shares its
 * paths with Java Curator's InterProcessReadWriteLock: `<path>/_c_<uuid>-__READ__<number>` and `…-__WRIT__<number>`.
 *
 * A writer may take the read lock too, and keep it when it gives up writing. Its read node then stands at the end of the
 * line, behind writers that wait already; were its write node deleted, the first of them would write beside it. (Curator's
 * own does that.) So the write node stays until the reading ends when a writer stands between the two.
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
  /** Held by many at once. The holder of the write lock gets it without waiting, if it uses the same owner. */
  readonly read: Lock;
  /** Held alone. An owner that holds the read lock only cannot get it: it would wait for itself (OPTION_INVALID). */
  readonly write: Lock;
  readonly #zk: ZooKeeper;
  readonly #what: string;
  readonly #readLine: Line;
  readonly #writeLine: Line;
  readonly #reading: Acquisition;
  readonly #writing: Acquisition;
  /** Write holds that are over and whose nodes stay until the reading ends, by the read hold. */
  readonly #kept = new Map<Hold, Hold>();

  /** @throws PATH_INVALID */
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
      // One stretch of holding, one fence: the node's own would be above those of writers that come after.
      const line = { ...this.#readLine, blockedBy: [] };
      const hold = await takeHold(writing.session, line, what, options, writing.fence);
      if (writing.held || !hold) return hold;
      // The writing ended before the read node was there: another may write by now.
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
    // The reading may end, or be lost, at any time from here on: the write node goes then, whatever is found out below.
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

  /** A later contender stands behind the read node, so "no" stays true. */
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
