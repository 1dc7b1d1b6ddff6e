/**
 * A consumer's steps with one item's node, each of them one transaction, in the two ways of Curator:
 *
 * With a lock path, an item is locked by an ephemeral node `<lockPath>/<name>`, run, and deleted together with its lock; it is
 * run at least once. The transaction that locks also writes the item's data again, unchanged: the node's version counts the
 * attempts that began, so that an item which kills every process that runs it is found out. Java is not affected by this.
 *
 * Without a lock path, the item is deleted and then run: at most once, and lost with the process that took it.
 */

import { isZooKeeperError } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import { parentOf } from "../../base/paths.ts";
import type { Acl } from "../../operations/acl.ts";
import type { CallOptions, Operation } from "../../operations/operations.ts";
import type { Session } from "../../operations/session.ts";
import { createContainers, createPersistent, deleteSurely, surely } from "../base/protect.ts";
import { digits, type ItemName, type QueueNames } from "./names.ts";

/** The paths of a queue and the names of its nodes. */
export interface QueueLayout {
  readonly path: string;
  readonly lockPath: string | undefined;
  /** Items that failed too often. Named as in the queue, so it is a queue that can be consumed. */
  readonly poisonPath: string;
  readonly names: QueueNames;
  readonly acl: readonly Acl[] | undefined;
}

export interface Claim {
  readonly session: Session;
  readonly name: string;
  readonly item: ItemName;
  readonly data: Buffer;
  /** Attempts that began before this one. */
  readonly begun: number;
  /** The lock's czxid: larger for every later claim. */
  readonly fence: bigint | undefined;
}

/**
 * gone: another consumer took it, and it no longer exists. locked: another consumer holds its lock. moved: it changed meanwhile,
 * look again.
 */
export type ClaimOutcome = Claim | "gone" | "locked" | "moved";

/** The room that a lock's transaction needs beyond the item's data. */
export const marginBytes = 16 * 1_024;

/** Answers to one transaction that are lost in a row before it is taken for what makes the server hang up. */
const mostLost = 5;

/** Creates the queue's own missing nodes as Curator does: persistent, their parents as containers. */
export async function createQueuePaths(session: Session, layout: QueueLayout, signal?: AbortSignal): Promise<void> {
  for (const path of [layout.path, layout.lockPath]) {
    if (path === undefined || (await session.exists(path, { signal }))) continue;
    if (parentOf(path) !== "/") await createContainers(session, parentOf(path), signal);
    await createPersistent(session, path, signal);
  }
}

/**
 * @param owner the consumer's own token, which its locks hold: a session may have several consumers
 * @throws what neither another consumer nor the item's end explains
 */
export async function claim(
  session: Session,
  layout: QueueLayout,
  name: string,
  item: ItemName,
  owner: string,
): Promise<ClaimOutcome> {
  const path = `${layout.path}/${name}`;
  try {
    const { data, stat } = await session.get(path);
    const common = { session, name, item, data, begun: item.failures + (layout.lockPath ? stat.version : 0) };
    if (layout.lockPath === undefined) {
      await session.delete(path, { version: stat.version });
      return { ...common, fence: undefined };
    }
    // Where the data leaves no room for the lock in the transaction, that attempt is not counted.
    const counted = data.length < limits.maxRequestBytes - marginBytes;
    const lock = lockOf(layout, name);
    try {
      const [written] = await session.multi([
        counted ? { type: "set", path, data, version: stat.version } : { type: "check", path, version: stat.version },
        { type: "create", path: lock, data: owner, ephemeral: true, acl: layout.acl },
      ]);
      if (written?.type === "set") return { ...common, fence: written.stat.mzxid }; // the same transaction's number
      return { ...common, fence: (await surely(session, () => session.exists(lock)))?.czxid };
    } catch (error) {
      if (!isZooKeeperError(error, "CONNECTION_LOSS")) throw error;
      const held = await holderOf(session, lock, owner);
      return typeof held === "bigint" ? { ...common, fence: held } : held;
    }
  } catch (error) {
    if (isZooKeeperError(error, "NODE_EXISTS")) return "locked";
    if (isZooKeeperError(error, "BAD_VERSION")) return "moved";
    if (!isZooKeeperError(error, "NO_NODE")) throw error;
    if (error.path === path || layout.lockPath === undefined) return "gone";
    await createQueuePaths(session, layout);
    return "moved";
  }
}

/**
 * The result of a claim whose answer was lost. A consumer claims a name once at a time, so a lock with its token in its session
 * is that claim's.
 * @returns the lock's number if this claim holds it
 */
async function holderOf(session: Session, lock: string, owner: string): Promise<bigint | "locked" | "moved"> {
  try {
    const { data, stat } = await surely(session, async () => {
      // The server that we are connected to now may not know yet what the other one did.
      await session.sync(lock);
      return session.get(lock);
    });
    return stat.ephemeralOwner === session.id && data.toString() === owner ? stat.czxid : "locked";
  } catch (error) {
    if (isZooKeeperError(error, "NO_NODE")) return "moved";
    if (isZooKeeperError(error, "NO_AUTH")) return "locked";
    throw error;
  }
}

