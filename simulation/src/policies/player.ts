import { isCarillonError } from "../../../scheduler/src/base/errors.ts";
import type { RunRecord } from "../../../scheduler/src/run/run-record.ts";
import type { Store } from "../../../scheduler/src/store/store.ts";
import { defineTask, type TaskOptions } from "../../../scheduler/src/task/task.ts";
import { triesFrom } from "./notices.ts";
import { optionsOf } from "./options.ts";
import { readAll } from "./read.ts";
import { type Act, groupCount, type Scenario, type TaskPlan } from "./scenario.ts";
import type { Done, Look, PlanSeen, Seen } from "./seen.ts";
import type { World } from "./world.ts";

const dayMs = 86_400_000;
const weekMs = 7 * dayMs;
/** How often the player checks, spread over `quietMs`, whether all runs have ended. */
const quietLooks = 90;

/** Plays one scenario in a world, and returns everything that a user can observe of it. */
export class Player {
  readonly #world: World;
  readonly #scenario: Scenario;
  readonly #beganMs: number;
  readonly #done: Done[] = [];
  readonly #looks: Look[] = [];
  readonly #plans: PlanSeen[][];

  /** @param beganMs the scenario's beginning, epoch ms */
  constructor(world: World, scenario: Scenario, beganMs: number) {
    this.#world = world;
    this.#scenario = scenario;
    this.#beganMs = beganMs;
    this.#plans = scenario.tasks.map(() => []);
  }

