/**
 * A leader latch: of all that stand in line at a path the first leads, until it closes, its session ends or its
 * connection is in doubt. Shares its paths with Java Curator's LeaderLatch: `<path>/_c_<uuid>-latch-<number>`, ephemeral,
 * its data the participant's id.
 *
 * Why there are never two leaders: a latch stands in line with one node at a time, created, looked at and deleted within
 * one session; a node that another session made, be it this process's previous one, is never taken for its own. It leads
 * only while that session is live by this process's clock, which ends before a server can give the place to the next.
 * And leadership ends here before the node is deleted, so the next one's begins after.
 */

import { isZooKeeperError, ZooKeeperError } from "../../base/errors.ts";
import { checkNames, waitNames } from "../../base/options.ts";
import { checkPath } from "../../base/paths.ts";
import type { Acl } from "../../operations/acl.ts";
import type { CallOptions, Created } from "../../operations/operations.ts";
import type { Session, ZooKeeper } from "../../operations/session.ts";
import { fenceOf } from "../base/fence.ts";
import { follow, isPassing } from "../base/follow.ts";
import { Listeners } from "../base/listeners.ts";
import { unwatch, watchNode } from "../base/node-watch.ts";
import { deleteSurely, inOrder, protectedCreate } from "../base/protect.ts";
import { type WaitOptions, waitFor } from "../base/waiting.ts";
import { leaderOf, type Participant, participantsOf } from "./participants.ts";

const marker = "latch-";

/** One period of leadership. */
export interface Leadership {
  /**
   * Larger than that of every earlier leader on this path: pass it with each write, so that the receiver can refuse smaller ones.
   * It stays the same after a short loss of the connection, if no other participant led meanwhile.
   */
  readonly fence: bigint;
  /** Aborts when it ends: by close, by the session's end, or because the connection is in doubt. */
  readonly signal: AbortSignal;
}

/** Listeners must not throw: an error that a listener throws becomes an uncaught exception. They are called synchronously. */
export interface LatchListener {
  isLeader?(leadership: Leadership): void;
  notLeader?(): void;
  /** Something went wrong that the latch tries again: for a log. */
  trouble?(error: unknown): void;
}

export interface LatchOptions {
  /** The participant's name for other participants; default "". */
  readonly id?: string;
  /** The ACL of the participant's node; default: everyone may do anything. */
  readonly acl?: readonly Acl[];
}

/** The node that a place in line waits for. */
interface Watched {
  path: string;
  readonly told: () => void;
}

/** silent: listeners are not called any more. notify_leader: if it leads, they get notLeader first. */
export type CloseMode = "silent" | "notify_leader";

const optionNames: ReadonlySet<string> = new Set<keyof LatchOptions>(["id", "acl"]);

export class LeaderLatch {
  readonly path: string;
  readonly id: string;
  readonly #zk: ZooKeeper;
  readonly #acl: readonly Acl[] | undefined;
  readonly #closing = new AbortController();
  readonly #listeners = new Listeners<LatchListener>();
  readonly #waiting = new Listeners<{ led(leadership: Leadership): void; ended(): void }>();
  #leading: { readonly session: Session; readonly leadership: Leadership; readonly end: AbortController } | undefined;
  #running: Promise<void> | undefined;
  #started: Promise<void> | undefined;
  #closed: Promise<void> | undefined;
  #failure: unknown;

  /** @throws PATH_INVALID */
  constructor(zk: ZooKeeper, path: string, options: LatchOptions = {}) {
    checkPath(path);
    checkNames(`the latch at ${path}`, path, options, optionNames);
    const { id = "", acl } = options;
    this.#zk = zk;
    this.path = path;
    this.id = id;
    this.#acl = acl;
  }

  /** latent: not started yet. started: in line, or on the way there. closed: for good. */
  get state(): "latent" | "started" | "closed" {
    return this.#closing.signal.aborted ? "closed" : this.#started ? "started" : "latent";
  }

