/**
 * carillon/testing: a whole Carillon (scheduler, worker, store) in a time that the test controls. It runs the production code on a real
 * PostgreSQL, in a schema of its own that is dropped afterwards: see docs/testing.md.
 */
import { randomBytes } from "node:crypto";
import { pause, unfakedClock } from "../base/clock.ts";
import { type Duration, parseDuration } from "../base/duration.ts";
import { CarillonError } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import { type Log, silentLog } from "../base/log.ts";
import { type Random, seeded } from "../base/random.ts";
import { type EmbeddedStore, openEmbedded } from "../embedded/index.ts";
import { Carillon } from "../library/carillon.ts";
import type { Handler, RunNotice } from "../run/handler.ts";
import type { Outcome } from "../run/run.ts";
import type { AttemptRecord, LogLine, RunRecord } from "../run/run-record.ts";
import type { CarillonOptions } from "../settings/settings.ts";
import { checkStoreDefined } from "../settings/store-given.ts";
import { realSurroundings, type Surroundings } from "../settings/surroundings.ts";
import type { Store } from "../store/store.ts";
import { firesBetween, timeOf } from "./fires.ts";
import { dropSchema, HeldUp } from "./schema.ts";
import { TimeTravel } from "./time-travel.ts";
import { TravelClock } from "./travel-clock.ts";
import { WatchedStore } from "./watched-store.ts";

export { firesBetween };

export interface TestTowerOptions
  extends Pick<CarillonOptions, "directory" | "concurrency" | "groups" | "commands" | "httpTasks" | "retention"> {
  /** Defines the tasks, like the program under test. */
  tasks(tower: Carillon): void | Promise<void>;
  /** The time at which the tower starts; default now. */
  now?: Date | string | number;
  /** A postgres:// URL, or "embedded" (the default). A schema is created there; `close` drops it. */
  store?: string;
  /**
   * How long, in real time, the tower's time stands still for a handler that waits for something outside (a file, another database); then
   * time goes on without the handler. Default 1 s.
   */
  patience?: Duration;
  /** The seed of random values, such as back-off delays. Default 1. */
  seed?: number;
  log?: Log;
}

/** The report of a run that has ended. */
export interface RunReport {
  runId: number;
  outcome: Outcome;
  result: Json;
  /** The error of the last attempt; null: the run succeeded. */
  error: { code?: string; message: string } | null;
  /** Number of attempts. */
  attempts: number;
  logs: LogLine[];
  /** The run's record from the store. */
  record: RunRecord;
  /** The attempts before the last one. */
  earlier: AttemptRecord[];
}

/** Slots are planned this far ahead, and again once a quarter of the horizon is used: see planner.ts. */
const horizonMs = 8_000;
const plannedAheadMs = 5_000;
/** Long, because the tower signals each change at once and needs no heartbeats for that: see time-travel.ts. */
const beatMs = 30_000;
/** Longer than any leap of the tower's time: see time-travel.ts. */
const trustedMs = 10 * 86_400_000;
/** Milliseconds of real time. */
const storeAnswerMs = 60_000;
const logLinesMost = 10_000;
const liveRunsMost = 10_000;
/** The interval at which the worker sends log lines. */
const logsAfterMs = 250;

/** @throws the errors of the tasks' definitions; OPTION_INVALID for `store: undefined`; STORE_…, EMBEDDED_… */
export async function testTower(options: TestTowerOptions): Promise<TestTower> {
  checkStoreDefined(options);
  const { store = "embedded", directory, log = silentLog } = options;
  const embedded =
    store === "embedded"
      ? await openEmbedded({ directory, create: true, log: (line) => log.info({}, line) })
      : undefined;
  const tower = new TestTower(options, embedded?.url ?? store, embedded);
  try {
    return await tower.open();
  } catch (error) {
    // The error of opening is more important than a later error of closing, which is ignored.
    await tower.close().catch(() => undefined);
    throw error;
  }
}

export class TestTower {
  /** The Carillon under test: the test enqueues, pauses and cancels through it, like the program. */
  readonly carillon: Carillon;
  readonly #options: TestTowerOptions;
  readonly #schema = `carillon_test_${randomBytes(6).toString("hex")}`;
  readonly #clock: TravelClock;
  readonly #heldUp: HeldUp;
  #random: Random;
  readonly #notices: RunNotice[] = [];
  readonly #fakes = new Map<string, Handler>();
  readonly #url: string;
  readonly #embedded: EmbeddedStore | undefined;
  #real: Store | undefined;
  #watched: WatchedStore | undefined;
  #travel: TimeTravel | undefined;
  #sessionId = 0;
  #busy = false;
  #closed: Promise<void> | undefined;

