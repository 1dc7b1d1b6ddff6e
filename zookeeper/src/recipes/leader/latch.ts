/**
 * A leader latch. The participants at a path form a queue. The first one leads until it closes, its session ends, or its connection is
 * lost or silent. It is compatible with Java Curator's LeaderLatch on the same path: each participant is an ephemeral node
 * `<path>/_c_<uuid>-latch-<number>` with the participant's id as data.
 *
 * Three rules prevent two leaders at once. A latch has one node in the queue at a time, which it creates, checks and deletes within one
 * session, and it never uses a node of another session, not even of its previous one. It leads only while that session is live by this
 * process's clock, which ends the session before a server can expire it (for one exception see `Session`). And leadership ends before the
 * node is deleted, so that the next leadership begins later.
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
   * A number that is larger than the fence of every earlier leader on this path. Pass it with each write, so that the receiver can refuse
   * smaller ones. It does not change after a short loss of the connection, if no other participant has led meanwhile.
   */
  readonly fence: bigint;
  /**
   * Aborts when this leadership ends: the latch is closed, the session ends, the connection is lost or silent, or the participant's node is
   * deleted.
   */
  readonly signal: AbortSignal;
}

/** Listeners must not throw: an error that a listener throws becomes an uncaught exception. They are called synchronously. */
export interface LatchListener {
  isLeader?(leadership: Leadership): void;
  notLeader?(): void;
  /** Called when an operation failed and the latch will retry it. Meant for a log. */
  trouble?(error: unknown): void;
}

export interface LatchOptions {
  /** The participant's name, which other participants can read; default "". */
  readonly id?: string;
  /** The ACL of the participant's node and of created parents. Default: every client has all permissions. */
  readonly acl?: readonly Acl[];
}

/** The node that the participant watches: the node before its own in the queue, or its own node if it is the first. */
interface Watched {
  path: string;
  readonly told: () => void;
}

/** silent: `close` removes the listeners without a call. notify_leader: if the latch leads, `close` calls `notLeader` first. */
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

  /** @throws PATH_INVALID, OPTION_INVALID */
  constructor(zk: ZooKeeper, path: string, options: LatchOptions = {}) {
    checkPath(path);
    checkNames(`the latch at ${path}`, path, options, optionNames);
    const { id = "", acl } = options;
    this.#zk = zk;
    this.path = path;
    this.id = id;
    this.#acl = acl;
  }

  /** latent: not started yet. started: in the queue, or about to be. closed: the final state. */
  get state(): "latent" | "started" | "closed" {
    return this.#closing.signal.aborted ? "closed" : this.#started ? "started" : "latent";
  }

  /**
   * Joins the queue, and joins again in each new session. Resolves when the participant is in the queue. A further call returns the same
   * promise.
   * @throws CLOSED; the error that prevents the first join, such as NO_AUTH, after which the latch is closed
   */
  start(): Promise<void> {
    if (this.state === "closed") return Promise.reject(this.#endedError());
    this.#started ??= new Promise((resolve, reject) => {
      this.#running = this.#run(resolve).finally(() => reject(this.#endedError()));
    });
    return this.#started;
  }

  /**
   * True if this participant leads, by the clock at the time of the call; correct even right after the process was stopped for some time.
   * False while the connection is suspended.
   */
  get hasLeadership(): boolean {
    return this.leadership !== undefined;
  }

  /** The current leadership; undefined if `hasLeadership` is false. */
  get leadership(): Leadership | undefined {
    const leading = this.#leading;
    return leading?.session.live && leading.session.state === "connected" ? leading.leadership : undefined;
  }

  /**
   * Waits until this participant leads.
   * @returns undefined if the limit passes first
   * @throws ABORTED by the signal; CLOSED if the latch is closed first; the error that ended the latch; OPTION_INVALID
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

  /** @returns a function that removes the listener */
  listen(listener: LatchListener): () => void {
    return this.#listeners.add(listener);
  }

  /** Reads all participants of all programs in the order of the queue, the leader first. */
  participants(options?: CallOptions): Promise<Participant[]> {
    return participantsOf(this.#zk, this.path, marker, options);
  }

  /** Reads the first participant of the queue; undefined if the queue is empty. */
  leader(options?: CallOptions): Promise<Participant | undefined> {
    return leaderOf(this.#zk, this.path, marker, options);
  }

  /**
   * Ends the leadership at once and leaves the queue. Resolves when the participant's node is deleted; without a connection, when the
   * session ends at the latest.
   * @throws the error that prevents the node's deletion, such as NO_AUTH: the node then remains in the queue until the session ends
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
    this.#started?.catch(() => undefined); // the caller of `start` receives the error
    await this.#running;
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Ends the latch: by `close`, by the end of the client, or after a permanent error. */
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
          // An error before the first join ends the latch unless it is transient, because the caller has made a mistake. Later errors are
          // reported and retried.
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

  /** Stays in the queue until the node is deleted, the session ends, or the latch closes; deletes the node at the end. */
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
      // The server removes a watch on this participant's own node when the node is deleted.
      if (watched.path !== node.path) unwatch(session, watched.path, onChange);
      await this.#leave(session, node.path);
    }
  }

  async #leave(session: Session, path: string): Promise<void> {
    try {
      await deleteSurely(session, path);
    } catch (error) {
      // The session has ended, so the server deletes the node.
      if (!session.live) return;
      if (this.#closing.signal.aborted) this.#failure = error;
      throw error;
    }
  }

  /**
   * Finds the participant before this one in the queue and watches only that participant's node. If there is none, this participant leads.
   * @returns false if this participant's node does not exist any more
   */
  async #look(session: Session, node: Created, watched: Watched): Promise<boolean> {
    try {
      const { names } = await session.children(this.path);
      const order = inOrder(names, marker).map((name) => `${this.path}/${name}`);
      const place = order.indexOf(node.path);
      if (place < 0) return false;
      // Watches with `get`, not `exists`, because a watch on a missing node would remain on the server. The first participant watches its
      // own node, because its leadership ends if a person deletes that node.
      watched.path = order[Math.max(0, place - 1)] ?? node.path;
      const there = await watchNode(session, watched.path, watched.told);
      if (!there) return this.#lookAgain(session, node, watched);
      if (place === 0)
        this.#lead(session, await fenceOf(session, { path: this.path, acl: this.#acl }, node.stat.czxid));
      return true;
    } catch (error) {
      if (!isZooKeeperError(error, "NO_NODE")) throw error;
      return this.#lookAgain(session, node, watched);
    }
  }

  /**
   * Calls `#look` again after the watched node was missing: between listing and reading, the node before this one, this node, or the
   * parent with all its nodes was deleted.
   * @returns false if this participant's node does not exist any more
   */
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
