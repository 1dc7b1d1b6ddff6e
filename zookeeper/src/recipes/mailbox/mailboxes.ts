/**
 * The senders' side of mailboxes: a letter goes to a live member, which claims it by deleting its node. A letter that is unclaimed
 * when a member's session ends is moved to another member in one transaction. So a sender that dies in the middle loses nothing,
 * and any number of senders may move letters concurrently: each letter is either claimed or reclaimed, never both.
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
  /** The letter's name, unique among the letters in all boxes. Default: random. */
  readonly id?: string;
}

/** A letter that its member will not claim any more. */
export interface Stranded extends Letter {
  /** The former receiver. */
  readonly from: string;
}

export interface Reclaimed {
  readonly id: string;
  readonly from: string;
  readonly to: string;
}

/** @returns the member that gets the letter; with any other value the letter stays where it is until the next attempt */
export type Route = (letter: Stranded, members: readonly string[]) => string | undefined;

export interface KeepOptions extends CallOptions {
  readonly onReclaimed?: (moved: Reclaimed) => void;
  /** An operation failed and will be retried. Meant for a log. */
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

  /** The names of the live members. */
  async members({ signal }: CallOptions = {}): Promise<string[]> {
    return namesIn(await this.#zk.established(signal), this.#paths.members);
  }

  /** The ids of the unclaimed letters in a member's box, whether the member is alive or not, in no particular order. */
  async unclaimed(member: string, { signal }: CallOptions = {}): Promise<string[]> {
    return namesIn(await this.#zk.established(signal), this.#paths.box(member));
  }

  /**
   * Puts a letter into the box of a live member. The letter is delivered exactly once, even if the answer is lost, as long as the
   * session lives: a receipt that is created in the same transaction shows the result.
   * @returns the letter's id
   * @throws NO_NODE when the member is not alive; NODE_EXISTS if the box already has a letter of that id; SESSION_EXPIRED or CLOSED
   * if the session ended before the answer: then the letter may have been delivered or not
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
    deleteSurely(session, receipt).catch(() => undefined); // the receipt is deleted with the session at the latest
    return id;
  }

  /**
   * Gives every letter in a dead member's box to the member that `route` names.
   * @returns the letters that this call moved
   * @throws the first error, after all other letters have been tried
   */
  async reclaim(route: Route, options: CallOptions = {}): Promise<Reclaimed[]> {
    checkNames("reclaim", this.#paths.root, options, callNames);
    const { signal } = options;
    const moved: Reclaimed[] = [];
    await this.#reclaimIn(await this.#zk.established(signal), route, (one) => moved.push(one), signal);
    return moved;
  }

  /**
   * Reclaims whenever a member has gone, until the signal aborts. Any number of processes may do this; usually only the leader
   * does.
   * @throws CLOSED
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
      // Checked after the listing: the listed letters were delivered to a session that has ended by now.
      if (await session.exists(this.#paths.member(from), { signal })) continue;
      for (const id of ids) {
        if (signal?.aborted) return;
        try {
          const to = await this.#reroute(session, { id, from, members, route });
          if (to !== undefined) moved({ id, from, to });
        } catch (error) {
          if (!session.live) throw error;
          failure ??= error; // a letter that cannot be moved does not hold up the others
        }
      }
    }
    if (failure !== undefined) throw failure;
  }

  /** @returns the new receiver, if this call moved, or may have moved, the letter */
  async #reroute(
    session: Session,
    { id, from, members, route }: { id: string; from: string; members: Set<string>; route: Route },
  ): Promise<string | undefined> {
    try {
      const { data } = await session.get(this.#paths.letter(from, id));
      for (;;) {
        const to = route({ id, data, from }, [...members]);
        if (to === undefined || !members.has(to)) return undefined; // the letter stays in the box
        if (await this.#move(session, id, data, from, to)) return to;
        members.delete(to);
      }
    } catch (error) {
      if (isZooKeeperError(error, "NO_NODE")) return undefined; // claimed, or reclaimed by another sender
      throw error;
    }
  }

  /** @returns false if `to` is not alive @throws NO_NODE if the letter is no longer in the box */
  async #move(session: Session, id: string, data: Data, from: string, to: string): Promise<boolean> {
    const [source, target] = [this.#paths.letter(from, id), this.#paths.letter(to, id)];
    const alive = this.#paths.member(to);
    for (;;) {
      try {
        await session.multi([
          { type: "check", path: alive, version: 0 },
          { type: "delete", path: source },
          { type: "create", path: target, data },
        ]);
        return true;
      } catch (error) {
        if (isZooKeeperError(error, "CONNECTION_LOSS")) {
          await session.sync(target);
          if (await session.exists(target)) return true;
        } else if (!isZooKeeperError(error, "NO_NODE") || error.path === source) throw error;
        else if (error.path === target) await createContainers(session, this.#paths.box(to));
        else return false;
      }
    }
  }
}

async function namesIn(session: Session, path: string): Promise<string[]> {
  try {
    return (await session.children(path)).names;
  } catch (error) {
    if (isZooKeeperError(error, "NO_NODE")) return []; // the node was never created, or the server removed the empty container
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
