import { isCarillonError } from "../../../scheduler/src/base/errors.ts";
import { silentLog } from "../../../scheduler/src/base/log.ts";
import type { Carillon } from "../../../scheduler/src/library/carillon.ts";
import type { Run } from "../../../scheduler/src/run/handler.ts";
import type { RunRecord } from "../../../scheduler/src/run/run-record.ts";
import { defineTask } from "../../../scheduler/src/task/task.ts";
import { type TestTower, testTower } from "../../../scheduler/src/testing/testing.ts";
import { optionsOf } from "./options.ts";
import { readAll } from "./read.ts";
import { type Act, type Behaviour, groupCount, type Scenario, type TaskPlan } from "./scenario.ts";
import type { Done, Look, Seen, Try } from "./seen.ts";

/** Scenarios that one tower plays, each on a day of its own. */
export const placesOfTower = 50;
export const tasksMost = 5;
const dayMs = 86_400_000;
/** A whole number of each period that schedules have here, so that slots lie alike wherever a scenario is played. */
const weekMs = 7 * dayMs;
const firstDayMs = Date.parse("2030-01-01T00:00:00Z");
/** The handler runs until it is aborted, or for longer than any timeout and pause here. */
const endlessMs = 90_000;
/** Everything ends within this time after the last act: ten slots in a queue, each of three tries that end only when they are aborted. */
const quietWithinMs = 90 * 60_000;
const quietStepMs = 60_000;

type TestHandler = (run: Run, does: Behaviour | null) => Promise<unknown>;

/**
 * A test tower in which scenarios are played one after the other. Everything that a scenario can depend on follows from its seed: the day,
 * the numbers of its tasks, and its random values. So it plays alike alone and among others.
 */
export class PolicyStage {
  readonly #tower: TestTower;
  readonly #handlers: Map<string, TestHandler>;
  /** Warnings and errors of its log since the present scenario began. */
  readonly #told: string[];
  #place = -1;

  private constructor(tower: TestTower, handlers: Map<string, TestHandler>, told: string[]) {
    this.#tower = tower;
    this.#handlers = handlers;
    this.#told = told;
  }

  static async open(url: string, concurrency: number): Promise<PolicyStage> {
    const handlers = new Map<string, TestHandler>();
    const groups = ["default", ...Array.from({ length: groupCount }, (_, group) => groupName(group))];
    const tasks = (carillon: Carillon) => {
      for (let place = 0; place < placesOfTower; place++)
        for (let task = 0; task < tasksMost; task++) {
          const name = nameOf(place, task);
          carillon.task<Behaviour | null>(name, {}, (run, does) => handlers.get(name)?.(run, does));
        }
    };
    // The harness waits for a slow machine: time that goes on by itself would change the scenario.
    const told: string[] = [];
    const tell = (fields: object, message: string) => void told.push(`${message} ${JSON.stringify(fields)}`);
    const log = { ...silentLog, warn: tell, error: tell };
    const tower = await testTower({ store: url, now: firstDayMs, concurrency, groups, patience: "10m", tasks, log });
    return new PolicyStage(tower, handlers, told);
  }

  /** The first position at which a scenario can be played at once. */
  get nextPlace(): number {
    return this.#place + 1;
  }

  /** @param place not before `nextPlace`, and before `placesOfTower` */
  async play(scenario: Scenario, place: number): Promise<Seen> {
    this.#place = place;
    const tower = this.#tower;
    const beganMs = firstDayMs + (Math.floor((tower.now().getTime() - firstDayMs) / weekMs) + 1) * weekMs;
    await tower.advanceTo(beganMs);
    tower.reseed(scenario.seed);
    const player = new Player(tower, scenario, place, beganMs);
    for (let task = 0; task < scenario.tasks.length; task++)
      this.#handlers.set(nameOf(place, task), (run, does) => player.handle(task, run, does));
    this.#told.length = 0;
    try {
      const seen = await player.play();
      return { ...seen, told: [...this.#told] };
    } finally {
      await player.clear();
    }
  }

  close(): Promise<void> {
    return this.#tower.close();
  }
}

const nameOf = (place: number, task: number) => `p${place}-t${task}`;
const calendarName = (place: number) => `p${place}-c`;
/** All positions share the groups: each claim looks at every group of its worker. A scenario leaves none limited. */
const groupName = (group: number) => `g${group}`;

class Player {
  readonly #tower: TestTower;
  readonly #scenario: Scenario;
  readonly #beganMs: number;
  readonly #name: (task: number) => string;
  readonly #calendar: string;
  readonly #done: Done[] = [];
  readonly #looks: Look[] = [];
  readonly #tries: Try[] = [];
  /** By the fences of claims whose worker was declared dead. */
  readonly #lostMs = new Map<number, number>();
  #happened = 0;
  readonly #plans: { atMs: number; version: number; plan: TaskPlan }[][];

  constructor(tower: TestTower, scenario: Scenario, place: number, beganMs: number) {
    this.#tower = tower;
    this.#scenario = scenario;
    this.#beganMs = beganMs;
    this.#name = (task) => nameOf(place, task);
    this.#calendar = calendarName(place);
    this.#plans = scenario.tasks.map(() => []);
  }

  get #nowMs(): number {
    return this.#tower.now().getTime() - this.#beganMs;
  }

  get #names(): string[] {
    return this.#scenario.tasks.map((_, task) => this.#name(task));
  }

