import { defineTask } from "../../../scheduler/src/task/task.ts";
import type { TimedAct } from "./act.ts";
import type { Dice } from "./dice.ts";

/** Name of the task that in some seeds follows the task `upstreamName`. */
export const followerName = "f1";
const upstreamName = "t1";
const share = 0.15;

/**
 * Returns the acts that save the follower once its upstream task exists, twice in case the first save fails; in most seeds none. Later
 * acts do not change the follower.
 * @param acts the other acts of the seed
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
