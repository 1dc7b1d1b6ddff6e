import { defineTask } from "../../../scheduler/src/task/task.ts";
import type { TimedAct } from "./act.ts";
import type { Dice } from "./dice.ts";

/** A task that follows the first one, in some seeds. */
export const followerName = "f1";
const upstreamName = "t1";
const share = 0.15;

/**
 * The acts that save the follower once its upstream task exists, twice in case the first save fails. It is not changed later.
 * @param acts of the seed
 */
export function following(dice: Dice, nodes: readonly string[], acts: readonly TimedAct[]): TimedAct[] {
  const upstream = acts.find(({ act }) => act.kind === "save" && act.task === upstreamName);
  if (!upstream || !dice.chance(share)) return [];
  const definition = defineTask(followerName, { after: upstreamName });
  const atMs = upstream.atMs + dice.between(1_000, 30_000);
  return [atMs, atMs + 30_000].map((ms) => ({
    atMs: ms,
    act: { kind: "save", node: dice.one(nodes), task: followerName, definition },
  }));
}
