import { cron, every, type ScheduleSpec } from "../../../scheduler/src/schedule/schedule.ts";
import { defineTask, type TaskDefinition, type TaskOptions } from "../../../scheduler/src/task/task.ts";
import type { Act, Sort, TimedAct } from "./act.ts";
import type { Dice } from "./dice.ts";

export const taskNames = ["t1", "t2", "t3", "t4", "t5"];

/** Chooses at random the requests that a seed sends to the cluster. */
export function operations(dice: Dice, sort: Sort, nodes: string[], untilMs: number, small: boolean): TimedAct[] {
  const acts: TimedAct[] = [];
  const add = (atMs: number, act: Act) => {
    if (atMs < untilMs) acts.push({ atMs, act });
  };
  let runs = 0;
  const enqueue = (atMs: number, task: string, inMs: number) => {
    const key = dice.chance(0.4) ? `k${dice.whole(1, 2)}` : null;
    const limitKey = dice.chance(0.4) ? `l${dice.whole(1, 2)}` : null;
    add(atMs, { kind: "enqueue", node: dice.one(nodes), task, inMs, key, limitKey });
    return runs++;
  };
  for (const task of taskNames.slice(0, small ? 1 : dice.whole(1, 3))) {
    let atMs = dice.between(2_000, 60_000);
    // Most edits of a task keep these traits, because the checks can say more about a task whose traits do not change.
    const traits = traitsOf(dice, sort);
    const definition = () => definitionOf(dice, sort, task, dice.chance(0.75) ? traits : traitsOf(dice, sort));
    add(atMs, { kind: "save", node: dice.one(nodes), task, definition: definition() });
    const stops = sort === "stops";
    for (
      let changes = stops ? dice.whole(3, 6) : sort === "night" ? dice.whole(0, 1) : dice.whole(0, small ? 2 : 4);
      changes > 0;
      changes--
    ) {
      atMs += dice.between(1_000, stops ? 60_000 : 150_000);
      if (stops) atMs = soonBeforeDue(dice, atMs);
      const node = dice.one(nodes);
      const what = dice.whole(0, stops ? 8 : 9);
      if (what < (stops ? 3 : 5)) {
        add(atMs, { kind: "save", node, task, definition: definition() });
        // A node, perhaps the same one, makes a second change while the first one takes effect.
        if (stops || dice.chance(0.1))
          add(atMs + dice.between(0, dice.one([20, 2_000])), {
            kind: "save",
            node: dice.one(nodes),
            task,
            definition: definition(),
          });
      } else if (what < (stops ? 8 : 7)) {
        // Nodes enqueue runs of the task while it is being paused.
        if (dice.chance(0.4))
          for (let left = 5; left > 0; left--) enqueue(atMs + dice.between(0, dice.one([15, 200])), task, 0);
        add(atMs, { kind: "pause task", node, task });
        atMs += dice.between(500, 60_000);
        add(atMs, { kind: "resume task", node: dice.one(nodes), task });
      } else {
        add(atMs, { kind: "remove task", node, task });
        atMs += dice.between(500, 30_000);
        if (dice.chance(0.7)) add(atMs, { kind: "save", node: dice.one(nodes), task, definition: definition() });
      }
    }
  }
  const tasks = taskNames.slice(0, small ? 2 : taskNames.length);
  for (let left = small ? dice.whole(0, 4) : dice.whole(2, 8); left > 0; left--) {
    const atMs = dice.between(10_000, untilMs);
    const inMs = dice.chance(0.5) ? 0 : dice.between(0, 90_000);
    const run = enqueue(atMs, dice.one(tasks), inMs);
    const cancelMs = atMs + inMs * dice.one([0.5, 1]) + dice.between(0, 12_000);
    if (dice.chance(0.5)) add(cancelMs, { kind: "cancel", node: dice.one(nodes), run });
  }
  // These runs are cancelled while they run; some fail before the cancellation reaches them.
  for (let left = sort === "stops" ? (small ? 4 : 8) : 0; left > 0; left--) {
    const atMs = dice.between(60_000, untilMs);
    const run = enqueue(atMs, dice.one(tasks.slice(0, 3)), 0);
    add(atMs + dice.between(20, 3_000), { kind: "cancel", node: dice.one(nodes), run });
  }
  // Bursts: random nodes enqueue many runs at about the same time.
  for (let left = sort === "crowd" ? (small ? 2 : 4) : dice.chance(0.2) ? 1 : 0; left > 0; left--) {
    // In `crowd`, the last burst comes after the faults have ended.
    const fromMs = left === 1 && sort === "crowd" ? untilMs - 15_000 : 60_000;
    const [atMs, task] = [dice.between(fromMs, untilMs), dice.one(tasks.slice(0, 3))];
    for (let more = dice.whole(4, 10); more > 0; more--)
      enqueue(atMs + dice.between(0, dice.one([3, 10, 100])), task, 0);
  }
  return acts;
}