/** The item is done. @throws when the session ended before: another may run it again */
export async function complete(layout: QueueLayout, claim: Claim): Promise<void> {
  if (layout.lockPath !== undefined) await commit(layout, claim, []);
}

/** The data and the name that an item has from now on. */
interface NextItem {
  readonly data: Buffer;
  readonly failures: number;
  readonly notBeforeMs: number;
}

/** Sends it back, not to be tried again before a time. */
export async function sendBack(layout: QueueLayout, claim: Claim, next: NextItem): Promise<void> {
  await replace(layout, claim, layout.path, next);
}

/** Puts it aside, into the poison path. */
export async function setAside(layout: QueueLayout, claim: Claim, data: Buffer, failures: number): Promise<void> {
  for (;;) {
    try {
      return await replace(layout, claim, layout.poisonPath, { data, failures, notBeforeMs: claim.item.notBeforeMs });
    } catch (error) {
      if (!isZooKeeperError(error, "NO_NODE") || parentOf(error.path) !== layout.poisonPath) throw error;
      await createPersistent(claim.session, layout.poisonPath);
    }
  }
}

async function replace(layout: QueueLayout, claim: Claim, parent: string, next: NextItem): Promise<void> {
  if (layout.lockPath === undefined) return putBack(layout, claim, parent, next);
  const { data, failures, notBeforeMs } = next;
  const path = `${parent}/${layout.names.retry(claim.item, failures, notBeforeMs)}`;
  await commit(layout, claim, [{ type: "create", path, data, sequential: true, acl: layout.acl }]);
}

/**
 * Puts back an item without a lock, which exists in this process alone. Its new name follows from the old one, so a second try,
 * in whatever session, finds the node of the first one, unless another consumer has taken it by then. Another item of that name
 * is one from before the queue was made again.
 */
async function putBack(
  { names, acl }: QueueLayout,
  { session, item }: Claim,
  parent: string,
  { data, failures, notBeforeMs }: NextItem,
): Promise<void> {
  for (let atMs = notBeforeMs; ; atMs++) {
    const path = `${parent}/${names.retry(item, failures, atMs)}${digits(item.sequence)}`;
    try {
      await surely(session, () => session.create(path, data, { acl }));
      return;
    } catch (error) {
      if (!isZooKeeperError(error, "NODE_EXISTS")) throw error;
    }
    if (await holdsOrHeld(session, path, data)) return;
  }
}

/** True if the node has this data, is already gone, or may not be read. */
async function holdsOrHeld(session: Session, path: string, data: Buffer): Promise<boolean> {
  try {
    return (await surely(session, () => session.get(path))).data.equals(data);
  } catch (error) {
    if (isZooKeeperError(error, "NO_NODE", "NO_AUTH")) return true;
    throw error;
  }
}

/**
 * Deletes an item that no consumer has locked, in one transaction.
 * @returns false if a consumer has it, or it is gone
 * @throws CONNECTION_LOSS if it is gone and it is unknown who deleted it
 */
export async function removeItem(
  session: Session,
  layout: QueueLayout,
  name: string,
  options: CallOptions,
): Promise<boolean> {
  const path = `${layout.path}/${name}`;
  const lock = lockOf(layout, name);
  // A transaction cannot check that a node is missing. So it makes the lock, which fails where a consumer has it, and deletes it.
  const operations: Operation[] =
    layout.lockPath === undefined
      ? [{ type: "delete", path }]
      : [
          { type: "create", path: lock, ephemeral: true, acl: layout.acl },
          { type: "delete", path },
          { type: "delete", path: lock },
        ];
  for (let lost: unknown; ; ) {
    try {
      await session.multi(operations, options);
      return true;
    } catch (error) {
      if (isZooKeeperError(error, "NODE_EXISTS")) return false;
      if (isZooKeeperError(error, "CONNECTION_LOSS")) lost = error;
      else if (!isZooKeeperError(error, "NO_NODE")) throw error;
      else if (error.path === lock) await createQueuePaths(session, layout, options.signal);
      else if (lost === undefined) return false;
      else throw lost;
    }
  }
}

/** Releases the lock and leaves the item. */
export async function release(layout: QueueLayout, { session, name }: Claim): Promise<void> {
  if (layout.lockPath !== undefined) await deleteSurely(session, lockOf(layout, name));
}

/**
 * Item and lock go, and what takes their place comes. The item goes first, so a second try of a transaction whose answer
 * was lost finds it missing and does nothing twice.
 * @throws CONNECTION_LOSS when every answer is lost: a server whose limit for requests is lower cuts each such connection
 */
async function commit(layout: QueueLayout, { session, name }: Claim, instead: Operation[]): Promise<void> {
  const path = `${layout.path}/${name}`;
  const operations: Operation[] = [
    { type: "delete", path },
    { type: "delete", path: lockOf(layout, name) },
    ...instead,
  ];
  for (let lost = 0; ; ) {
    try {
      await session.multi(operations);
      return;
    } catch (error) {
      if (isZooKeeperError(error, "CONNECTION_LOSS") && lost < mostLost) lost++;
      else if (lost > 0 && isZooKeeperError(error, "NO_NODE") && error.path === path) return;
      else throw error;
    }
  }
}

function lockOf(layout: QueueLayout, name: string): string {
  return `${layout.lockPath}/${name}`;
}
