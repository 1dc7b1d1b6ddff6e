/**
 * The senders' side of mailboxes. A sender puts a letter into the box of a live member, which claims the letter by deleting its node. If
 * the member's session ends first, a sender moves the letter to another member in one transaction, so that no letter is lost if this
 * sender dies. Any number of senders may move letters concurrently: each letter is either claimed or moved, never both.
 */
import { randomUUID } from "node:crypto";
import { isZooKeeperError, ZooKeeperError } from "../../base/errors.ts";
import { callNames, checkNames } from "../../base/options.ts";
import type { CallOptions, Data } from "../../operations/operations.ts";
import type { Session, ZooKeeper } from "../../operations/session.ts";
import { follow } from "../base/follow.ts";
import { createContainers, deleteSurely } from "../base/protect.ts";
import { MailPaths } from "./claim.ts";
import type { Letter } from "./mailbox.ts";

export interface DeliverOptions extends CallOptions {
  /** The letter's id, which must be unique among the letters in all boxes. Default: a random id. */
  readonly id?: string;
}

/** A letter in the box of a member that is not live any more. */
export interface Stranded extends Letter {
  /** The member in whose box the letter is. */
  readonly from: string;
}

export interface Reclaimed {
  readonly id: string;
  readonly from: string;
  readonly to: string;
}

/** Chooses a new member for a letter. @returns its name; with any other value the letter stays in its box until the next attempt */
export type Route = (letter: Stranded, members: readonly string[]) => string | undefined;

export interface KeepOptions extends CallOptions {
  readonly onReclaimed?: (moved: Reclaimed) => void;
  /** Called when an operation failed and will be retried. Meant for a log. */
  readonly onTrouble?: (error: unknown) => void;
}

const deliverNames: ReadonlySet<string> = new Set<keyof DeliverOptions>(["id", "signal"]);
const keepNames: ReadonlySet<string> = new Set<keyof KeepOptions>(["onReclaimed", "onTrouble", "signal"]);

export class Mailboxes {
  readonly #zk: ZooKeeper;
  readonly #paths: MailPaths;

  /** Sends no request yet. @throws PATH_INVALID */
  constructor(zk: ZooKeeper, path: string) {
    this.#zk = zk;
    this.#paths = new MailPaths(path);
  }

