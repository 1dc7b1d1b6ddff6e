/**
 * A grace lock in ZooKeeper. A persistent node at `path` contains the record (JSON), and the ephemeral node `<path>/holder` exists while
 * the lock is held. Taking the lock creates `holder` and writes the record in one transaction that requires the record's known version.
 * So the server decides between two contenders, and the record never names a contender that did not get the lock.
 */
import { randomUUID } from "node:crypto";
import { isZooKeeperError, ZooKeeperError } from "../../base/errors.ts";
import { checkNames } from "../../base/options.ts";
import { checkPath, parentOf } from "../../base/paths.ts";
import type { Acl } from "../../operations/acl.ts";
import type { Operation } from "../../operations/operations.ts";
import type { Session, ZooKeeper } from "../../operations/session.ts";
import type { Stat } from "../../operations/stat.ts";
import { fenceOf } from "../base/fence.ts";
import { unwatch, watchExistence } from "../base/node-watch.ts";
import { createPersistent } from "../base/protect.ts";
import { pause } from "../base/waiting.ts";
import { GraceLock, type GraceLockOptions, graceLockNames } from "./grace-lock.ts";
import type { Holding, LockPlace, LockRecord, Sight } from "./place.ts";

export interface GraceLockNodesOptions extends GraceLockOptions {
  /** The ACL of all nodes of the lock and of created parents. Default: every client has all permissions. */
  readonly acl?: readonly Acl[];
}

const optionNames: ReadonlySet<string> = new Set([...graceLockNames, "acl"]);

/** Creates the grace lock at this path. @throws PATH_INVALID, OPTION_INVALID */
export function graceLock(client: ZooKeeper, path: string, given: GraceLockNodesOptions): GraceLock {
  checkNames(`the grace lock ${path}`, path, given, optionNames);
  const { acl, ...options } = given;
  return new GraceLock(new LockNodes(client, path, acl), options);
}

/** For each client, the random ids (lives) of the lock objects that contend through it. */
const livesOf = new WeakMap<ZooKeeper, Set<string>>();

/** The lock's state together with the session that read it and the metadata of its nodes. */
interface NodeSight extends Sight {
  readonly session: Session;
  readonly recordStat: Stat | undefined;
  readonly holderStat: Stat | undefined;
}

/** Result of taking the lock: the holder node's czxid, and the version of the record's node. */
interface Taken {
  readonly czxid: bigint;
  readonly version: number;
}

class LockNodes implements LockPlace {
  readonly name: string;
  readonly lives: Set<string>;
  readonly #client: ZooKeeper;
  readonly #listeners = new Set<() => void>();
  /** The session in which a watch on the holder node is set; undefined if there is no watch. */
  #watching: Session | undefined;

  readonly #acl: readonly Acl[] | undefined;

  constructor(client: ZooKeeper, path: string, acl?: readonly Acl[]) {
    checkPath(path);
    if (path === "/") {
      throw new ZooKeeperError("PATH_INVALID", "a grace lock cannot be at /", { path, hint: "give it a path below" });
    }
    this.#client = client;
    this.#acl = acl;
    this.name = path;
    this.lives = livesOf.get(client) ?? new Set();
    livesOf.set(client, this.lives);
  }

