/**
 * A member's mailbox. While the member is live, it has an ephemeral node. Senders create letters in its box. The member claims a letter by
 * deleting the letter's node, and then processes it. When the member's session ends, the senders move its unclaimed letters to another
 * member.
 */
import { randomUUID } from "node:crypto";
import { isZooKeeperError, ZooKeeperError } from "../../base/errors.ts";
import { checkNames } from "../../base/options.ts";
import type { Session, ZooKeeper } from "../../operations/session.ts";
import { follow, isPassing } from "../base/follow.ts";
import { createContainers, deleteSurely } from "../base/protect.ts";
import { claimLetter, MailPaths } from "./claim.ts";

export interface Letter {
  readonly id: string;
  readonly data: Buffer;
}

export interface MailboxOptions {
  /**
   * Called for each claimed letter; letters that are found together come in the order of sending. No other member gets the letter. Must
   * not throw.
   */
  readonly onLetter: (letter: Letter) => void;
  /** Called with an error that will be retried, or if a mark could not be deleted. Meant for a log. Must not throw. */
  readonly onTrouble?: (error: unknown) => void;
  /** At the start, left-over marks of this member that are at least this old (ms, by the servers' clock) are deleted. Default 600,000. */
  readonly markKeptMs?: number;
}

const optionNames: ReadonlySet<string> = new Set<keyof MailboxOptions>(["onLetter", "onTrouble", "markKeptMs"]);

const defaultMarkKeptMs = 600_000;

/** The largest number of letters that are read or claimed concurrently. */
const claimsAtOnce = 64;

export class Mailbox {
  readonly member: string;
  readonly #zk: ZooKeeper;
  readonly #paths: MailPaths;
  readonly #options: MailboxOptions;
  /** Random id of this mailbox object, which is written to its marks. */
  readonly #life = randomUUID();
  readonly #closing = new AbortController();
  #session: Session | undefined;
  #swept = false;
  #started: Promise<void> | undefined;
  #running: Promise<void> | undefined;

  /**
   * @param member the member's name, to be used by one process at a time; a second process waits until the first one's node is deleted
   * @throws PATH_INVALID, OPTION_INVALID
   */
  constructor(zk: ZooKeeper, path: string, member: string, options: MailboxOptions) {
    checkNames(`the mailbox of ${member}`, path, options, optionNames);
    this.#zk = zk;
    this.#paths = new MailPaths(path);
    this.#paths.member(member);
    this.member = member;
    this.#options = options;
  }

  /** True while the member is registered, so that letters can be delivered. */
  get live(): boolean {
    return this.#session?.live ?? false;
  }

