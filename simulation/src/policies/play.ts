import { silentLog } from "../../../scheduler/src/base/log.ts";
import type { Carillon } from "../../../scheduler/src/library/carillon.ts";
import type { Run } from "../../../scheduler/src/run/handler.ts";
import { type TestTower, testTower } from "../../../scheduler/src/testing/testing.ts";
import { behave, type Place } from "./behave.ts";
import type { Notice } from "./notices.ts";
import { Player } from "./player.ts";
import { type Behaviour, groupCount, type Scenario } from "./scenario.ts";
import type { Seen } from "./seen.ts";
import type { World } from "./world.ts";

/** The number of scenarios that one tower plays, one after the other. */
export const placesOfTower = 50;
/** The most tasks that a scenario has. */
const tasksMost = 5;
const dayMs = 86_400_000;
/** Scenarios begin at multiples of a week. Each period divides a week, so a task's slots are the same at each of these times. */
const weekMs = 7 * dayMs;
const firstDayMs = Date.parse("2030-01-01T00:00:00Z");
const endlessMs = 90_000;

type TestHandler = (run: Run, does: Behaviour | null) => Promise<unknown>;

/**
 * A test tower that plays scenarios one after the other. A scenario's result depends only on its seed: it begins at a multiple of a week,
 * its task names are its own, and its random values follow from its seed. So it gives the same result alone and after other scenarios.
 */
export class PolicyStage {
  readonly #tower: TestTower;
  readonly #handlers: Map<string, TestHandler>;
  /** The log's warnings and errors since the current scenario began. */
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
    // The patience is long: with a short one, the tower's time would advance while a slow machine still works, and the result would change.
    const told: string[] = [];
    const tell = (fields: object, message: string) => void told.push(`${message} ${JSON.stringify(fields)}`);
    const log = { ...silentLog, warn: tell, error: tell };
    const tower = await testTower({ store: url, now: firstDayMs, concurrency, groups, patience: "10m", tasks, log });
    return new PolicyStage(tower, handlers, told);
  }

  /** The next position at which this tower has not played a scenario yet. */
  get nextPlace(): number {
    return this.#place + 1;
  }

  /** @param place a position not used before: from `nextPlace` to `placesOfTower` - 1 */
  async play(scenario: Scenario, place: number): Promise<Seen> {
    this.#place = place;
    const tower = this.#tower;
    const beganMs = firstDayMs + (Math.floor((tower.now().getTime() - firstDayMs) / weekMs) + 1) * weekMs;
    await tower.advanceTo(beganMs);
    tower.reseed(scenario.seed);
    const world = new TowerWorld(tower, place);
    for (let task = 0; task < scenario.tasks.length; task++)
      this.#handlers.set(nameOf(place, task), (run, does) => behave(world.place, task, run, does));
    this.#told.length = 0;
    try {
      const seen = await new Player(world, scenario, beganMs).play();
      return { ...seen, told: [...this.#told] };
    } finally {
      for (let task = 0; task < scenario.tasks.length; task++) await tower.carillon.remove(nameOf(place, task));
      // Time advances until the handlers that the removal aborts have ended.
      await tower.advance(endlessMs + 60_000);
    }
  }

  close(): Promise<void> {
    return this.#tower.close();
  }
}

const nameOf = (place: number, task: number) => `p${place}-t${task}`;
/** All positions share the same groups, because each claim queries every group of its worker. A scenario removes its group limits. */
const groupName = (group: number) => `g${group}`;

/** The simulated time and the worker of a test tower, as the world of one scenario. */
class TowerWorld implements World {
  readonly calendar: string;
  readonly pace = { slackMs: 0, reactMs: 0 };
  /** In ms: long enough for ten queued slots, each with three attempts that end only when they are aborted. */
  readonly quietMs = 90 * 60_000;
  readonly #tower: TestTower;
  readonly #index: number;
  readonly #notices: Notice[] = [];

  constructor(tower: TestTower, index: number) {
    this.#tower = tower;
    this.#index = index;
    this.calendar = `p${index}-c`;
  }

  get carillon(): Carillon {
    return this.#tower.carillon;
  }

  get place(): Place {
    return {
      now: () => this.now(),
      sleep: (ms, signal) => this.#tower.sleep(ms, signal),
      record: (notice) => void this.#notices.push(notice),
      taskName: (task) => this.taskName(task),
      endlessMs,
    };
  }

  taskName(task: number): string {
    return nameOf(this.#index, task);
  }

  groupName(group: number): string {
    return groupName(group);
  }

  now(): number {
    return this.#tower.now().getTime();
  }

  async advanceTo(ms: number): Promise<void> {
    await this.#tower.advanceTo(ms);
  }

  async settle(): Promise<void> {
    await this.#tower.advanceTo(this.#tower.now());
  }

  /**
   * Moves all claims of the worker to a new session, ends this session, and reclaims the claims as after a real loss. The session counts
   * as silent for a day, which is longer than any grace. The worker itself continues.
   */
  async lose(): Promise<{ runIds: number[]; atMs: number }> {
    const { store } = await this.carillon.open();
    const nowMs = this.now();
    const { members } = await store.sessions.members();
    const own = members.find(({ node }) => node === this.carillon.node)?.sessionId ?? 0;
    const identity = { node: "silent", role: "worker", host: "", pid: 1, version: "", timeoutMs: 6_000 } as const;
    const silent = await store.sessions.open({ ...identity, capacity: 0 }, nowMs);
    if ("taken" in silent) throw new Error("the last silent worker has not ended");
    const claims = await store.claims.adopt(own, silent.sessionId);
    await store.sessions.end(silent.sessionId, null, nowMs, "silent");
    await store.claims.reclaim(silent.sessionId, dayMs, nowMs, claims.length + 1);
    this.#notices.push({ kind: "lost", fences: claims.map(({ fence }) => fence), atMs: nowMs, killed: false });
    return { runIds: claims.map(({ runId }) => runId), atMs: nowMs };
  }

  notices(): readonly Notice[] {
    return this.#notices;
  }
}
