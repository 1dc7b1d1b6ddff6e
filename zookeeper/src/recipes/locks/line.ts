/**
 * The queue of a lock. Each contender creates a node with a number from the server, and waits only for the nearest blocking node before
 * its own, so that a deletion wakes only the contenders that waited for that node.
 *
 * The number of requests of one acquisition does not depend on the length of the queue: create, list, watch the node before, list again
 * after its deletion (because its owner may have given up while waiting), read the own node. Without the second list, a contender would
 * have to check all nodes before the deleted one.
 */

import { parentOf } from "../../base/paths.ts";
import type { Acl } from "../../operations/acl.ts";
import type { Created, Data } from "../../operations/operations.ts";
import type { Session } from "../../operations/session.ts";
import { departure } from "../base/node-watch.ts";
import { deleteSurely, placeOf, protectedCreate } from "../base/protect.ts";

export interface Line {
  /** The path of the parent of the queue's nodes. */
  readonly path: string;
  /** The part of the node's name between its token and its number, such as `lock-`. */
  readonly marker: string;
  readonly data: Data;
  readonly acl: readonly Acl[] | undefined;
  /** Markers of the nodes that block this node if their numbers are smaller. */
  readonly blockedBy: readonly string[];
}

export interface TurnOptions {
  readonly signal?: AbortSignal;
  /** If false, gives up instead of waiting if an earlier node blocks this one. */
  readonly wait: boolean;
}

/**
 * Creates a node at the end of the queue and waits until no node blocks it. If another client deletes the node meanwhile, starts again.
 * @returns undefined if the node is blocked and `wait` is false; it has then been deleted
 * @throws ABORTED, SESSION_EXPIRED and the like; the node is then deleted in the background. ABORTED may be thrown only after the
 * server's answer; `limited` rejects its caller earlier.
 */
export async function takeTurn(session: Session, line: Line, options: TurnOptions): Promise<Created | undefined> {
  const { signal, wait } = options;
  for (;;) {
    // The signal is not passed: an aborted creation may leave a node whose name this client has not received, which would block all nodes behind
    // it until the session ends. So the creation is completed first, and then its node is deleted.
    const node = await protectedCreate(session, line.path, line.marker, line.data, { ephemeral: true, acl: line.acl });
    try {
      const turn = await ownTurn(session, line, node, { signal, wait });
      if (turn === "ours") return node;
      if (turn === "blocked") {
        await leave(session, node.path);
        return undefined;
      }
    } catch (error) {
      leaveBehind(session, node.path);
      throw error;
    }
  }
}

async function ownTurn(
  session: Session,
  line: Line,
  node: Created,
  { signal, wait }: TurnOptions,
): Promise<"ours" | "blocked" | "gone"> {
  const own = node.path.slice(parentOf(node.path).length + 1);
  for (;;) {
    const { names } = await session.children(line.path, { signal });
    if (!names.includes(own)) return "gone";
    const before = nearestBefore(names, placeOf(own, line.marker), line.blockedBy);
    if (before === undefined) return "ours";
    if (!wait) return "blocked";
    await departure(session, `${line.path}/${before}`, signal);
  }
}

/**
 * Returns the name with the largest queue position below `place`, among the names that contain one of the markers.
 * @param place a result of `placeOf`
 */
export function nearestBefore(names: readonly string[], place: string, markers: readonly string[]): string | undefined {
  let nearest: string | undefined;
  let nearestPlace = "";
  for (const name of names) {
    const its = placeIn(name, markers);
    if (its === undefined || its >= place || (nearest !== undefined && its <= nearestPlace)) continue;
    nearest = name;
    nearestPlace = its;
  }
  return nearest;
}

/** Returns the name's position in the queue; undefined for a name without any of the markers, which is not in this queue. */
export function placeIn(name: string, markers: readonly string[]): string | undefined {
  const marker = markers.find((one) => name.includes(one));
  return marker === undefined ? undefined : placeOf(name, marker);
}

/**
 * Deletes this client's own node. If the session has ended, the server deletes the node.
 * @throws the error that prevents the deletion, such as NO_AUTH, if the session is live
 */
export async function leave(session: Session, path: string): Promise<void> {
  try {
    await deleteSurely(session, path);
  } catch (error) {
    if (session.live) throw error;
  }
}

/** Like `leave`, but in the background and without errors, for a caller that has already got another error. */
export function leaveBehind(session: Session, path: string): void {
  // If a live session cannot delete its node, for example without permission, the node remains until the session ends. This error is
  // ignored, because the caller gets the error that came first.
  leave(session, path).catch(() => undefined);
}
