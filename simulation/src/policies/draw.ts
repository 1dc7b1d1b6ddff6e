import { Dice } from "../plan/dice.ts";
import { calendarScenario } from "./draw-calendars.ts";
import { type Act, type Behaviour, concurrencies, groupCount, type Scenario, type TaskPlan } from "./scenario.ts";

/** Subjects of scenarios. Each scenario combines several of them, so that their interactions are tested often. */
const themes = [
  "keys",
  "retries",
  "pauses",
  "cancels",
  "slots",
  "limits",
  "edits",
  "flow",
  "routes",
  "losses",
] as const;
type Theme = (typeof themes)[number];

/** Returns the scenario of `seed`; one seed in five gives a scenario about calendars. */
export function scenarioOf(seed: number): Scenario {
  if (seed % 5 === 3) return calendarScenario(seed);
  const dice = new Dice(Math.imul(seed, 0x9e3779b1) + 17);
  const about = new Set<Theme>(Array.from({ length: dice.whole(2, 4) }, () => dice.one(themes)));
  const concurrency = dice.chance(0.7) ? concurrencies[2] : dice.one(concurrencies);
  const tasks: TaskPlan[] = Array.from({ length: dice.whole(1, 3) }, () => taskOf(dice, about));
  const flow = about.has("flow") ? addFlow(dice, tasks) : undefined;
  const acts: Act[] = [];
  for (let left = dice.chance(0.7) ? dice.whole(3, 8) : dice.whole(6, 16); left > 0; left--) {
    const act = actOf(dice, about, tasks, flow);
    if (act) acts.push(act);
    if (dice.chance(0.45)) acts.push({ op: "advance", ms: dice.one(steps) + dice.whole(0, 9) * 100 + 7 });
  }
  if (seed % 10 === 9) acts.push(...crowd(seed, tasks));
  if (seed % 10 === 1) acts.push(...crowd(seed, tasks.slice(0, 1)));
  acts.push({ op: "advance", ms: dice.one(steps) + 7 });
  const changed: Record<number, (seed: number, tasks: readonly TaskPlan[]) => TaskPlan[]> = {
    1: shortQueue,
    4: tooSlow,
    7: inParts,
  };
  return { seed, concurrency, tasks: changed[seed % 10]?.(seed, tasks) ?? tasks, acts: withKeysTaken(seed, acts) };
}

/** Gives some of the enqueues that have a key the option `ifTaken`: `replace` or `again`. */
function withKeysTaken(seed: number, acts: readonly Act[]): Act[] {
  const dice = new Dice(seed);
  return acts.map((act) => {
    if (act.op !== "enqueue" || act.key === undefined) return act;
    const ifTaken = dice.one([undefined, undefined, "replace", "again", "again"] as const);
    return ifTaken ? { ...act, ifTaken } : act;
  });
}

/** Returns enqueues of 8 to 16 runs with random priorities, more than the worker can start at once, so that the order of starts shows. */
function crowd(seed: number, tasks: readonly TaskPlan[]): Act[] {
  const dice = new Dice(seed);
  return Array.from({ length: dice.whole(8, 16) }, () => ({
    op: "enqueue" as const,
    task: dice.whole(0, tasks.length - 1),
    does: { ms: dice.one([2_000, 6_000]), fails: 0 },
    priority: dice.whole(0, 9),
  }));
}

/** Changes the first task so that each run takes longer than the schedule's period; its misfire policy applies to waiting runs. */
function tooSlow(seed: number, [first, ...others]: readonly TaskPlan[]): TaskPlan[] {
  const dice = new Dice(seed);
  const { perKey: _, perWorker: __, rate: ___, route: ____, group: _____, ...plan } = first as TaskPlan;
  const slow: TaskPlan = {
    ...plan,
    every: { ms: 4_000 },
    slots: { ms: dice.one([6_000, 12_000]), fails: 0 },
    overlap: "queue",
    misfire: { policy: dice.one(["skip", "fire_once"] as const), after: dice.one([1_000, 3_000]), waiting: true },
  };
  return [slow, ...others];
}