  /** Reads the names of the live members. */
  async members({ signal }: CallOptions = {}): Promise<string[]> {
    return namesIn(await this.#zk.established(signal), this.#paths.members);
  }

  /** Reads the ids of the unclaimed letters in a member's box, in no particular order. The member need not be live. */
  async unclaimed(member: string, { signal }: CallOptions = {}): Promise<string[]> {
    return namesIn(await this.#zk.established(signal), this.#paths.box(member));
  }

  /**
   * Puts a letter into the box of a live member, exactly once unless the session ends: if an answer is lost, a receipt that is created in
   * the same transaction shows the result.
   * @returns the letter's id
   * @throws NO_NODE if the member is not live; NODE_EXISTS if the box already has a letter with this id; ABORTED or CONNECTION_LOSS
   * if the signal aborts before the letter is delivered; SESSION_EXPIRED or CLOSED if the session ended before the answer, so that it
   * is unknown whether the letter was delivered
   */
  async deliver(member: string, data: Data, options: DeliverOptions = {}): Promise<string> {
    checkNames(`the delivery to ${member}`, this.#paths.root, options, deliverNames);
    const { id = randomUUID(), signal } = options;
    const [letter, receipt, alive] = [
      this.#paths.letter(member, id),
      this.#paths.receipt(id),
      this.#paths.member(member),
    ];
    const session = await this.#zk.established(signal);
    for (;;) {
      try {
        await session.multi([
          { type: "check", path: alive, version: 0 },
          { type: "create", path: letter, data },
          { type: "create", path: receipt, ephemeral: true },
        ]);
        break;
      } catch (error) {
        if (isZooKeeperError(error, "CONNECTION_LOSS")) {
          await session.sync(receipt);
          if (await session.exists(receipt)) break;
          if (signal?.aborted) throw error;
        } else if (!isZooKeeperError(error, "NO_NODE")) throw error;
        else if (error.path === letter) await createContainers(session, this.#paths.box(member), signal);
        else if (error.path === receipt) await createContainers(session, this.#paths.receipts, signal);
        else throw notAlive(member, alive, error);
      }
    }
    deleteSurely(session, receipt).catch(() => undefined); // the server deletes the receipt with the session at the latest
    return id;
  }

  /**
   * Moves each letter in the box of a member that is not live to the member that `route` returns.
   * @returns the letters that this call has moved
   * @throws the first error, after the other letters have been tried unless the session has ended
   */
  async reclaim(route: Route, options: CallOptions = {}): Promise<Reclaimed[]> {
    checkNames("reclaim", this.#paths.root, options, callNames);
    const { signal } = options;
    const moved: Reclaimed[] = [];
    await this.#reclaimIn(await this.#zk.established(signal), route, (one) => moved.push(one), signal);
    return moved;
  }

  /**
   * Calls `reclaim` in each session and whenever the list of members changes, until the signal aborts. Any number of processes may
   * do this; usually only the leader does.
   * @throws CLOSED, OPTION_INVALID
   */
  async keep(route: Route, options: KeepOptions = {}): Promise<void> {
    checkNames("keep", this.#paths.root, options, keepNames);
    const { signal, onReclaimed, onTrouble } = options;
    const stop = signal ?? new AbortController().signal;
    const serve = async (session: Session): Promise<"again"> => {
      let wake: () => void = () => undefined;
      const onChange = () => wake();
      stop.addEventListener("abort", onChange);
      try {
        while (!stop.aborted && session.state !== "ended") {
          const woken = new Promise<void>((resolve) => {
            wake = resolve;
          });
          await createContainers(session, this.#paths.members, stop);
          await session.children(this.#paths.members, { watch: onChange, signal: stop });
          await this.#reclaimIn(session, route, (moved) => onReclaimed?.(moved), stop);
          await woken;
        }
      } finally {
        stop.removeEventListener("abort", onChange);
      }
      return "again";
    };
    await follow(this.#zk, stop, serve, (error) => onTrouble?.(error));
  }

  async #reclaimIn(
    session: Session,
    route: Route,
    moved: (one: Reclaimed) => void,
    signal?: AbortSignal,
  ): Promise<void> {
    let failure: unknown;
    const boxes = await namesIn(session, this.#paths.boxes);
    const members = new Set(await namesIn(session, this.#paths.members));
    for (const from of boxes.filter((name) => !members.has(name))) {
      const ids = await namesIn(session, this.#paths.box(from));
      // This check comes after the listing, so that the listed letters were delivered to a session that has ended by now.
      if (await session.exists(this.#paths.member(from), { signal })) continue;
      for (const id of ids) {
        if (signal?.aborted) return;
        try {
          const to = await this.#reroute(session, { id, from, members, route });
          if (to !== undefined) moved({ id, from, to });
        } catch (error) {
          if (!session.live) throw error;
          failure ??= error; // the loop continues with the other letters
        }
      }
    }
    if (failure !== undefined) throw failure;
  }

  /** Moves one letter. @returns the new member if this call moved, or may have moved, the letter */
  async #reroute(
    session: Session,
    { id, from, members, route }: { id: string; from: string; members: Set<string>; route: Route },
  ): Promise<string | undefined> {
    try {
      const { data } = await session.get(this.#paths.letter(from, id));
      for (;;) {
        const to = route({ id, data, from }, [...members]);
        if (to === undefined || !members.has(to)) return undefined; // the letter stays in its box
        if (await this.#move(session, id, data, from, to)) return to;
        members.delete(to);
      }
    } catch (error) {
      if (isZooKeeperError(error, "NO_NODE")) return undefined; // the letter was claimed, or moved by another sender
      throw error;
    }
  }

  /**
   * Moves a letter in one transaction.
   * @returns false if `to` is not live; true also if an answer was lost and neither box has the letter: `to` may have claimed it meanwhile
   * @throws NO_NODE if the letter was no longer in the box
   */
  async #move(session: Session, id: string, data: Data, from: string, to: string): Promise<boolean> {
    const [source, target] = [this.#paths.letter(from, id), this.#paths.letter(to, id)];
    const alive = this.#paths.member(to);
    for (let isLost = false; ; ) {
      try {
        await session.multi([
          { type: "check", path: alive, version: 0 },
          { type: "delete", path: source },
          { type: "create", path: target, data },
        ]);
        return true;
      } catch (error) {
        if (isZooKeeperError(error, "CONNECTION_LOSS")) {
          isLost = true;
          await session.sync(target);
          if (await session.exists(target)) return true;
        } else if (!isZooKeeperError(error, "NO_NODE")) throw error;
        else if (error.path === source) {
          if (!isLost) throw error;
          return true;
        } else if (error.path === target) await createContainers(session, this.#paths.box(to));
        else return false;
      }
    }
  }
}

async function namesIn(session: Session, path: string): Promise<string[]> {
  try {
    return (await session.children(path)).names;
  } catch (error) {
    if (isZooKeeperError(error, "NO_NODE")) return []; // the node was never created, or the server deleted the empty container
    throw error;
  }
}

function notAlive(member: string, path: string, cause: unknown): ZooKeeperError {
  return new ZooKeeperError("NO_NODE", `deliver to ${member}: ${path} does not exist, so it is not alive`, {
    path,
    hint: "choose another member, see `members`",
    cause,
  });
}