  /** @internal `testTower` makes it. */
  constructor(options: TestTowerOptions, url: string, embedded: EmbeddedStore | undefined) {
    const { tasks: _, patience: __, now, seed = 1, log = silentLog, directory: ___, ...rest } = options;
    this.#url = url;
    this.#heldUp = new HeldUp(url, this.#schema);
    this.#embedded = embedded;
    this.#options = options;
    this.#clock = new TravelClock(now === undefined ? realSurroundings.clock.wall() : Math.round(timeOf(now)));
    this.#random = seeded(seed);
    const surroundings: Surroundings = {
      ...realSurroundings,
      clock: this.#clock,
      callersClock: unfakedClock,
      random: { next: () => this.#random.next() },
      // Runs are claimed only when they are due, so that the store's answer about coming events is complete.
      settings: { sessionTimeoutMs: trustedMs, beatMs, horizonMs, claimAheadMs: 0, drainMs: 0 },
      // A month of the tower's time passes in a moment, and creating partitions for each day would take longer than everything else. The
      // timeout is long for the sake of busy machines: a query that timed out would be repeated at a later time of the tower.
      postgres: { ...realSurroundings.postgres, partitions: "one", answerMs: storeAnswerMs },
      handlerFor: (task) => this.#fakes.get(task),
      gathers: (more) => this.#travel?.gathers(more),
      around: async (real) => {
        this.#real = real;
        this.#watched = new WatchedStore(real, this.#clock);
        return this.#watched.store;
      },
    };
    const own = { schema: this.#schema, name: "tower", handleSignals: false, failFast: true, log };
    this.carillon = new Carillon({ ...rest, ...own, store: url }, surroundings);
  }

  /** @internal `testTower` calls it. */
  async open(): Promise<this> {
    await this.#options.tasks(this.carillon);
    const { store } = await this.carillon.open();
    const watched = this.#watched as WatchedStore;
    this.#travel = new TimeTravel({
      clock: this.#clock,
      watched,
      sessionId: () => this.#sessionId,
      heldUp: () => this.#heldUp.count(),
      aheadMs: plannedAheadMs,
      patienceMs: parseDuration(this.#options.patience ?? "1s", "patience", 0),
    });
    this.carillon.onRun((notice) => {
      this.#notices.push(notice);
      this.#travel?.onRun(notice);
    });
    await this.carillon.start();
    const { members } = await store.sessions.members();
    this.#sessionId = members.find(({ node }) => node === this.carillon.node)?.sessionId ?? 0;
    await this.#travel.settle();
    return this;
  }

  /** @internal From now on random values depend only on this seed, not on earlier ones. */
  reseed(seed: number): void {
    this.#random = seeded(seed);
  }

  /** The present time of the tower. */
  now(): Date {
    return new Date(this.#clock.wall());
  }

  /** Moves time on by this duration, through all events on the way. @returns the runs that ended, in that order */
  advance(by: Duration): Promise<RunNotice[]> {
    return this.advanceTo(this.#clock.wall() + parseDuration(by, "advance"));
  }

  /** As `advance`, up to a given time. @throws OPTION_INVALID if the time is in the past */
  async advanceTo(time: Date | string | number): Promise<RunNotice[]> {
    const endMs = timeOf(time);
    if (endMs < this.#clock.wall())
      throw new CarillonError("OPTION_INVALID", `${new Date(endMs).toISOString()} is over: time goes one way`, {
        hint: "Begin earlier: `testTower({ now })`.",
      });
    const from = this.#notices.length;
    await this.#alone((travel) => travel.travel(endMs));
    return this.#notices.slice(from).filter(({ kind }) => kind === "ended");
  }

  /**
   * Moves time until no run waits or runs: executes all enqueued runs, however late they are due, with the runs that follow them, retries
   * and their back-off. Slots that fall due meanwhile fire; later slots do not.
   * @param within a limit in the tower's time; default 1 day @returns the runs that ended, in that order
   * @throws TIMEOUT if a run has not ended by then
   */
  async runUntilIdle({ within = "1d" }: { within?: Duration } = {}): Promise<RunNotice[]> {
    const store = this.#real as Store;
    const from = this.#notices.length;
    const endMs = this.#clock.wall() + parseDuration(within, "within");
    let left: RunRecord | undefined;
    const isIdle = async () => {
      const live = await store.runs.list({ states: ["ready", "held", "claimed"], limit: liveRunsMost });
      left = live.find(({ source, attempt, dueMs }) => source !== "slot" || attempt > 0 || dueMs <= this.#clock.wall());
      return left === undefined;
    };
    if (await this.#alone((travel) => travel.travel(endMs, isIdle)))
      return this.#notices.slice(from).filter(({ kind }) => kind === "ended");
    throw new CarillonError(
      "TIMEOUT",
      `run ${left?.runId} of ${left?.task} is ${left?.state} after ${within} of the tower's time`,
      { hint: "It waits for what does not come, or needs longer: `runUntilIdle({ within })`." },
    );
  }

  /**
   * Runs of this task that start from now on call `handler` instead of the task's own handler, command or HTTP request.
   * @returns a function that undoes this @throws TASK_UNKNOWN
   */
  async fake<Payload = never>(task: string, handler: Handler<Payload>): Promise<() => void> {
    await (this.#real as Store).tasks.byName(task);
    this.#fakes.set(task, handler as Handler);
    return () => {
      if (this.#fakes.get(task) === handler) this.#fakes.delete(task);
    };
  }

  /**
   * Runs the task now, and moves time until that run has ended, through its retries, their back-off and its timeout.
   * @param within a limit in the tower's time; default 1 day
   * @throws TIMEOUT if the run has not ended by then; TASK_UNKNOWN, PAYLOAD_…
   */
  async run(task: string, payload?: unknown, { within = "1d" }: { within?: Duration } = {}): Promise<RunReport> {
    const watched = this.#watched as WatchedStore;
    watched.keepsAll = true;
    try {
      return await this.#report(task, payload, within);
    } finally {
      watched.keepsAll = false;
    }
  }

  async #report(task: string, payload: unknown, within: Duration): Promise<RunReport> {
    const { runId } = await this.carillon.run(task, payload);
    const store = this.#real as Store;
    const endMs = this.#clock.wall() + parseDuration(within, "within");
    const find = () => store.runs.find(runId);
    const hasEnded = await this.#alone(async (travel) => {
      const ended = await travel.travel(endMs, async () => (await find()).endedMs !== null);
      if (ended) await travel.travel(this.#clock.wall() + logsAfterMs);
      return ended;
    });
    const record = await find();
    if (!hasEnded) {
      throw new CarillonError(
        "TIMEOUT",
        `run ${runId} of ${task} is ${record.state} after ${within} of the tower's time`,
        {
          hint: "It waits for what does not come, or needs longer: `run(task, payload, { within })`.",
        },
      );
    }
    return {
      runId,
      outcome: record.state as Outcome,
      result: record.result,
      attempts: record.attempt,
      error: record.error as RunReport["error"],
      logs: await store.runs.logs(runId, logLinesMost),
      record,
      earlier: await store.runs.attempts(runId),
    };
  }

  /** For handlers that wait: sleeps in the tower's time, not in the test's. Ends early when the signal aborts. */
  async sleep(time: Duration, signal?: AbortSignal): Promise<void> {
    await this.#travel?.sleep(parseDuration(time, "sleep"), signal);
  }

  /** Stops the tower, and removes everything that it created. Handlers that still run are aborted. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    let stopped = false;
    const stopping = this.carillon.stop().finally(() => {
      stopped = true;
    });
    // The Carillon's stop waits for the tower's time, which only this loop moves now.
    while (!stopped) {
      await Promise.race([stopping, this.#watched?.answered()]);
      await Promise.race([stopping, pause(unfakedClock, 1)]);
      if (!stopped) this.#clock.moveTo(this.#clock.nextMs ?? this.#clock.wall());
    }
    await stopping;
    await this.#heldUp.close();
    await dropSchema(this.#url, this.#schema);
    await this.#embedded?.release();
  }

  /** Excludes concurrent moves of time, which would interfere with each other. */
  async #alone<T>(work: (travel: TimeTravel) => Promise<T>): Promise<T> {
    if (this.#closed || this.#travel === undefined)
      throw new CarillonError("STOPPED", "this test tower has been closed", { hint: "Make a new one." });
    if (this.#busy)
      throw new CarillonError("OPTION_INVALID", "time is being moved already", {
        hint: "Await one `advance` or `run` before the next; beside them, use `tower.carillon`.",
      });
    this.#busy = true;
    try {
      return await work(this.#travel);
    } finally {
      this.#busy = false;
    }
  }
}
