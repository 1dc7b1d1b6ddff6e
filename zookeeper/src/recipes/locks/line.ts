/**
 * Standing in line: everyone makes a node with a number that the server counts up, and waits for the nearest one before
 * that is in its way; that one alone, so that a departure wakes no more than those who waited for it.
 *
 * What one acquisition asks of the server does not depend on how many stand in line: create, list, watch the one before,
 * list again when it has gone (it may have given up in the middle), look at one's own node. Deciding by the first list
 * would save the second, but then whoever follows one that gave up would have to ask through all before it.
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
  /** The node's name after its token and before its number, as in `lock-`. */
  readonly marker: string;
  readonly data: Data;
  readonly acl: readonly Acl[] | undefined;
  /** Names after which others' numbers stand, who are in the way of those with smaller numbers. */
  readonly blockedBy: readonly string[];
}

export interface TurnOptions {
  readonly signal?: AbortSignal;
  /** false: does not wait for others, but gives up when someone is in the way. */
  readonly wait: boolean;
}

/**
 * Gets in line and waits for its turn. Whoever's node somebody else deletes meanwhile gets in line again, at its end.
 * @returns undefined when someone is in the way and it should not wait; it has left the line then
 * @throws ABORTED, SESSION_EXPIRED and the like; it has left the line then, or is about to. ABORTED may take until the
 * server answers: who asked has been told by then, see `limited`.
 */
export async function takeTurn(session: Session, line: Line, options: TurnOptions): Promise<Created | undefined> {
  const { signal, wait } = options;
  for (;;) {
    // Without the signal: a creation that is given up half-way may have made a node that nobody knows of, and that would
    // hold up everyone behind it until the session ends. So it is seen through first, and its node deleted.
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
 * Of the names that hold one of the markers, the one with the largest place below `place`.
 * @param place as `placeOf` gives it
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

/** @returns undefined for a name with none of the markers: it stands in no line */
export function placeIn(name: string, markers: readonly string[]): string | undefined {
  const marker = markers.find((one) => name.includes(one));
  return marker === undefined ? undefined : placeOf(name, marker);
}

/** Deletes one's own node. An ended session has taken it along. */
export async function leave(session: Session, path: string): Promise<void> {
  try {
    await deleteSurely(session, path);
  } catch (error) {
    if (session.live) throw error;
  }
}

/** The same while the caller is told already that it got nothing. */
export function leaveBehind(session: Session, path: string): void {
  // What keeps a live session from deleting its own node, a permission that was taken away, keeps the node there until
  // the session ends; the caller hears of the failure that came first.
  leave(session, path).catch(() => undefined);
}
