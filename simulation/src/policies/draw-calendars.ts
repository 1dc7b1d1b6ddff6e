import { Dice } from "../plan/dice.ts";
import { type Act, type Behaviour, concurrencies, type Scenario, type TaskPlan } from "./scenario.ts";

const hourMs = 3_600_000;
const minuteMs = 60_000;
/** Schedule periods in hours. A week is a whole multiple of each of them, because `play.ts` starts scenarios at multiples of a week. */
const periods = [6, 7, 12, 24];
const steps = [3, 7, 13, 25, 49];
/** The number of days for which holidays are drawn; scenarios are shorter. */
const days = 20;

/** Returns the scenario of `seed`: tasks with few slots a day, some of which a calendar or a blackout excludes or moves. */
export function calendarScenario(seed: number): Scenario {
  const dice = new Dice(Math.imul(seed, 0x85ebca6b) + 29);
  const tasks = Array.from({ length: dice.whole(1, 2) }, () => taskOf(dice));
  const acts: Act[] = [];
  for (let left = dice.whole(3, 8); left > 0; left--) {
    acts.push({ op: "advance", ms: dice.one(steps) * hourMs + dice.whole(0, 50) * minuteMs + 7 });
    if (dice.chance(0.6)) acts.push(actOf(dice, tasks));
  }
  acts.push({ op: "advance", ms: dice.one(steps) * hourMs + 7 });
  return { seed, concurrency: dice.one(concurrencies), tasks, acts, holidays: holidaysOf(dice) };
}

/** Draws holidays as day numbers from 0 to `days` - 1; several consecutive days may be holidays. */
function holidaysOf(dice: Dice): number[] {
  const share = dice.one([0.2, 0.4, 0.6]);
  return Array.from({ length: days }, (_, day) => day).filter(() => dice.chance(share));
}

const behaviourOf = (dice: Dice): Behaviour => ({
  ms: dice.one([0, 2_000, 12_000]),
  fails: dice.chance(0.2) ? dice.whole(1, 2) : 0,
});

function taskOf(dice: Dice): TaskPlan {
  const fromMs = dice.whole(2, 60) * hourMs;
  const overlap = dice.one(["allow", "queue", "skip", "replace"] as const);
  return {
    every: { ms: dice.one(periods) * hourMs, ...(dice.chance(0.2) ? { jitterMs: 30 * minuteMs } : {}) },
    slots: behaviourOf(dice),
    ...(dice.chance(0.85) ? { calendar: { otherwise: dice.one(["skip", "next", "previous"] as const) } } : {}),
    ...(dice.chance(0.35)
      ? // biome-ignore lint/suspicious/noThenProperty: an option of a blackout; nothing awaits it.
        { blackout: { fromMs, toMs: fromMs + dice.whole(2, 30) * hourMs, then: dice.one(["skip", "delay"] as const) } }
      : {}),
    ...(overlap === "allow" ? {} : { overlap }),
    ...(dice.chance(0.4)
      ? { retry: { attempts: 2, backoff: "fixed" as const, delay: 3_000, maxDelay: 8_000, jitter: 0 } }
      : {}),
    ...(dice.chance(0.4) ? { misfire: { policy: dice.one(["fire_once", "skip", "all"] as const) } } : {}),
  };
}

function actOf(dice: Dice, tasks: readonly TaskPlan[]): Act {
  const task = dice.whole(0, tasks.length - 1);
  const roll = dice.between(0, 1);
  if (roll < 0.3) return { op: "calendar", holidays: holidaysOf(dice) };
  if (roll < 0.5) return { op: "edit", task, to: taskOf(dice) };
  if (roll < 0.7) return { op: dice.one(["pause", "resume"] as const), task };
  if (roll < 0.8) return { op: "cancel", run: dice.whole(0, 30) };
  if (roll < 0.9) return { op: "rerun", run: dice.whole(0, 30) };
  return { op: "enqueue", task, does: behaviourOf(dice) };
}
