import type { OperationFilter, OperationKind } from "../../../scheduler/src/run/operations.ts";
import { fairWeather } from "../world/network.ts";
import type { Asked, TimedAct } from "./act.ts";
import type { Dice } from "./dice.ts";

/** Share of the seeds that have operations. */
const share = 1 / 8;
const firstMs = 40_000;
/**
 * No operation, except one that resumes tasks, begins within this time in ms before the end of the faults, because its runs need time
 * to end.
 */
const lastMs = 10_000;
const kinds: readonly OperationKind[] = [
  ...(["backfill", "backfill", "backfill", "backfill", "rerun", "rerun", "redrive", "redrive"] as const),
  ...(["cancel", "cancel", "pause", "pause", "pause", "dismiss"] as const),
];

/** Returns operations on many runs or tasks, and faults in the middle of their steps. @param acts the other acts of the seed */
export function operated(
  dice: Dice,
  nodes: readonly string[],
  acts: readonly TimedAct[],
  healMs: number,
  timeoutMs: number,
): TimedAct[] {
  const tasks = [...new Set(acts.flatMap(({ act }) => (act.kind === "save" ? [act.task] : [])))];
  if (tasks.length === 0 || !dice.chance(share)) return [];
  const operated: TimedAct[] = [];
  const begin = (atMs: number, asked: Asked) => {
    operated.push({ atMs, act: { kind: "begin operation", node: dice.one(nodes), asked } });
    if (dice.chance(0.15))
      operated.push({ atMs: atMs + dice.between(20, 6_000), act: { kind: "stop operation", node: dice.one(nodes) } });
  };
  for (let left = dice.whole(3, 6); left > 0; left--) {
    const atMs = dice.between(firstMs, healMs - lastMs);
    operated.push(...trouble(dice, atMs, timeoutMs));
    const asked = askedOf(dice, dice.one(kinds), dice.one(tasks));
    begin(atMs, asked);
    if (asked.kind !== "pause") continue;
    // The paused tasks are resumed by another operation or one by one, perhaps while they are still being paused.
    const onMs = atMs + dice.between(1_000, dice.one([12_000, 40_000]));
    if (dice.chance(0.5)) begin(onMs, { ...asked, kind: "resume" });
    else
      for (const task of tasks)
        operated.push({ atMs: onMs, act: { kind: "resume task", node: dice.one(nodes), task } });
  }
  return operated;
}

function askedOf(dice: Dice, kind: OperationKind, task: string): Asked {
  const fromAgoMs = dice.between(30_000, 400_000);
  const isMany = kind !== "backfill" && dice.chance(0.6);
  const filter: OperationFilter = isMany ? dice.one([{ matching: "t*" }, { all: true }]) : { task };
  return {
    kind,
    filter: kind === "rerun" && dice.chance(0.3) ? { ...filter, states: ["succeeded", "skipped"] } : filter,
    sinceAgoMs: kind === "rerun" ? 90_000 : null,
    range:
      kind === "backfill"
        ? {
            fromAgoMs,
            toAgoMs: dice.chance(0.5) ? 0 : dice.between(0, fromAgoMs),
            perSecond: dice.one([null, null, 0.5, 1, 2]),
            reverse: dice.chance(0.3),
            missed: dice.chance(0.6),
          }
        : null,
    twice: dice.chance(0.3),
    waits: dice.chance(0.3),
  };
}

/**
 * Returns a strike on the next process that carries out a step of an operation, in the middle of the step; or a loss of replies
 * around the request; or nothing.
 */
function trouble(dice: Dice, atMs: number, timeoutMs: number): TimedAct[] {
  if (dice.chance(0.5)) {
    const how = dice.one(["pause", "pause", "crash", "cut"] as const);
    const way = dice.one(["to", "from", "from", "both"] as const);
    const forMs = timeoutMs * dice.between(0.3, 2);
    return [{ atMs: atMs - 1, act: { kind: "strike", how, at: "step", edited: false, way, forMs } }];
  }
  if (!dice.chance(0.5)) return [];
  const weather = { ...fairWeather, mostMs: dice.one([2, 20]), replyLost: dice.one([0.05, 0.2]), requestLost: 0.02 };
  return [{ atMs: atMs - 100, act: { kind: "weather", weather, forMs: 8_000 } }];
}
