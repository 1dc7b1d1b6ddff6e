/**
 * A member's box. While the member lives it has an ephemeral node. Letters come into its box, and it claims each by deleting it,
 * before it acts on it. Letters that are unclaimed when its session ends are given to another member by the senders.
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
  /** The letter now belongs to this member alone, for good. Called in the order of sending. Must not throw. */
  readonly onLetter: (letter: Letter) => void;
  /** An operation failed and will be retried. Meant for a log. Must not throw. */
  readonly onTrouble?: (error: unknown) => void;
  /** How old a mark of a former life must be to be removed at the start, ms by the servers' clock. Default 600,000. */
  readonly markKeptMs?: number;
}

const optionNames: ReadonlySet<string> = new Set<keyof MailboxOptions>(["onLetter", "onTrouble", "markKeptMs"]);

const defaultMarkKeptMs = 600_000;

/** Letters that are read and claimed at one time. */
const claimsAtOnce = 64;

export class Mailbox {
  readonly member: string;
  readonly #zk: ZooKeeper;
  readonly #paths: MailPaths;
  readonly #options: MailboxOptions;
  /** Identifies this start of this process: a mark with it is this member's own. */
  readonly #life = randomUUID();
  readonly #closing = new AbortController();
  #session: Session | undefined;
  #swept = false;
  #started: Promise<void> | undefined;
  #running: Promise<void> | undefined;

  /**
   * @param member its name, one at a time has it: a second process waits until the first one's node is gone
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

  /** Letters can be delivered now. */
  get live(): boolean {
    return this.#session?.live ?? false;
  }

  /** Resolves once it is live; it stays so from session to session. @throws what keeps it from that, as NO_AUTH; CLOSED */
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

  /** Takes no more letters; letters in the box are left for other members. Never rejects. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#started?.catch(() => undefined); // whoever waits for the start hears of it
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

  /** @returns whether the member's node is this session's */
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
   * Deletes marks of this member's former lives, except recent ones: if two processes used this name one right after the other,
   * the first may still have to find out which letters it claimed.
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
      if (!isZooKeeperError(error, "NO_NODE")) throw error; // there never was one
    }
    this.#swept = true;
  }

  /** @returns whether there may be more already */
  async #receive(session: Session, watch: () => void): Promise<boolean> {
    const box = this.#paths.box(this.member);
    let names: string[];
    try {
      names = (await session.children(box, { watch })).names;
    } catch (error) {
      if (isZooKeeperError(error, "NO_NODE")) return true; // the server removed the empty container
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

  /** In the order of sending. */
  async #read(session: Session, names: readonly string[]): Promise<Letter[]> {
    const found: { letter: Letter; czxid: bigint }[] = [];
    for (let at = 0; at < names.length; at += claimsAtOnce) {
      const some = names.slice(at, at + claimsAtOnce).map(async (id) => {
        try {
          const { data, stat } = await session.get(this.#paths.letter(this.member, id));
          found.push({ letter: { id, data }, czxid: stat.czxid });
        } catch (error) {
          if (!isZooKeeperError(error, "NO_NODE")) throw error; // taken back meanwhile
        }
      });
      await Promise.all(some);
    }
    return found.sort((a, b) => (a.czxid < b.czxid ? -1 : 1)).map(({ letter }) => letter);
  }

  async #claim(id: string): Promise<boolean> {
    const claimed = await claimLetter(this.#zk, this.#paths, this.member, id, this.#life);
    // No caller waits for this. If the mark stays, the member's next life sweeps it.
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
      if (session.live) throw error; // an ended session takes its node along
    }
  }

  #closedError(): ZooKeeperError {
    const options = { path: this.#paths.box(this.member), hint: "make a new one" };
    return new ZooKeeperError("CLOSED", `the mailbox ${options.path} has been closed`, options);
  }
}
