import { cron, every, type ScheduleSpec } from "../../scheduler/src/schedule/schedule.ts";
import { defineTask, type TaskDefinition, type TaskOptions } from "../../scheduler/src/task/task.ts";
import type { Dice } from "../../simulation/src/plan/dice.ts";
import type { Act } from "./order.ts";

export const taskNames = ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9", "t10"];

type Traits = Pick<TaskOptions, "overlap" | "onWorkerLost" | "grace" | "timeout" | "route">;

/** Generates operations on the cluster; the seed determines them. The first operations define each task. */
export class Workload {
  readonly #dice: Dice;
  /** Options that a task keeps when the workload edits it, so that the checks can assert more. */
  readonly #traits: ReadonlyMap<string, Traits>;
  readonly #runs: number[] = [];
  readonly #paused = new Set<string>();
  readonly #removed = new Set<string>();

  constructor(dice: Dice) {
    this.#dice = dice;
    this.#traits = new Map(taskNames.map((name) => [name, traitsOf(dice)]));
  }

  first(): Act[] {
    return taskNames.map((task) => this.#save(task));
  }

  enqueued(run: number): void {
    this.#runs.push(run);
  }

  /** Returns operations that resume all paused tasks, so that the final check sees all tasks active. */
  last(): Act[] {
    return [...this.#paused].map((task) => ({ kind: "resume task", task }));
  }

  /** Returns the next operation. @param nowMs approximately the store's time, in epoch ms */
  next(nowMs: number): Act {
    const dice = this.#dice;
    const task = dice.one(taskNames);
    const what = dice.whole(0, 19);
    if (this.#removed.has(task)) return this.#save(task);
    if (this.#paused.has(task) && what < 10) {
      this.#paused.delete(task);
      return { kind: "resume task", task };
    }
    if (what < 4) return this.#save(task);
    if (what === 4) {
      this.#paused.add(task);
      return { kind: "pause task", task };
    }
    if (what === 5) {
      this.#removed.add(task);
      this.#paused.delete(task);
      return { kind: "remove task", task };
    }
    const run = this.#runs.at(-dice.whole(1, 4));
    if (what < 9 && run !== undefined) return { kind: "cancel", task: "", run };
    const key = dice.chance(0.3) ? `k${dice.whole(1, 2)}` : null;
    return { kind: "enqueue", task, dueMs: nowMs + (dice.chance(0.5) ? 0 : dice.between(0, 8_000)), key };
  }

  #save(task: string): Act {
    this.#removed.delete(task);
    const dice = this.#dice;
    const traits = dice.chance(0.8) ? (this.#traits.get(task) as Traits) : traitsOf(dice);
    return { kind: "save", task, definition: definitionOf(dice, task, traits) };
  }
}

function scheduleOf(dice: Dice): ScheduleSpec {
  const jitter = dice.chance(0.15) ? { jitter: Math.round(dice.between(100, 900)) } : {};
  switch (dice.whole(0, 5)) {
    case 0:
      return every(dice.whole(2, 6) * 1_000, jitter);
    case 1:
      return every(dice.whole(2, 5) * 1_000, { mode: "delay" });
    case 2:
      return cron(dice.one(["*/2 * * * * *", "* * * * * *", "*/5 * * * * *", "10-50/10 * * * * *"]), {
        zone: dice.one(["UTC", "America/New_York"]),
        ...jitter,
      });
    case 3:
      return every(dice.whole(1, 3) * 1_000);
    case 4:
      return cron("*/3 * * * * *");
    default:
      return { type: "manual" };
  }
}

const traitsOf = (dice: Dice): Traits => ({
  overlap: dice.one(["allow", "allow", "queue", "skip", "replace", { allow: 2 }] as const),
  onWorkerLost: dice.one(["retry", "retry", "fail", "ask"] as const),
  grace: dice.one([0, 500, 1_000, 2_000]),
  timeout: dice.chance(0.25) ? dice.whole(2, 5) * 1_000 : null,
  ...(dice.chance(0.2) ? { route: dice.one(["random", "least-loaded", "sticky"] as const) } : {}),
});

function definitionOf(dice: Dice, task: string, traits: Traits): TaskDefinition {
  const schedule = scheduleOf(dice);
  const delay = schedule.type === "every" && schedule.mode === "delay";
  const options: TaskOptions = {
    ...traits,
    schedule,
    ...(delay ? { overlap: "queue" as const } : {}),
    misfire: {
      policy: dice.one(["fire_once", "skip", "all"] as const),
      after: dice.one(["2s", "5s", "10s"]),
      ...(dice.chance(0.5) ? { cap: dice.whole(1, 5) } : {}),
    },
    retry: dice.chance(0.4) ? { attempts: dice.whole(2, 4), delay: "500ms" } : 1,
    priority: dice.whole(3, 7),
  };
  return defineTask(task, options);
}
