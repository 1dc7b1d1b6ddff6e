import type { Clock } from "../../scheduler/src/clock.ts";
import { pause } from "../../scheduler/src/clock.ts";
import type { OperationFilter, OperationKind, OperationRequest } from "../../scheduler/src/operations.ts";
import type { Store } from "../../scheduler/src/store.ts";
import type { Dice } from "./dice.ts";
import { fairWeather } from "./network.ts";
import type { TimedAct } from "./plan.ts";

/** What is asked of many at once. Times are told from the moment in which it is asked. */
export interface Asked {
  readonly kind: OperationKind;
  readonly filter: OperationFilter;
  /** Of runs: none that came due, or ended, before. */
  readonly sinceAgoMs: number | null;
  /** Of a backfill. */
  readonly range: {
    readonly fromAgoMs: number;
    readonly toAgoMs: number;
    readonly perSecond: number | null;
    readonly reverse: boolean;
    readonly missed: boolean;
  } | null;
  /** Whoever asks does it twice at once, with one token, as if the first reply had been lost. */
  readonly twice: boolean;
  /** Whoever asks carries it out as well, beside the leader. */
  readonly waits: boolean;
}

/** Of seeds. */
const share = 1 / 8;
const firstMs = 40_000;
/** So long before the faults end none is begun any more: what it makes has to be worked off. */
const lastMs = 10_000;
const kinds: readonly OperationKind[] = [
  ...(["backfill", "backfill", "backfill", "backfill", "rerun", "rerun", "redrive", "redrive"] as const),
  ...(["cancel", "cancel", "pause", "pause", "pause", "dismiss"] as const),
];

/** Operations, and what goes wrong in the midst of their steps. @param acts of the seed */
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
    // What was paused is let go on: by another operation, or one after the other, perhaps while it is being paused.
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
            ...{ fromAgoMs, toAgoMs: dice.chance(0.5) ? 0 : dice.between(0, fromAgoMs) },
            ...{ perSecond: dice.one([null, null, 0.5, 1, 2]), reverse: dice.chance(0.3), missed: dice.chance(0.6) },
          }
        : null,
    ...{ twice: dice.chance(0.3), waits: dice.chance(0.3) },
  };
}

/** It strikes whoever steps an operation next, in the midst of the step; or replies are lost while it is asked and begun. */
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

/** As an operator asks for it. @param nowMs of the store */
export function requestOf(asked: Asked, nowMs: number, author: string, reason: string): OperationRequest {
  const { kind, filter, sinceAgoMs, range } = asked;
  return {
    ...{ kind, author, reason },
    filter: { ...filter, ...(sinceAgoMs === null ? {} : { sinceMs: Math.round(nowMs - sinceAgoMs) }) },
    ...(range
      ? {
          range: {
            fromMs: Math.round(nowMs - range.fromAgoMs),
            toMs: Math.round(nowMs - range.toAgoMs),
            ...{ perSecond: range.perSecond, reverse: range.reverse, missed: range.missed },
          },
        }
      : {}),
  };
}

const lookMs = 1_000;

/** As `--wait` does. @throws STORE_… */
export async function carryOut(store: Store, operationId: number, clock: Clock, now: () => number): Promise<void> {
  for (;;) {
    const { stepped, nextMs } = await store.operations.step(now(), operationId);
    if (stepped !== null) continue;
    if ((await store.operations.find(operationId)).endedMs !== null) return;
    await pause(clock, Math.max(lookMs, nextMs === null ? 0 : nextMs - now()));
  }
}