  get #nowMs(): number {
    return this.#world.now() - this.#beganMs;
  }

  get #names(): string[] {
    return this.#scenario.tasks.map((_, task) => this.#world.taskName(task));
  }

  async #store(): Promise<Store> {
    return (await this.#world.carillon.open()).store;
  }

  async play(): Promise<Omit<Seen, "told">> {
    const { tasks, acts, holidays } = this.#scenario;
    if (holidays) await this.#setCalendar(holidays);
    // A task is saved after the tasks on which it depends, because those have lower indexes.
    for (const [task, plan] of tasks.entries()) await this.#save(task, plan);
    await this.#world.settle();
    for (const act of acts) await this.#act(act);
    for (const task of tasks.keys()) await this.#act({ op: "resume", task });
    for (let group = 0; group < groupCount; group++)
      if (acts.some((act) => act.op === "limit" && act.group === group))
        await this.#act({ op: "limit", group, runs: null });
    const healedMs = this.#nowMs;
    // The schedules end now, because they would create slots for ever; all existing runs must then end.
    for (const task of tasks.keys()) await this.#endSchedule(task);
    // Time advances to the end of the last blackout plus the largest jitter; all delayed slots have started by then.
    const plans = this.#plans.flat().map(({ plan }) => plan);
    const jitterMs = Math.max(0, ...plans.map(({ every }) => every?.jitterMs ?? 0));
    const lastMs = Math.max(healedMs, ...plans.map(({ blackout }) => blackout?.toMs ?? 0)) + jitterMs;
    if (lastMs > healedMs && (await this.#look()) > 0) await this.#world.advanceTo(this.#beganMs + lastMs);
    while (this.#nowMs < lastMs + this.#world.quietMs && (await this.#look()) > 0) {
      await this.#decideAll();
      await this.#world.advanceTo(this.#world.now() + Math.ceil(this.#world.quietMs / quietLooks));
    }
    await this.#look();
    const store = await this.#store();
    const seen = await readAll(store, this.#names, this.#beganMs, this.#world.now() + weekMs);
    return {
      ...seen,
      tasks: seen.tasks.map((task, i) => ({ ...task, plans: this.#plans[i] ?? [] })),
      scenario: this.#scenario,
      beganMs: this.#beganMs,
      done: this.#done,
      looks: this.#looks,
      tries: triesFrom(this.#world.notices(), this.#beganMs),
      pace: this.#world.pace,
      healedMs,
      endMs: this.#nowMs,
    };
  }

  /** Decides `fail` for each run that still waits for an operator's decision. */
  async #decideAll(): Promise<void> {
    for (const { runId, state } of this.#looks.at(-1)?.live ?? [])
      if (state === "undecided") {
        const [fromMs, act] = [this.#nowMs, { op: "decide", run: 0, how: "fail" } as const];
        await this.#world.carillon.decide(runId, act.how);
        this.#done.push({ act, fromMs, toMs: fromMs, runId });
      }
  }

  #optionsOf(plan: TaskPlan): TaskOptions {
    return optionsOf(plan, {
      group: (of) => this.#world.groupName(of),
      task: (of) => this.#world.taskName(of),
      calendar: this.#world.calendar,
      beganMs: this.#beganMs,
    });
  }

  async #save(task: number, plan: TaskPlan): Promise<void> {
    const fromMs = this.#nowMs;
    await this.#world.carillon.save(defineTask(this.#world.taskName(task), this.#optionsOf(plan)));
    const store = await this.#store();
    const { version } = await store.tasks.byName(this.#world.taskName(task));
    this.#plans[task]?.push({ fromMs, atMs: this.#nowMs, version, plan });
  }

  async #setCalendar(holidays: readonly number[]): Promise<void> {
    const store = await this.#store();
    const days = holidays.map((day) => new Date(this.#beganMs + day * dayMs).toISOString().slice(0, 10));
    const change = { author: "a user", reason: "other holidays", nowMs: this.#world.now() };
    await store.calendars.set(this.#world.calendar, { zone: "UTC", weekend: [], holidays: days }, change);
  }

  async #endSchedule(task: number): Promise<void> {
    const { plan } = this.#plans[task]?.at(-1) ?? {};
    if (!plan?.every) return;
    const { every: _, calendar: __, ...still } = plan;
    await this.#save(task, still);
  }

  async #look(): Promise<number> {
    const store = await this.#store();
    const states = ["held", "paused", "ready", "claimed", "undecided"] as const;
    const names = this.#names;
    const live = (await store.runs.list({ states: [...states], limit: 1_000 })).filter(({ task }) =>
      names.includes(task),
    );
    this.#looks.push({
      atMs: this.#nowMs,
      live: live.map(({ runId, task, state, key, attempt, dueMs }) => ({
        runId,
        task,
        state,
        key,
        attempt,
        dueMs: dueMs - this.#beganMs,
      })),
    });
    return live.length;
  }

  async #act(act: Act): Promise<void> {
    const fromMs = this.#nowMs;
    let told: Partial<Done> = {};
    try {
      told = await this.#do(act);
    } catch (error) {
      if (!isCarillonError(error)) throw error;
      told = { refused: error.code };
    }
    this.#done.push({ act, fromMs, toMs: this.#nowMs, ...told });
    // Waits for the act's consequences. Otherwise the machine's speed would decide which events happen at the same time.
    await this.#world.settle();
    if (act.op === "advance") await this.#look();
  }

  async #do(act: Act): Promise<Partial<Done>> {
    const { carillon } = this.#world;
    switch (act.op) {
      case "advance":
        await this.#world.advanceTo(this.#world.now() + act.ms);
        return {};
      case "enqueue": {
        const { task, does, inMs, key, ifTaken, limitKey, priority } = act;
        const { runId, created, replaced, again } = await carillon.enqueue(this.#world.taskName(task), does, {
          ...(inMs === undefined ? {} : { in: inMs }),
          ...(key === undefined ? {} : { key }),
          ...(ifTaken === undefined ? {} : { ifKeyTaken: ifTaken }),
          ...(limitKey === undefined ? {} : { limitKey }),
          ...(priority === undefined ? {} : { priority }),
        });
        return { runId, created, ...(replaced === undefined ? {} : { replaced }), again };
      }
      case "pause":
        await carillon.pause(this.#world.taskName(act.task));
        return {};
      case "resume":
        await carillon.resume(this.#world.taskName(act.task));
        return {};
      case "cancel": {
        const runId = await this.#runAt(act.run);
        return runId === undefined ? {} : { runId, outcome: await carillon.cancel(runId) };
      }
      case "rerun": {
        const runId = await this.#runAt(act.run);
        if (runId === undefined) return {};
        const store = await this.#store();
        const why = { author: "a user", reason: "again", nowMs: this.#world.now() };
        const made = await store.operations.rerun(runId, why);
        return { runId: made.runId, created: made.created };
      }
      case "lose":
        return this.#lose();
      case "decide": {
        const runId = await this.#runAt(act.run);
        if (runId === undefined) return {};
        await carillon.decide(runId, act.how);
        return { runId };
      }
      case "limit":
        await carillon.limitGroup(this.#world.groupName(act.group), act.runs);
        return {};
      case "edit":
        await this.#save(act.task, act.to);
        return {};
      case "calendar":
        await this.#setCalendar(act.holidays);
        return {};
    }
  }

  async #lose(): Promise<Partial<Done>> {
    const { runIds, atMs } = await this.#world.lose(
      this.#plans.flatMap((plans) => plans.slice(-1).map(({ plan }) => this.#optionsOf(plan))),
    );
    return { lost: runIds, fromMs: atMs - this.#beganMs };
  }

  async #runAt(place: number): Promise<number | undefined> {
    const store = await this.#store();
    const names = this.#names;
    const since = await store.runs.list({ sinceMs: this.#beganMs, limit: 10_000 });
    const runs = since.filter(({ task }) => names.includes(task));
    // Run numbers are drawn in blocks, so earlier scenarios influence their order. Creation time, task and slot are compared first.
    const order = (run: RunRecord) => [run.createdMs, run.taskId, run.slotMs ?? 0, run.runId] as const;
    runs.sort((a, b) => {
      const [left, right] = [order(a), order(b)];
      const differs = left.findIndex((value, i) => value !== right[i]);
      return differs < 0 ? 0 : (left[differs] as number) - (right[differs] as number);
    });
    return runs[place % Math.max(1, runs.length)]?.runId;
  }
}