  /**
   * Gets in line, and from then on stays there from session to session. Calling it again changes nothing.
   * @returns when it is in line
   * @throws CLOSED; and what keeps it from getting there at first, as NO_AUTH: then the latch is closed
   */
  start(): Promise<void> {
    if (this.state === "closed") return Promise.reject(this.#endedError());
    this.#started ??= new Promise((resolve, reject) => {
      this.#running = this.#run(resolve).finally(() => reject(this.#endedError()));
    });
    return this.#started;
  }

  /**
   * True if it leads at this moment, by the clock: also right in a process that was stopped for a while and has not noticed yet.
   * False while the connection is suspended.
   */
  get hasLeadership(): boolean {
    return this.leadership !== undefined;
  }

  /** The leadership of this moment, as `hasLeadership` sees it. */
  get leadership(): Leadership | undefined {
    const leading = this.#leading;
    return leading?.session.live && leading.session.state === "connected" ? leading.leadership : undefined;
  }

  /**
   * Waits until it leads.
   * @returns undefined if the limit passes first
   * @throws ABORTED by the signal; CLOSED when the latch is closed before, or why it cannot go on
   */
  async awaitLeadership(options: WaitOptions = {}): Promise<Leadership | undefined> {
    checkNames(`leadership of ${this.path}`, this.path, options, waitNames);
    return waitFor<Leadership>(`leadership of ${this.path}`, options, (resolve, reject) => {
      const undo = this.#waiting.add({ led: resolve, ended: () => reject(this.#endedError()) });
      const { leadership } = this;
      if (leadership) resolve(leadership);
      else if (this.state === "closed") reject(this.#endedError());
      return undo;
    });
  }

  /** @returns a function that ends it */
  listen(listener: LatchListener): () => void {
    return this.#listeners.add(listener);
  }

  /** All participants in line, the leader first, whatever program they are in. */
  participants(options?: CallOptions): Promise<Participant[]> {
    return participantsOf(this.#zk, this.path, marker, options);
  }

  /** @returns undefined if the line is empty */
  leader(options?: CallOptions): Promise<Participant | undefined> {
    return leaderOf(this.#zk, this.path, marker, options);
  }

  /**
   * Leads no more, at once, and leaves the line.
   * @returns when its node is gone: soon, or without a connection at the latest with the session
   * @throws what kept the node from being deleted, as NO_AUTH: then it stays in line until the session ends
   */
  close(mode: CloseMode = "silent"): Promise<void> {
    this.#closed ??= this.#close(mode);
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(mode: CloseMode): Promise<void> {
    if (mode === "silent") this.#listeners.clear();
    this.#end();
    this.#started?.catch(() => undefined); // whoever waits for the start hears of it; a close needs nobody to
    await this.#running;
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Also called when the client is closed, or after a permanent error. */
  #end(): void {
    this.#closing.abort();
    this.#lose();
    this.#waiting.tell((one) => one.ended());
    this.#waiting.clear();
  }

  #endedError(): unknown {
    if (this.#failure !== undefined) return this.#failure;
    const options = { path: this.path, hint: "make a new latch" };
    return new ZooKeeperError("CLOSED", `the leader latch at ${this.path} has been closed`, options);
  }

  async #run(joined: () => void): Promise<void> {
    let wasIn = false;
    try {
      await follow(
        this.#zk,
        this.#closing.signal,
        async (session) => {
          const node = await protectedCreate(session, this.path, marker, this.id, { ephemeral: true, acl: this.#acl });
          wasIn = true;
          joined();
          await this.#standInLine(session, node);
          return "again";
        },
        (error) => {
          // An error before the first place in line is the user's mistake; a later one comes from outside, and may pass.
          if (!wasIn && !isPassing(error)) throw error;
          this.#listeners.tell((one) => one.trouble?.(error));
        },
      );
    } catch (error) {
      if (!this.#zk.signal.aborted) this.#failure = error;
    } finally {
      this.#end();
    }
  }

  /** Until the node is gone, the session has ended, or the latch closes; the node is gone afterwards. */
  async #standInLine(session: Session, node: Created): Promise<void> {
    let wake: () => void = () => undefined;
    const onChange = () => wake();
    const watched: Watched = { path: node.path, told: onChange };
    const stopListening = session.onState((state) => {
      if (state !== "connected") this.#lose();
      wake();
    });
    this.#closing.signal.addEventListener("abort", onChange);
    try {
      while (!this.#closing.signal.aborted && session.state !== "ended") {
        const woken = new Promise<void>((resolve) => {
          wake = resolve;
        });
        if (session.state === "connected" && !(await this.#look(session, node, watched))) break;
        await woken;
      }
    } finally {
      stopListening();
      this.#closing.signal.removeEventListener("abort", onChange);
      this.#lose();
      // A watch on our own node goes with it.
      if (watched.path !== node.path) unwatch(session, watched.path, onChange);
      await this.#leave(session, node.path);
    }
  }

  async #leave(session: Session, path: string): Promise<void> {
    try {
      await deleteSurely(session, path);
    } catch (error) {
      // An ended session takes its node along.
      if (!session.live) return;
      if (this.#closing.signal.aborted) this.#failure = error;
      throw error;
    }
  }

  /**
   * Looks for the participant before this one, and watches only that one; leads, if there is none.
   * @returns false if this participant's node is gone
   */
  async #look(session: Session, node: Created, watched: Watched): Promise<boolean> {
    try {
      const { names } = await session.children(this.path);
      const order = inOrder(names, marker).map((name) => `${this.path}/${name}`);
      const place = order.indexOf(node.path);
      if (place < 0) return false;
      // It uses get, not exists: a watch on a missing node would stay on the server for ever. The first in line watches its own
      // node: if a person deletes it, leadership is over.
      watched.path = order[Math.max(0, place - 1)] ?? node.path;
      const there = await watchNode(session, watched.path, watched.told);
      if (!there) return this.#lookAgain(session, node, watched);
      if (place === 0) this.#lead(session, await fenceOf(session, this.path, node.stat.czxid));
      return true;
    } catch (error) {
      if (!isZooKeeperError(error, "NO_NODE")) throw error;
      return this.#lookAgain(session, node, watched);
    }
  }

  /** The node before this one was deleted between listing and reading, or this node itself, or all nodes with the parent. */
  async #lookAgain(session: Session, node: Created, watched: Watched): Promise<boolean> {
    return (await session.exists(node.path)) !== undefined && this.#look(session, node, watched);
  }

  #lead(session: Session, fence: bigint): void {
    if (this.#leading || this.#closing.signal.aborted || !session.live || session.state !== "connected") return;
    const end = new AbortController();
    const leadership = { fence, signal: end.signal };
    this.#leading = { session, leadership, end };
    this.#listeners.tell((one) => one.isLeader?.(leadership));
    this.#waiting.tell((one) => one.led(leadership));
  }

  #lose(): void {
    const leading = this.#leading;
    if (!leading) return;
    this.#leading = undefined;
    const options = { path: this.path, hint: "stop what only the leader may do" };
    leading.end.abort(new ZooKeeperError("NOT_HELD", `the leadership of ${this.path} is over`, options));
    this.#listeners.tell((one) => one.notLeader?.());
  }
}