/** Zones of cron schedules. The simulated time contains a transition of New York's daylight saving time. */
export const cronZones = ["UTC", "America/New_York"] as const;

/** Short periods in ms. Slots of these schedules are multiples of the period, so the plan can predict them. */
const oftenMs = [20_000, 30_000];
const soonBeforeDue = (dice: Dice, atMs: number) => {
  const everyMs = dice.one(oftenMs);
  return Math.ceil(atMs / everyMs) * everyMs - dice.between(5, 950);
};

function scheduleOf(dice: Dice, sort: Sort): ScheduleSpec {
  const jitter = dice.chance(0.15) ? { jitter: Math.round(dice.between(100, 3_000)) } : {};
  if ((sort === "stops" || sort === "doubt") && dice.chance(0.7)) return every(dice.one(oftenMs));
  if (sort === "crowd" && dice.chance(0.6)) return { type: "manual" };
  switch (sort === "night" && dice.chance(0.8) ? 3 : dice.whole(0, 6)) {
    case 0:
      return every(dice.whole(20, 90) * 1_000, jitter);
    case 1:
      return every(dice.whole(10, 60) * 1_000, { mode: "delay" });
    case 2:
      return cron(dice.one(["* * * * *", "*/30 * * * * *", "15,45 * * * * *"]), {
        zone: dice.one(cronZones),
        ...jitter,
      });
    case 3:
      return cron(dice.one(["*/2 2 * * *", "59 1 * * *", "*/2 1-3 * * *", "*/3 3 * * *"]), {
        zone: "America/New_York",
        ...(dice.chance(0.5) ? { gap: dice.one(["skip", "shift"] as const) } : {}),
        ...(dice.chance(0.3) ? { overlap: dice.one(["first", "last", "both"] as const) } : {}),
      });
    case 4:
      return every(dice.whole(20, 90) * 1_000);
    case 5:
      return cron("*/30 * * * * *");
    default:
      return { type: "manual" };
  }
}

type Traits = Pick<TaskOptions, "overlap" | "onWorkerLost" | "grace" | "timeout" | "limit" | "rate">;

const traitsOf = (dice: Dice, sort: Sort): Traits => ({
  ...(dice.chance(sort === "crowd" ? 0.5 : 0.1) ? pacedOf(dice) : { overlap: overlapOf(dice, sort) }),
  onWorkerLost: dice.one(["retry", "retry", "fail", "ask"] as const),
  grace: dice.one([0, 1_000, 3_000, 6_000]),
  timeout: dice.chance(0.25) ? dice.whole(2, 15) * 1_000 : null,
});

function overlapOf(dice: Dice, sort: Sort): TaskOptions["overlap"] {
  if (sort === "crowd") return dice.one(["queue", "queue", "skip", { allow: 2 }] as const);
  return dice.one(["allow", "allow", "queue", "skip", "replace", { allow: 2 }] as const);
}

/** Returns random options of a task that is limited per key, or by a rate. */
const pacedOf = (dice: Dice): Pick<TaskOptions, "overlap" | "limit" | "rate"> => ({
  overlap: dice.one(["allow", { allow: 3 }] as const),
  ...(dice.chance(0.6) ? { limit: { perKey: dice.whole(1, 2) } } : { rate: { limit: dice.whole(1, 3), per: "10s" } }),
});

/** Options of a task with a fixed delay: each run follows from the end of the previous one. */
const delayed: Pick<TaskOptions, "overlap" | "limit" | "rate"> = { overlap: "queue" };

function definitionOf(dice: Dice, sort: Sort, task: string, traits: Traits): TaskDefinition {
  const schedule = scheduleOf(dice, sort);
  const delay = schedule.type === "every" && schedule.mode === "delay";
  const options: TaskOptions = {
    ...traits,
    schedule,
    ...(delay ? delayed : {}),
    misfire: {
      policy: dice.one(["fire_once", "skip", "all"] as const),
      after: dice.one(["2s", "10s", "30s"]),
      ...(dice.chance(0.5) ? { cap: dice.whole(1, 5) } : {}),
    },
    retry: dice.chance(0.4) ? { attempts: dice.whole(2, 4), delay: "1s" } : 1,
    priority: dice.whole(3, 7),
  };
  return defineTask(task, options);
}