  /**
   * Registers the member, and registers it again in each new session. Resolves once the member is live.
   * @throws the error that prevents the registration, such as NO_AUTH; CLOSED
   */
  start(): Promise<void> {
    if (this.#closing.signal.aborted) return Promise.reject(this.#closedError());
    this.#started ??= new Promise((resolve, reject) => {
      let lives = false;
      const live = () => {
        lives = true;
        resolve();
      };
      const trouble = (error: unknown) => {
        if (!lives && !isPassing(error)) throw error;
        this.#options.onTrouble?.(error);
      };
      this.#running = follow(this.#zk, this.#closing.signal, (session) => this.#serve(session, live), trouble).then(
        () => reject(this.#closedError()),
        reject,
      );
    });
    return this.#started;
  }

  /** Stops claiming. Letters that are still in the box remain there, until senders move them to other members. Never rejects. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#started?.catch(() => undefined); // the caller of `start` receives the error
    await this.#running;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #serve(session: Session, live: () => void): Promise<"again"> {
    const closing = this.#closing.signal;
    let wake: () => void = () => undefined;
    const onChange = () => wake();
    closing.addEventListener("abort", onChange);
    try {
      while (!closing.aborted && session.state !== "ended") {
        const woken = new Promise<void>((resolve) => {
          wake = resolve;
        });
        if (await this.#register(session, onChange)) {
          await this.#sweep(session);
          this.#session = session;
          live();
          if (await this.#receive(session, onChange)) continue;
        } else this.#session = undefined;
        await woken;
      }
    } finally {
      closing.removeEventListener("abort", onChange);
      this.#session = undefined;
      await this.#leave(session);
    }
    return "again";
  }

  /** Creates the member's node if it is missing. @returns true if this session owns the node */
  async #register(session: Session, watch: () => void): Promise<boolean> {
    const at = this.#paths.member(this.member);
    for (;;) {
      await createContainers(session, this.#paths.box(this.member));
      await createContainers(session, this.#paths.marks(this.member));
      const stat = await session.exists(at, { watch });
      if (stat) return stat.ephemeralOwner === session.id;
      try {
        await session.create(at, this.#life, { ephemeral: true });
      } catch (error) {
        if (isZooKeeperError(error, "NO_NODE")) await createContainers(session, this.#paths.members);
        else if (!isZooKeeperError(error, "NODE_EXISTS", "CONNECTION_LOSS")) throw error;
      }
    }
  }

  /**
   * Deletes left-over marks of this member, except recent ones: if two processes use this name in quick succession, the first one may still
   * have to find out which letters it has claimed.
   */
  async #sweep(session: Session): Promise<void> {
    if (this.#swept) return;
    const own = await session.exists(this.#paths.member(this.member));
    const before = (own?.ctimeMs ?? 0) - (this.#options.markKeptMs ?? defaultMarkKeptMs);
    try {
      for (const id of (await session.children(this.#paths.marks(this.member))).names) {
        const mark = this.#paths.mark(this.member, id);
        const stat = await session.exists(mark);
        if (stat && stat.ctimeMs <= before) await deleteSurely(session, mark);
      }
    } catch (error) {
      if (!isZooKeeperError(error, "NO_NODE")) throw error; // no mark was ever created
    }
    this.#swept = true;
  }

  /** Claims the letters in the box. @returns true if the caller must create the box and call this again at once */
  async #receive(session: Session, watch: () => void): Promise<boolean> {
    const box = this.#paths.box(this.member);
    let names: string[];
    try {
      names = (await session.children(box, { watch })).names;
    } catch (error) {
      if (isZooKeeperError(error, "NO_NODE")) return true; // the server has deleted the empty container, so it must be created again
      throw error;
    }
    const letters = await this.#read(session, names);
    for (let at = 0; at < letters.length && !this.#closing.signal.aborted; at += claimsAtOnce) {
      const some = letters.slice(at, at + claimsAtOnce);
      const claimed = await Promise.allSettled(some.map((letter) => this.#claim(letter.id)));
      for (const [index, result] of claimed.entries()) {
        if (result.status === "fulfilled" && result.value) this.#options.onLetter(some[index] as Letter);
      }
      const failed = claimed.find((result) => result.status === "rejected");
      if (failed) throw failed.reason;
    }
    return false;
  }

  /** Reads letters. @returns the letters in the order of sending */
  async #read(session: Session, names: readonly string[]): Promise<Letter[]> {
    const found: { letter: Letter; czxid: bigint }[] = [];
    for (let at = 0; at < names.length; at += claimsAtOnce) {
      const some = names.slice(at, at + claimsAtOnce).map(async (id) => {
        try {
          const { data, stat } = await session.get(this.#paths.letter(this.member, id));
          found.push({ letter: { id, data }, czxid: stat.czxid });
        } catch (error) {
          if (!isZooKeeperError(error, "NO_NODE")) throw error; // otherwise a sender has reclaimed the letter
        }
      });
      await Promise.all(some);
    }
    return found.sort((a, b) => (a.czxid < b.czxid ? -1 : 1)).map(({ letter }) => letter);
  }

  async #claim(id: string): Promise<boolean> {
    const claimed = await claimLetter(this.#zk, this.#paths, this.member, id, this.#life);
    // Deletes the mark in the background. If that fails, a later mailbox object of this member deletes it.
    if (claimed) this.#forget(id).catch((error: unknown) => this.#options.onTrouble?.(error));
    return claimed;
  }

  async #forget(id: string): Promise<void> {
    for (;;) {
      const session = await this.#zk.established();
      try {
        return await deleteSurely(session, this.#paths.mark(this.member, id));
      } catch (error) {
        if (session.live || this.#zk.signal.aborted) throw error;
      }
    }
  }

  async #leave(session: Session): Promise<void> {
    const at = this.#paths.member(this.member);
    try {
      const stat = await session.exists(at);
      if (stat?.ephemeralOwner === session.id) await deleteSurely(session, at);
    } catch (error) {
      if (session.live) throw error; // otherwise the server deletes the node with its session
    }
  }

  #closedError(): ZooKeeperError {
    const options = { path: this.#paths.box(this.member), hint: "make a new one" };
    return new ZooKeeperError("CLOSED", `the mailbox ${options.path} has been closed`, options);
  }
}