/** Limits the number of waiting runs of the first task to 1, 2 or 3. */
function shortQueue(seed: number, [first, ...others]: readonly TaskPlan[]): TaskPlan[] {
  const { perKey: _, perWorker: __, rate: ___, ...plan } = first as TaskPlan;
  return [{ ...plan, overlap: { queue: new Dice(seed).whole(1, 3) } }, ...others];
}

/** Gives a route with several parts (broadcast or shards) to each task without concurrency limits, rate limit or fixed delay. */
function inParts(seed: number, tasks: readonly TaskPlan[]): TaskPlan[] {
  const dice = new Dice(seed);
  return tasks.map((plan) => {
    const { overlap, perKey, perWorker, rate, every } = plan;
    const counts = overlap !== undefined || perKey !== undefined || perWorker !== undefined || rate !== undefined;
    return counts || every?.delay
      ? plan
      : { ...plan, route: dice.one(["broadcast", { shards: 2 }, { shards: 3 }] as const) };
  });
}

const ways = ["retry", "retry", "fail", "ask"] as const;

const steps = [300, 700, 1_400, 2_500, 4_000, 6_500, 9_000, 14_000];
const routes = ["least-loaded", "round-robin", "sticky", "random", { hash: "key" }] as const;
const durations = [0, 0, 500, 500, 2_000, 2_000, 6_000, 12_000];

function behaviourOf(dice: Dice, about: Set<Theme>): Behaviour {
  return {
    ms: dice.one(durations),
    fails: dice.chance(about.has("retries") ? 0.5 : 0.15) ? dice.whole(1, 3) : 0,
    ...(about.has("cancels") && dice.chance(0.2) ? { deaf: true as const } : {}),
    ...(about.has("cancels") && dice.chance(0.08) ? { endless: true as const } : {}),
  };
}

function taskOf(dice: Dice, about: Set<Theme>): TaskPlan {
  const overlap = dice.one(["allow", "allow", "queue", "skip", "replace", { allow: 2 }] as const);
  const counts = overlap === "skip" || overlap === "replace";
  const isDelay = dice.chance(0.2);
  const scheduled = dice.chance(about.has("slots") ? 0.85 : 0.3);
  const every = {
    ms: dice.one([4_000, 7_000, 15_000, 30_000]),
    ...(isDelay ? { delay: true as const } : dice.chance(0.3) ? { jitterMs: dice.one([500, 3_000]) } : {}),
  };
  const fromMs = dice.whole(5, 25) * 1_000;
  return {
    ...(scheduled ? { every, slots: behaviourOf(dice, about) } : {}),
    ...(scheduled && !isDelay && about.has("slots") && dice.chance(0.3)
      ? // biome-ignore lint/suspicious/noThenProperty: an option of a blackout; nothing awaits it.
        { blackout: { fromMs, toMs: fromMs + dice.whole(2, 15) * 1_000, then: dice.one(["skip", "delay"] as const) } }
      : {}),
    ...(overlap === "allow" ? {} : { overlap }),
    ...(dice.chance(about.has("retries") ? 0.9 : 0.3) ? { retry: retryOf(dice) } : {}),
    ...(dice.chance(0.25) ? { timeout: dice.one([1_000, 4_500, 10_000]) } : {}),
    ...(dice.chance(0.4) ? { priority: dice.whole(0, 9) } : {}),
    ...(!counts && about.has("limits") && dice.chance(0.4) ? { perKey: dice.whole(1, 2) } : {}),
    ...(!counts && about.has("limits") && dice.chance(0.3) ? { rate: { limit: dice.whole(1, 3), per: 10_000 } } : {}),
    ...(about.has("routes") && dice.chance(0.5) ? { route: dice.one(routes) } : {}),
    ...(!counts && about.has("routes") && dice.chance(0.4) ? { perWorker: dice.whole(1, 2) } : {}),
    ...(scheduled && about.has("slots") && dice.chance(0.6) ? { misfire: misfireOf(dice) } : {}),
    ...(about.has("limits") && dice.chance(0.6) ? { group: dice.whole(0, groupCount - 1) } : {}),
    ...(about.has("losses") ? { onWorkerLost: dice.one(ways), workerLosses: dice.whole(1, 3) } : {}),
    ...(dice.chance(0.08) ? { history: "failures" as const } : {}),
  };
}