  get #holder(): string {
    return `${this.name}/holder`;
  }

  async look(signal?: AbortSignal): Promise<NodeSight> {
    for (;;) {
      const session = await this.#client.established(signal);
      try {
        return await this.#lookIn(session, signal);
      } catch (error) {
        if (signal?.aborted || this.#client.signal.aborted) throw error;
        if (!isZooKeeperError(error, "CONNECTION_LOSS") && session.live) throw error;
        // The pause lets timers run: after a stop of the process, `session.live` may be false before the client's timer has ended the
        // session.
        await pause(0, signal);
      }
    }
  }

  async take(sight: Sight, record: LockRecord): Promise<Holding | undefined> {
    const { session, recordStat, holderStat } = sight as NodeSight;
    const token = `${record.owner}\n${randomUUID()}`;
    const data = JSON.stringify(record);
    const put: Operation[] = recordStat ? [] : [{ type: "create", path: this.name, acl: this.#acl }];
    put.push({ type: "set", path: this.name, data, version: recordStat?.version ?? 0 });
    // The holder node may be a newer one than the node that was read. Its holder has also written the record, so the record's version
    // is newer and the transaction fails.
    if (holderStat) put.push({ type: "delete", path: this.#holder });
    try {
      for (;;) {
        const taken = await this.#tryTake(session, put, token);
        if (taken === "lost") return undefined;
        if (taken === "again") continue;
        return new HeldNodes(session, this.name, taken, await this.#fence(session, taken, record));
      }
    } catch (error) {
      // If the holder node was created, the server deletes it with its session.
      if (!session.live) return undefined;
      throw error;
    }
  }

  watch(changed: () => void): () => void {
    this.#listeners.add(changed);
    const stop = this.#client.onSession(changed);
    return () => {
      stop();
      this.#listeners.delete(changed);
      if (this.#watching && this.#listeners.size === 0) unwatch(this.#watching, this.#holder, this.#fired);
    };
  }

  async #lookIn(session: Session, signal?: AbortSignal): Promise<NodeSight> {
    // The record is read before the holder. If the holder is then missing, either the lock was vacant with this version, or the version
    // is outdated and taking the lock with it fails. In the opposite order, the version of a later holder's record could be mistaken
    // for that of a vacancy.
    const reading = readRecord(session, this.name, signal);
    const isWatched = this.#watching === session;
    this.#watching = session;
    const looking = isWatched
      ? session.exists(this.#holder, { signal })
      : watchExistence(session, this.#holder, this.#fired, signal);
    const [read, found] = await Promise.allSettled([reading, looking]);
    if (found.status === "rejected") {
      if (!isWatched && this.#watching === session) this.#watching = undefined;
      throw found.reason;
    }
    if (read.status === "rejected") throw read.reason;
    const { record, stat } = read.value ?? {};
    return {
      held: found.value !== undefined,
      record,
      version: stat ? `${stat.czxid}:${stat.version}` : "none",
      forgetful: session.rewoundFrom !== undefined,
      session,
      recordStat: stat,
      holderStat: found.value,
    };
  }

  /** Listener of the watch on the holder node; also called when the session ends. */
  readonly #fired = (): void => {
    this.#watching = undefined;
    for (const changed of [...this.#listeners]) changed();
  };

  async #tryTake(session: Session, put: readonly Operation[], token: string): Promise<Taken | "lost" | "again"> {
    try {
      const holder: Operation = { type: "create", path: this.#holder, data: token, ephemeral: true, acl: this.#acl };
      const set = (await session.multi([...put, holder])).find(({ type }) => type === "set");
      if (set?.type !== "set") throw new ZooKeeperError("PROTOCOL", `multi at ${this.name}: no node's numbers`);
      // All operations of a multi have the same transaction number, so the holder node's czxid is equal to the record's mzxid.
      return { czxid: set.stat.mzxid, version: set.stat.version };
    } catch (error) {
      if (isZooKeeperError(error, "NODE_EXISTS", "BAD_VERSION")) return "lost";
      if (isZooKeeperError(error, "NO_NODE")) {
        if (put[0]?.type !== "create") return "lost"; // a person deleted the record, or no holder node exists any more
        await createPersistent(session, parentOf(this.name), undefined, this.#acl);
        return "again";
      }
      if (!isZooKeeperError(error, "CONNECTION_LOSS")) throw error;
      return (await this.#findTaken(session, token)) ?? "again";
    }
  }

  /** Returns the fence. If it cannot be determined, releases the lock and throws, because a lock without a fence must not be held. */
  async #fence(session: Session, taken: Taken, record: LockRecord): Promise<bigint> {
    try {
      return await fenceOf(session, { path: this.name, acl: this.#acl }, taken.czxid);
    } catch (error) {
      if (session.live) await new HeldNodes(session, this.name, taken, 0n).release({ ...record, released: true });
      throw error;
    }
  }

  /** After a lost answer, checks whether the lock was taken: then a holder node with this token belongs to this session. */
  async #findTaken(session: Session, token: string): Promise<Taken | undefined> {
    await session.sync(this.name);
    try {
      const [{ data, stat }, record] = await Promise.all([session.get(this.#holder), session.get(this.name)]);
      if (stat.ephemeralOwner !== session.id || data.toString() !== token) return undefined;
      return { czxid: stat.czxid, version: record.stat.version };
    } catch (error) {
      if (isZooKeeperError(error, "NO_NODE")) return undefined;
      throw error;
    }
  }
}

class HeldNodes implements Holding {
  readonly fence: bigint;
  readonly #session: Session;
  readonly #path: string;
  readonly #czxid: bigint;
  #version: number;

  constructor(session: Session, path: string, taken: Taken, fence: bigint) {
    this.#session = session;
    this.#path = path;
    this.#czxid = taken.czxid;
    this.#version = taken.version;
    this.fence = fence;
  }

  get signal(): AbortSignal {
    return this.#session.signal;
  }

  get remainingMs(): number {
    return this.#session.live ? this.#session.remainingMs : 0;
  }

  seenIn(sight: Sight): boolean {
    return (sight as NodeSight).holderStat?.czxid === this.#czxid;
  }

  write(record: LockRecord): Promise<boolean> {
    return this.#put(record, { type: "check", path: this.#holderPath, version: 0 });
  }

  release(record: LockRecord): Promise<boolean> {
    return this.#put(record, { type: "delete", path: this.#holderPath, version: 0 });
  }

  get #holderPath(): string {
    return `${this.#path}/holder`;
  }

  /** Writes the record and checks or deletes the holder node in one transaction, which fails if this process has lost the lock. */
  async #put(record: LockRecord, holder: Operation): Promise<boolean> {
    const data = JSON.stringify(record);
    for (;;) {
      try {
        await this.#session.multi([holder, { type: "set", path: this.#path, data, version: this.#version }]);
        this.#version += 1;
        return true;
      } catch (error) {
        if (!isZooKeeperError(error, "NO_NODE", "BAD_VERSION", "CONNECTION_LOSS")) throw error;
        const done = await this.#find(data, holder.type === "delete");
        if (done !== undefined) return done;
      }
    }
  }

  /**
   * Finds out the result of a failed write whose answer may be lost.
   * @returns true if it was executed, false if the lock is no longer held, undefined if the write can be repeated
   */
  async #find(data: string, released: boolean): Promise<boolean | undefined> {
    await this.#session.sync(this.#path);
    const [held, read] = await Promise.all([
      this.#session.exists(this.#holderPath),
      this.#session.get(this.#path).catch((error: unknown) => {
        if (isZooKeeperError(error, "NO_NODE")) return undefined;
        throw error;
      }),
    ]);
    if (!read) return false; // a person deleted the node; the next read of the state notices that
    const done = read.data.toString() === data && read.stat.version === this.#version + 1;
    const ours = held?.czxid === this.#czxid;
    if (done && ours !== released) {
      this.#version += 1;
      return true;
    }
    if (!ours) return false;
    // The lock is still held by this process. A person has edited the record, which the repeated write will replace.
    this.#version = read.stat.version;
    return undefined;
  }
}

async function readRecord(
  session: Session,
  path: string,
  signal?: AbortSignal,
): Promise<{ record: LockRecord | undefined; stat: Stat } | undefined> {
  try {
    const { data, stat } = await session.get(path, { signal });
    return { record: data.length === 0 ? undefined : parseRecord(path, data.toString()), stat };
  } catch (error) {
    if (isZooKeeperError(error, "NO_NODE")) return undefined;
    throw error;
  }
}

function parseRecord(path: string, text: string): LockRecord {
  let record: Partial<LockRecord> | null;
  try {
    record = JSON.parse(text);
  } catch {
    record = null; // text that is not JSON is reported below, like any other text that is not a record
  }
  const { owner, life, graceMs, released } = record ?? {};
  const right = typeof owner === "string" && typeof life === "string";
  if (right && typeof graceMs === "number" && typeof released === "boolean") return record as LockRecord;
  throw new ZooKeeperError(
    "DATA_INVALID",
    `${path} holds no grace lock's record: ${JSON.stringify(text.slice(0, 60))}`,
    {
      path,
      hint: "use another path, or delete the node if nobody holds the lock",
    },
  );
}
