/**
 * Fences that only increase. A node's czxid increases while the service keeps its data; a service whose data was wiped or restored starts
 * again with lower numbers. A client that was connected before the loss notices it (`session.rewoundFrom`) and raises a base, which is
 * stored beside the lock in `<path>-fence`: fence = base + czxid. Without this node the base is 0.
 *
 * Limit: if all clients are new after the loss, no client knows how high the old fences were. Users who need protection in this case must
 * take their numbers from a store that keeps its data, as the scheduler does for its terms.
 */
import { isZooKeeperError, ZooKeeperError } from "../../base/errors.ts";
import { parentOf } from "../../base/paths.ts";
import type { Acl } from "../../operations/acl.ts";
import type { Session } from "../../operations/session.ts";
import { createPersistent } from "./protect.ts";

/**
 * Returns base + czxid, after raising the base if needed.
 * @param lock the lock's path, and the ACL of its nodes, which the base's node gets too, so that only the lock's users may lower the base.
 * The base's node is a sibling of the lock, so that listings of the lock's children do not contain it
 * @param czxid the czxid of the node that holds the lock
 * @throws DATA_INVALID if the base's node does not hold a number; other errors of the requests, such as NO_AUTH
 */
export async function fenceOf(
  session: Session,
  { path, acl }: { readonly path: string; readonly acl: readonly Acl[] | undefined },
  czxid: bigint,
): Promise<bigint> {
  const at = `${path}-fence`;
  for (;;) {
    const held = await readBase(session, at);
    const wanted = session.rewoundFrom ?? 0n;
    if (held.base >= wanted) return held.base + czxid;
    try {
      if (held.version === undefined) {
        await createPersistent(session, parentOf(path));
        await session.create(at, String(wanted), { acl });
      } else {
        await session.set(at, String(wanted), { version: held.version });
      }
    } catch (error) {
      // Another client has raised the base, or this client did and the answer was lost: the loop reads the base again.
      if (!isZooKeeperError(error, "NODE_EXISTS", "BAD_VERSION", "NO_NODE", "CONNECTION_LOSS")) throw error;
    }
  }
}

async function readBase(session: Session, at: string): Promise<{ base: bigint; version?: number }> {
  try {
    const { data, stat } = await session.get(at);
    const text = data.toString("latin1");
    if (!/^\d{1,30}$/.test(text)) {
      throw new ZooKeeperError(
        "DATA_INVALID",
        `${at} does not hold a number but ${JSON.stringify(text.slice(0, 40))}`,
        {
          path: at,
          hint: "write the highest fence ever given out there, in decimal digits",
        },
      );
    }
    return { base: BigInt(text), version: stat.version };
  } catch (error) {
    if (isZooKeeperError(error, "NO_NODE")) return { base: 0n };
    throw error;
  }
}
