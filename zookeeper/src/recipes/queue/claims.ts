/**
 * A consumer's steps on one item's node. Each step is a single transaction, in one of Curator's two modes:
 *
 * With a lock path, an item is locked by an ephemeral node `<lockPath>/<name>`, processed, and deleted together with its lock, so it is
 * processed at least once. The locking transaction also writes the item's data again, so that the node's version counts the attempts.
 * The count reveals an item that kills every process that runs it. Java consumers are not affected by these writes.
 *
 * Without a lock path, the item is deleted and then processed, so at most once. It is lost if the process dies.
 */

import { randomUUID } from "node:crypto";
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
  /** The path for items that failed too often. Its nodes have names as in the queue, so it can be consumed like a queue. */
  readonly poisonPath: string;
  readonly names: QueueNames;
  readonly acl: readonly Acl[] | undefined;
}

export interface Claim {
  readonly session: Session;
  readonly name: string;
  readonly item: ItemName;
  readonly data: Buffer;
  /** The number of attempts that began before this one. */
  readonly begun: number;
  /** The lock's czxid, which is larger for each later claim of the item; undefined without a lock path. */
  readonly fence: bigint | undefined;
}

/**
 * gone: the item does not exist any more, because another consumer took it. locked: another consumer holds its lock. moved: the item
 * changed meanwhile, so the caller must claim it again.
 */
export type ClaimOutcome = Claim | "gone" | "locked" | "moved";

/** Upper bound of the bytes that a locking transaction needs besides the item's data. */
export const marginBytes = 16 * 1_024;

/** After this number of consecutive lost answers, the transaction itself is assumed to be the reason, for example its size. */
const mostLost = 5;

/**
 * Creates the queue's missing nodes as Curator does: persistent nodes with containers as parents. The nodes, but not the parents, get
 * the queue's ACL: a client that may delete children of the queue's node could delete every item, whatever ACL the items have.
 */
export async function createQueuePaths(session: Session, layout: QueueLayout, signal?: AbortSignal): Promise<void> {
  for (const path of [layout.path, layout.lockPath]) {
    if (path === undefined || (await session.exists(path, { signal }))) continue;
    if (parentOf(path) !== "/") await createContainers(session, parentOf(path), signal);
    await createPersistent(session, path, signal, layout.acl);
  }
}

/**
 * Claims an item.
 * @param owner the consumer's random id, which is the data of its locks, because one session may have several consumers
 * @throws errors other than those that a concurrent consumer or the item's deletion causes
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
    // The attempt is counted only if data and lock fit into one transaction.
    const counted = data.length < limits.maxRequestBytes - marginBytes;
    const lock = lockOf(layout, name);
    try {
      const [written] = await session.multi([
        counted ? { type: "set", path, data, version: stat.version } : { type: "check", path, version: stat.version },
        { type: "create", path: lock, data: owner, ephemeral: true, acl: layout.acl },
      ]);
      if (written?.type === "set") return { ...common, fence: written.stat.mzxid }; // one transaction wrote the item and created the lock
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
 * Finds out the result of a claim whose answer was lost. A consumer claims a name only once at a time, so a lock with its id in its session
 * belongs to that claim.
 * @returns the lock's czxid if this claim holds the lock
 */