  async play(): Promise<Omit<Seen, "told">> {
    const { tasks, acts, holidays } = this.#scenario;
    if (holidays) await this.#setCalendar(holidays);
    // Saved in the order of their dependencies.
    for (const [task, plan] of tasks.entries()) await this.#save(task, plan);
    await this.#settle();
    for (const act of acts) await this.#act(act);
    for (const task of tasks.keys()) await this.#act({ op: "resume", task });
    for (let group = 0; group < groupCount; group++)
      if (acts.some((act) => act.op === "limit" && act.group === group))
        await this.#act({ op: "limit", group, runs: null });
    const healedMs = this.#nowMs;
    // Slots would never end: the schedules end now, and the runs so far are to end.
    for (const task of tasks.keys()) await this.#endSchedule(task);
    // A slot that a blackout delays runs at its end, and jitter may delay it further.
    const plans = this.#plans.flat().map(({ plan }) => plan);
    const jitterMs = Math.max(0, ...plans.map(({ every }) => every?.jitterMs ?? 0));
    const lastMs = Math.max(healedMs, ...plans.map(({ blackout }) => blackout?.toMs ?? 0)) + jitterMs;
    if (lastMs > healedMs && (await this.#look()) > 0) await this.#tower.advanceTo(this.#beganMs + lastMs);
    while (this.#nowMs < lastMs + quietWithinMs && (await this.#look()) > 0) {
      await this.#decideAll();
      await this.#tower.advance(quietStepMs);
    }
    await this.#look();
    const { store } = await this.#tower.carillon.open();
    const seen = await readAll(store, this.#names, this.#beganMs, this.#tower.now().getTime() + weekMs);
    return {
      ...seen,
      tasks: seen.tasks.map((task, i) => ({ ...task, plans: this.#plans[i] ?? [] })),
      scenario: this.#scenario,
      beganMs: this.#beganMs,
      done: this.#done,
      looks: this.#looks,
      tries: this.#tries,
      healedMs,
      endMs: this.#nowMs,
    };
  }

  /** Lets runs that still wait for a decision fail. */
  async #decideAll(): Promise<void> {
    for (const { runId, state } of this.#looks.at(-1)?.live ?? [])
      if (state === "undecided") {
        const [fromMs, act] = [this.#nowMs, { op: "decide", run: 0, how: "fail" } as const];
        await this.#tower.carillon.decide(runId, act.how);
        this.#done.push({ act, fromMs, toMs: fromMs, runId });
      }
  }

  async clear(): Promise<void> {
    for (const name of this.#names) await this.#tower.carillon.remove(name);
    // Aborted handlers end.
    await this.#tower.advance(endlessMs + 60_000);
  }

  async #save(task: number, plan: TaskPlan): Promise<void> {
    const options = optionsOf(plan, {
      group: groupName,
      task: this.#name,
      calendar: this.#calendar,
      beganMs: this.#beganMs,
    });
    await this.#tower.carillon.save(defineTask(this.#name(task), options));
    const { store } = await this.#tower.carillon.open();
    const { version } = await store.tasks.byName(this.#name(task));
    this.#plans[task]?.push({ atMs: this.#nowMs, version, plan });
  }

  async #setCalendar(holidays: readonly number[]): Promise<void> {
    const { store } = await this.#tower.carillon.open();
    const days = holidays.map((day) => new Date(this.#beganMs + day * dayMs).toISOString().slice(0, 10));
    const change = { author: "a user", reason: "other holidays", nowMs: this.#tower.now().getTime() };
    await store.calendars.set(this.#calendar, { zone: "UTC", weekend: [], holidays: days }, change);
  }

  async #endSchedule(task: number): Promise<void> {
    const { plan } = this.#plans[task]?.at(-1) ?? {};
    if (!plan?.every) return;
    const { every: _, calendar: __, ...still } = plan;
    await this.#save(task, still);
  }

  async #look(): Promise<number> {
    const { store } = await this.#tower.carillon.open();
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
    // Its consequences happen before the next act: otherwise the speed of the machine would decide what coincides.
    await this.#settle();
    if (act.op === "advance") await this.#look();
  }

  #settle(): Promise<unknown> {
    return this.#tower.advanceTo(this.#tower.now());
  }

  async #do(act: Act): Promise<Partial<Done>> {
    const { carillon } = this.#tower;
    switch (act.op) {
      case "advance":
        await this.#tower.advance(act.ms);
        return {};
      case "enqueue": {
        const { task, does, inMs, key, limitKey, priority } = act;
        const { runId, created } = await carillon.enqueue(this.#name(task), does, {
          ...(inMs === undefined ? {} : { in: inMs }),
          ...(key === undefined ? {} : { key }),
          ...(limitKey === undefined ? {} : { limitKey }),
          ...(priority === undefined ? {} : { priority }),
        });
        return { runId, created };
      }
      case "pause":
        await carillon.pause(this.#name(act.task));
        return {};
      case "resume":
        await carillon.resume(this.#name(act.task));
        return {};
      case "cancel": {
        const runId = await this.#runAt(act.run);
        return runId === undefined ? {} : { runId, outcome: await carillon.cancel(runId) };
      }
      case "rerun": {
        const runId = await this.#runAt(act.run);
        if (runId === undefined) return {};
        const { store } = await carillon.open();
        const why = { author: "a user", reason: "again", nowMs: this.#tower.now().getTime() };
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
        await carillon.limitGroup(groupName(act.group), act.runs);
        return {};
      case "edit":
        await this.#save(act.task, act.to);
        return {};
      case "calendar":
        await this.#setCalendar(act.holidays);
        return {};
    }
  }

  /** Loses the claims as in other takeovers: they become those of a session that has ended, and are reclaimed after the longest grace. */
  async #lose(): Promise<Partial<Done>> {
    const { carillon } = this.#tower;
    const { store } = await carillon.open();
    const nowMs = this.#tower.now().getTime();
    const { members } = await store.sessions.members();
    const own = members.find(({ node }) => node === carillon.node)?.sessionId ?? 0;
    const identity = { node: "silent", role: "worker", host: "", pid: 1, version: "", timeoutMs: 6_000 } as const;
    const silent = await store.sessions.open({ ...identity, capacity: 0 }, nowMs);
    if ("taken" in silent) throw new Error("the last silent worker has not ended");
    const claims = await store.claims.adopt(own, silent.sessionId);
    await store.sessions.end(silent.sessionId, null, nowMs, "silent");
    await store.claims.reclaim(silent.sessionId, dayMs, nowMs, claims.length + 1);
    const fences = new Set(claims.map(({ fence }) => fence));
    for (const fence of fences) this.#lostMs.set(fence, this.#nowMs);
    for (const one of this.#tries) if (fences.has(one.fence) && !one.end) one.lostMs = this.#nowMs;
    return { lost: claims.map(({ runId }) => runId) };
  }

  async #runAt(place: number): Promise<number | undefined> {
    const { store } = await this.#tower.carillon.open();
    const names = this.#names;
    const since = await store.runs.list({ sinceMs: this.#beganMs, limit: 10_000 });
    const runs = since.filter(({ task }) => names.includes(task));
    // Numbers are drawn in blocks, so earlier scenarios decide which of two kinds of runs has the higher ones.
    const order = (run: RunRecord) => [run.createdMs, run.taskId, run.slotMs ?? 0, run.runId] as const;
    runs.sort((a, b) => {
      const [left, right] = [order(a), order(b)];
      const differs = left.findIndex((value, i) => value !== right[i]);
      return differs < 0 ? 0 : (left[differs] as number) - (right[differs] as number);
    });
    return runs[place % Math.max(1, runs.length)]?.runId;
  }

  async handle(task: number, run: Run, given: Behaviour | null): Promise<unknown> {
    const does = given ?? { ms: 0, fails: 0 };
    const { signal, id: runId, attempt, fence } = run;
    const lostMs = this.#lostMs.get(fence);
    const lost = lostMs === undefined ? {} : { lostMs, afterLoss: true as const };
    const one: Try = { runId, task, attempt, fence, does, fromMs: this.#nowMs, began: this.#happened++, ...lost };
    this.#tries.push(one);
    signal.addEventListener("abort", () => {
      const { reason } = signal;
      one.abort = { atMs: this.#nowMs, code: isCarillonError(reason) ? reason.code : "" };
    });
    const end = (how: "returned" | "threw") => {
      one.end = { atMs: this.#nowMs, ended: this.#happened++, how };
    };
    try {
      const ms = does.endless ? endlessMs : does.ms;
      if (ms > 0) await this.#tower.sleep(ms, does.deaf ? undefined : signal);
      if (!does.deaf) signal.throwIfAborted();
      if (attempt <= does.fails) throw new Error(`try ${attempt} is to fail`);
      const { spawns } = does;
      const children = Array.from({ length: spawns?.children ?? 0 }, () => ({ task: this.#name(spawns?.task ?? 0) }));
      const onward = spawns ? await run.fanOut(children, { join: this.#name(spawns.join) }) : undefined;
      end("returned");
      return onward ?? { attempt };
    } catch (error) {
      end("threw");
      throw error;
    }
  }
}
