/**
 * The line (queue) of a lock: each contender creates a node with a number from the server, and waits only for the nearest blocking
 * node before its own, so that a deletion wakes only the contenders that waited for that node.
 *
 * The requests of one acquisition do not depend on the length of the line: create, list, watch the node before, list again after
 * its deletion (its owner may have given up while waiting), read the own node. Deciding by the first list would save the second,
 * but then a contender behind one that gave up would have to check all nodes before it.
 */

import { parentOf } from "../../base/paths.ts";
import type { Acl } from "../../operations/acl.ts";
import type { Created, Data } from "../../operations/operations.ts";
import type { Session } from "../../operations/session.ts";
import { departure } from "../base/node-watch.ts";
import { deleteSurely, placeOf, protectedCreate } from "../base/protect.ts";

export interface Line {
  /** The parent of the nodes. */
  readonly path: string;
  /** The part of the node's name between its token and its number, such as `lock-`. */
  readonly marker: string;
  readonly data: Data;
  readonly acl: readonly Acl[] | undefined;
  /** Markers of the nodes that block this node if their number is smaller. */
  readonly blockedBy: readonly string[];
}

export interface TurnOptions {
  readonly signal?: AbortSignal;
  /** false: gives up instead of waiting if an earlier node blocks it. */
  readonly wait: boolean;
}

/**
 * Joins the line and waits for its turn. If another client deletes its node meanwhile, it joins again, at the end.
 * @returns undefined if it is blocked and `wait` is false; it has left the line then
 * @throws ABORTED, SESSION_EXPIRED and the like; it has left the line then, or is about to. The rejection with ABORTED may come
 * only after the server's answer; `limited` rejects its caller before that.
 */
export async function takeTurn(session: Session, line: Line, options: TurnOptions): Promise<Created | undefined> {
  const { signal, wait } = options;
  for (;;) {
    // Without the signal: an abandoned creation may have made an unknown node, which would block everyone behind it until the
    // session ends. So the creation is completed first, and its node deleted.
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
 * Returns the name with the largest place below `place`, among the names that contain one of the markers.
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

/** @returns undefined for a name without any of the markers: it is not in this line */
export function placeIn(name: string, markers: readonly string[]): string | undefined {
  const marker = markers.find((one) => name.includes(one));
  return marker === undefined ? undefined : placeOf(name, marker);
}

/** Deletes this client's own node. An ended session has already removed it. */
export async function leave(session: Session, path: string): Promise<void> {
  try {
    await deleteSurely(session, path);
  } catch (error) {
    if (session.live) throw error;
  }
}

/** Like `leave`, for a caller that has already got another error: failures are ignored. */
export function leaveBehind(session: Session, path: string): void {
  // An error that keeps a live session from deleting its own node, such as a withdrawn permission, leaves the node until the
  // session ends; the caller gets the failure that came first.
  leave(session, path).catch(() => undefined);
}