async function holderOf(session: Session, lock: string, owner: string): Promise<bigint | "locked" | "moved"> {
  try {
    const { data, stat } = await surely(session, async () => {
      // The server of the new connection may not have received the write yet, which was sent to another server.
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

/**
 * With a lock path, deletes a finished item and its lock.
 * @throws if that fails, for example because the session has ended: another consumer may then process the item again
 */
export async function complete(layout: QueueLayout, claim: Claim): Promise<void> {
  if (layout.lockPath !== undefined) await commit(layout, claim, []);
}

type CreateOperation = Extract<Operation, { type: "create" }>;

/** The new data, failure count and time of an item that is put back or moved. */
interface NextItem {
  readonly data: Buffer;
  readonly failures: number;
  readonly notBeforeMs: number;
}

/** Puts an item back into the queue with a name that contains the time of its next attempt. */
export async function sendBack(layout: QueueLayout, claim: Claim, next: NextItem): Promise<void> {
  await replace(layout, claim, layout.path, next);
}

/** Moves an item to the poison path. */
export async function setAside(layout: QueueLayout, claim: Claim, data: Buffer, failures: number): Promise<void> {
  for (;;) {
    try {
      return await replace(layout, claim, layout.poisonPath, { data, failures, notBeforeMs: claim.item.notBeforeMs });
    } catch (error) {
      if (!isZooKeeperError(error, "NO_NODE") || parentOf(error.path) !== layout.poisonPath) throw error;
      await createPersistent(claim.session, layout.poisonPath, undefined, layout.acl);
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
 * Puts back an item of a queue without locks, which exists only in this process. The same transaction creates a receipt, an ephemeral
 * node: if its answer is lost, the receipt shows that the item was put back, even if another consumer has taken it since. The new name is
 * derived from the old one, so a repeated try in a later session, which has no receipt, finds the node of the first try unless another
 * consumer has taken it. A node with this name and other data is an item from before the queue was deleted and created again; in that
 * case the loop tries a later time.
 */
async function putBack(
  { path: queue, names, acl }: QueueLayout,
  { session, item }: Claim,
  parent: string,
  { data, failures, notBeforeMs }: NextItem,
): Promise<void> {
  const receipt = `${queue}-receipts/${randomUUID()}`;
  try {
    for (let atMs = notBeforeMs; ; atMs++) {
      const path = `${parent}/${names.retry(item, failures, atMs)}${digits(item.sequence)}`;
      if (await createOnce(session, { type: "create", path, data, acl }, receipt)) return;
      if (await holdsOrHeld(session, path, data)) return;
    }
  } finally {
    deleteSurely(session, receipt).catch(() => undefined); // the server deletes the receipt with the session at the latest
  }
}

/**
 * Creates a node and its receipt in one transaction, so that the node is created once, whatever answers are lost. The node is created
 * without a receipt after `mostLost` lost answers, because the transaction may be larger than the server allows, and if this client may not
 * create receipts.
 * @returns false if the node existed before
 */
async function createOnce(session: Session, node: CreateOperation, receipt: string): Promise<boolean> {
  let lost = 0;
  const create = async () => {
    if (lost >= mostLost) return void (await session.create(node.path, node.data, { acl: node.acl }));
    if (lost > 0) {
      // The server of the new connection may not have received the write yet, which was sent to another server.
      await session.sync(receipt);
      if (await session.exists(receipt)) return;
    }
    lost++;
    await session.multi([node, { type: "create", path: receipt, ephemeral: true }]);
  };
  for (;;) {
    try {
      await surely(session, create);
      return true;
    } catch (error) {
      if (isZooKeeperError(error, "NODE_EXISTS") && error.path === node.path) return false;
      if (!isZooKeeperError(error, "NO_NODE", "NO_AUTH") || error.path !== receipt) throw error;
      const isAllowed = error.code === "NO_NODE" && (await mayCreate(session, parentOf(receipt), node.acl));
      lost = isAllowed ? 0 : mostLost;
    }
  }
}

/** Creates the container of receipts. @returns false if this client has no permission to create it */
async function mayCreate(session: Session, path: string, acl: QueueLayout["acl"]): Promise<boolean> {
  try {
    await surely(session, () => createContainers(session, path, undefined, acl));
    return true;
  } catch (error) {
    if (isZooKeeperError(error, "NO_AUTH")) return false;
    throw error;
  }
}

/** True if the node has this data, was deleted meanwhile, or this client may not read it. */
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
 * @returns false if a consumer has locked the item, or the item does not exist
 * @throws CONNECTION_LOSS if the item is deleted but it is unknown by which client
 */
export async function removeItem(
  session: Session,
  layout: QueueLayout,
  name: string,
  options: CallOptions,
): Promise<boolean> {
  const path = `${layout.path}/${name}`;
  const lock = lockOf(layout, name);
  // A transaction cannot check that a node is missing. So with a lock path, the transaction creates the lock, which fails if a consumer
  // holds it, and deletes the lock again.
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

/** Deletes the item's lock and leaves the item in the queue. */
export async function release(layout: QueueLayout, { session, name }: Claim): Promise<void> {
  if (layout.lockPath !== undefined) await deleteSurely(session, lockOf(layout, name));
}

/**
 * Deletes the item and its lock and creates the replacement, if any, in one transaction. The item's deletion comes first, so that a
 * repetition after a lost answer fails because the item is missing, and changes nothing.
 * @throws CONNECTION_LOSS if every answer is lost, for example because the request is too large and the server closes the connection each
 * time
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
