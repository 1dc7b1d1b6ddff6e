/**
 * Creates a sequential node exactly once. If the connection is lost before the answer, the node may exist with an unknown number. So its
 * name contains a random token (`_c_<uuid>-`, the form that Curator uses), by which it is found again. An ephemeral node with this token
 * that belongs to another session is not used, because it will be deleted with that session.
 */
import { randomUUID } from "node:crypto";
import { isZooKeeperError, ZooKeeperError } from "../../base/errors.ts";
import { childOf } from "../../base/paths.ts";
import type { Acl } from "../../operations/acl.ts";
import type { Created, CreateOptions, Data } from "../../operations/operations.ts";
import type { Session } from "../../operations/session.ts";
import { backOffMs, isPassing } from "./follow.ts";
import { pause } from "./waiting.ts";

/**
 * Creates the path and missing parents as containers, which the server deletes some time after their last child was deleted. Servers
 * before 3.5 get persistent nodes.
 */
export async function createContainers(
  session: Session,
  path: string,
  signal?: AbortSignal,
  acl?: readonly Acl[],
): Promise<void> {
  try {
    await session.create(path, undefined, { container: true, acl, signal });
  } catch (error) {
    if (isZooKeeperError(error, "NODE_EXISTS")) return;
    if (isZooKeeperError(error, "CONNECTION_LOSS")) return createContainers(session, path, signal, acl);
    // Servers before 3.5 have no containers.
    if (isZooKeeperError(error, "UNIMPLEMENTED")) return createPersistent(session, path, signal, acl);
    const parent = path.slice(0, path.lastIndexOf("/"));
    if (!isZooKeeperError(error, "NO_NODE") || parent === "") throw error;
    await createContainers(session, parent, signal, acl);
    return createContainers(session, path, signal, acl);
  }
}

/** Creates the path and missing parents as persistent nodes, which the server never deletes. */
export async function createPersistent(
  session: Session,
  path: string,
  signal?: AbortSignal,
  acl?: readonly Acl[],
): Promise<void> {
  try {
    await session.create(path, undefined, { acl, signal });
  } catch (error) {
    if (isZooKeeperError(error, "NODE_EXISTS")) return;
    if (isZooKeeperError(error, "CONNECTION_LOSS")) return createPersistent(session, path, signal, acl);
    const parent = path.slice(0, path.lastIndexOf("/"));
    if (!isZooKeeperError(error, "NO_NODE") || parent === "") throw error;
    await createPersistent(session, parent, signal, acl);
    return createPersistent(session, path, signal, acl);
  }
}

/**
 * Creates `<parent>/_c_<uuid>-<suffix><number>` exactly once, even if the connection is lost. A missing parent is created as a container
 * with the same ACL, because with an open ACL any client could add nodes to the queue.
 * @param suffix such as `latch-` or `lock-`
 * @throws SESSION_EXPIRED if the session ends first: an ephemeral node that was created is then deleted with the session; ABORTED, NO_AUTH
 */
export async function protectedCreate(
  session: Session,
  parent: string,
  suffix: string,
  data: Data | undefined,
  options: Pick<CreateOptions, "ephemeral" | "ttlMs" | "acl" | "signal"> = {},
): Promise<Created> {
  const token = `_c_${randomUUID()}-`;
  try {
    for (;;) {
      const made = await createOnce(session, { parent, token, suffix, data }, options);
      if (made) return made;
    }
  } catch (error) {
    if (isZooKeeperError(error, "ABORTED") || isPassing(error)) removeLater(session, parent, token);
    throw error;
  }
}

/** The node to be created, `<parent>/<token><suffix><number>`. */
interface ProtectedNode {
  readonly parent: string;
  readonly token: string;
  readonly suffix: string;
  readonly data: Data | undefined;
}

/** Tries once to create the node. @returns undefined if the caller must try again */
async function createOnce(
  session: Session,
  { parent, token, suffix, data }: ProtectedNode,
  options: CreateOptions,
): Promise<Created | undefined> {
  try {
    return await session.create(childOf(parent, `${token}${suffix}`), data, {
      ...options,
      sequential: true,
    });
  } catch (error) {
    if (isZooKeeperError(error, "CONNECTION_LOSS")) return findProtected(session, parent, token, options);
    if (!isZooKeeperError(error, "NO_NODE") || parent === "/") throw error;
    await createContainers(session, parent, options.signal, options.acl);
    return undefined;
  }
}

/** Returns the node with this token; an ephemeral one must belong to this session. Undefined if there is none. */
async function findProtected(
  session: Session,
  parent: string,
  token: string,
  { ephemeral, signal }: CreateOptions,
): Promise<Created | undefined> {
  try {
    // `sync` is needed because the write was sent to another server, and this server may not have received it yet.
    await session.sync(parent, { signal });
    const { names } = await session.children(parent, { signal });
    const name = names.find((one) => one.startsWith(token));
    if (name === undefined) return undefined;
    const path = childOf(parent, name);
    const stat = await session.exists(path, { signal });
    return stat && (!ephemeral || stat.ephemeralOwner === session.id) ? { path, stat } : undefined;
  } catch (error) {
    if (isZooKeeperError(error, "NO_NODE")) return undefined;
    throw error;
  }
}

/** Deletes the node that a failed create may have made. No caller has received its name, and it would block the nodes behind it in the queue. */
function removeLater(session: Session, parent: string, token: string): void {
  const remove = async () => {
    const found = await findProtected(session, parent, token, {});
    if (found) await deleteSurely(session, found.path);
  };
  // `surely` repeats the removal after transient errors while the session is live. Its last error is ignored: an ephemeral node is
  // deleted by the server when the session ends, and any other node may remain.
  surely(session, remove).catch(() => undefined);
}

/** Repeats an idempotent action after transient errors until it succeeds. @throws other errors; the last one if the session has ended */
export async function surely<T>(session: Session, run: () => Promise<T>): Promise<T> {
  for (let failures = 0; ; failures++) {
    try {
      return await run();
    } catch (error) {
      if (!isPassing(error) || !session.live) throw error;
      await pause(backOffMs(failures, Math.random()));
    }
  }
}

/**
 * Deletes this client's own node, with retries after lost connections and other transient errors, because a remaining node would block
 * all nodes behind it until the session ends. A missing node is no error.
 * @throws SESSION_EXPIRED and the like: an ephemeral node is then deleted with the session; lasting errors such as NO_AUTH
 */
export async function deleteSurely(session: Session, path: string): Promise<void> {
  try {
    await surely(session, () => session.delete(path));
  } catch (error) {
    if (!isZooKeeperError(error, "NO_NODE")) throw error;
  }
}

/**
 * Returns a node's position in the queue, as in Curator: the text after the last `marker` of its name, or the whole name without a marker.
 * Positions are compared as text, which is correct for ten digits. Like Curator, this does not support a counter above 2^31 − 1.
 */
export function placeOf(name: string, marker: string): string {
  const at = name.lastIndexOf(marker);
  return at < 0 ? name : name.slice(at + marker.length);
}

/** Returns the names that contain the marker, in the order of their creation. */
export function inOrder(names: readonly string[], marker: string): string[] {
  return names
    .filter((name) => name.includes(marker))
    .sort((a, b) => (placeOf(a, marker) < placeOf(b, marker) ? -1 : 1));
}

/** @throws ZooKeeperError SESSION_EXPIRED unless the session is live by the clock at the time of the call */
export function requireLive(session: Session, what: string): void {
  if (session.live) return;
  throw new ZooKeeperError("SESSION_EXPIRED", `${what}: the session has ended`, { hint: "take it anew" });
}