const retryOf = (dice: Dice): NonNullable<TaskPlan["retry"]> => ({
  attempts: dice.whole(1, 4),
  backoff: dice.one(["fixed", "exponential"] as const),
  delay: dice.one([1_000, 3_000, 5_000]),
  maxDelay: dice.one([8_000, 60_000]),
  jitter: dice.one([0, 0.5, 1]),
});

const misfireOf = (dice: Dice): NonNullable<TaskPlan["misfire"]> => {
  const policy = dice.one(["fire_once", "skip", "all"] as const);
  return { policy, after: dice.one([1_000, 3_000, 10_000]), ...(dice.chance(0.3) ? { waiting: true as const } : {}) };
};

interface Flow {
  /** `task`: the index of the task of the child runs; `join`: the index of the task that runs when all children have ended. */
  readonly spawns?: { readonly task: number; readonly children: number; readonly join: number };
}

/** Adds either a task that follows another task, or a task for child runs and a task that joins them. */
function addFlow(dice: Dice, tasks: TaskPlan[]): Flow {
  const still = (task: TaskPlan): TaskPlan => {
    const { every: _, blackout: __, misfire: ___, ...rest } = task;
    return rest;
  };
  if (dice.chance(0.5)) {
    const plan = still(taskOf(dice, new Set()));
    const after = { task: dice.whole(0, tasks.length - 1), on: dice.one(["success", "failure", "any"] as const) };
    tasks.push({ ...plan, after, slots: { ms: dice.one([0, 500, 2_000]), fails: dice.whole(0, 1) } });
    return {};
  }
  tasks.push(still(taskOf(dice, new Set())), { retry: { ...retryOf(dice), attempts: 2 } });
  return { spawns: { task: tasks.length - 2, children: dice.whole(0, 4), join: tasks.length - 1 } };
}

function actOf(dice: Dice, about: Set<Theme>, tasks: readonly TaskPlan[], flow: Flow | undefined): Act | undefined {
  const task = dice.whole(0, tasks.length - 1);
  const roll = dice.between(0, 1);
  if (about.has("losses") && roll < 0.22)
    return dice.chance(0.65)
      ? { op: "lose" }
      : { op: "decide", run: dice.whole(0, 30), how: dice.one(["retry", "fail"] as const) };
  if (about.has("pauses") && roll < 0.25) return { op: dice.one(["pause", "resume"] as const), task };
  if (about.has("cancels") && roll < 0.4) return { op: "cancel", run: dice.whole(0, 30) };
  if (roll < (about.has("keys") ? 0.5 : 0.42)) return { op: "rerun", run: dice.whole(0, 30) };
  if (about.has("limits") && roll < 0.56)
    return { op: "limit", group: dice.whole(0, groupCount - 1), runs: dice.one([null, 1, 1, 2]) };
  if (about.has("edits") && roll < 0.64) {
    const plan = tasks[task] as TaskPlan;
    // No edit is drawn for a task that follows another task, or that has the option `history`.
    if (plan.after || plan.history) return undefined;
    const { history: _, ...to } = taskOf(dice, about);
    return { op: "edit", task, to };
  }
  const plan = tasks[task] as TaskPlan;
  const spawns = flow?.spawns && task < flow.spawns.task && dice.chance(0.5) ? flow.spawns : undefined;
  const does = behaviourOf(dice, about);
  return {
    op: "enqueue",
    task,
    does: spawns && !does.deaf && !does.endless ? { ...does, spawns } : does,
    ...(dice.chance(0.3) ? { inMs: dice.one([1_000, 4_000, 12_000, 16_000]) } : {}),
    ...(dice.chance(about.has("keys") ? 0.7 : 0.15) ? { key: `k${dice.whole(0, 1)}` } : {}),
    ...(plan.perKey !== undefined && dice.chance(0.6) ? { limitKey: `l${dice.whole(0, 1)}` } : {}),
    ...(dice.chance(0.4) ? { priority: dice.whole(0, 9) } : {}),
  };
}
