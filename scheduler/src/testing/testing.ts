/**
 * The module carillon/testing: a *test tower*, which is a whole Carillon (scheduler, worker, store) whose time the test controls. It runs
 * the production code on a real PostgreSQL, in its own schema, which is dropped afterwards: see docs/tasks/testing.md.
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
  /** Defines the tasks on the tower's Carillon, as the program under test does. */
  tasks(tower: Carillon): void | Promise<void>;
  /** The time at which the tower starts; default: the present time. */
  now?: Date | string | number;
  /** A postgres:// URL, or "embedded" (default). The tower creates a schema there, and `close` drops it. */
  store?: string;
  /**
   * How long, in real time, the tower's time stops for a handler that waits for something outside the tower (a file, another database).
   * After that, time continues although the handler has not ended. Default "1s".
   */
  patience?: Duration;
  /** The seed of random values, for example of back-off delays; default 1. */
  seed?: number;
  log?: Log;
}

/** What `run` returns about a run that has ended. */
export interface RunReport {
  runId: number;
  outcome: Outcome;
  result: Json;
  /** The error of the last attempt; null if the run succeeded. */
  error: { code?: string; message: string } | null;
  /** The number of attempts. */
  attempts: number;
  logs: LogLine[];
  /** The run's record from the store. */
  record: RunRecord;
  /** The attempts before the last one. */
  earlier: AttemptRecord[];
}

/** How far ahead slots are planned, in ms. They are planned again once a quarter of this horizon has passed: see planner.ts. */
const horizonMs = 8_000;
const plannedAheadMs = 5_000;
/** The interval of heartbeats, in ms. It is long, because the tower signals each change at once: see time-travel.ts. */
const beatMs = 30_000;
/** The session timeout, in ms. It is longer than any leap of the tower's time: see time-travel.ts. */
const trustedMs = 10 * 86_400_000;
/** The time limit for an answer of the store, in milliseconds of real time. */
const storeAnswerMs = 60_000;
const logLinesMost = 10_000;
const liveRunsMost = 10_000;
/** The interval at which the worker sends log lines, in ms. */
const logsAfterMs = 250;

/** Creates a test tower. @throws the errors of the tasks' definitions; OPTION_INVALID for `store: undefined`; STORE_…, EMBEDDED_… */
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
    // An error of `close` is ignored, because the error of `open` is the cause.
    await tower.close().catch(() => undefined);
    throw error;
  }
}

export class TestTower {
  /** The Carillon under test, through which the test enqueues, pauses and cancels, as the program does. */
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

  /** @internal Use `testTower` to create a tower. */
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
      // Runs are claimed only when they are due, so that the store's answer about coming events includes all of them.
      settings: { sessionTimeoutMs: trustedMs, beatMs, horizonMs, claimAheadMs: 0, drainMs: 0 },
      // There is one partition, because a month of the tower's time may pass in a moment, and creating daily partitions would take
      // longer than everything else. The timeout is long because of busy machines: a query that timed out would be repeated at a later
      // time of the tower. Heartbeats always read the waiting runs anew (`readsBeside`): with an older answer, the tower's time would pass
      // a run that is due.
      postgres: { ...realSurroundings.postgres, partitions: "one", answerMs: storeAnswerMs, readsBeside: false },
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

  /** @internal Called by `testTower`. */
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

  /** @internal Restarts the random values with this seed, so that they do not depend on earlier ones. */
  reseed(seed: number): void {
    this.#random = seeded(seed);
  }

  /** Returns the present time of the tower. */
  now(): Date {
    return new Date(this.#clock.wall());
  }

  /** Moves the tower's time forward by this duration, from event to event. @returns the runs that ended, in the order of their ends */
  advance(by: Duration): Promise<RunNotice[]> {
    return this.advanceTo(this.#clock.wall() + parseDuration(by, "advance"));
  }

  /** Does the same as `advance` up to a given time. @throws OPTION_INVALID if the time is past or is being moved; STOPPED after `close` */
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
   * Moves the tower's time forward until no run is ready, held or claimed, except runs of future slots: executes all enqueued runs, however
   * far ahead they are due, with their retries and the runs that follow them. Slots that come due meanwhile fire; later slots do not.
   * @param within a limit in the tower's time; default "1d"
   * @returns the runs that ended, in the order of their ends
   * @throws TIMEOUT if a run has not ended within the limit
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
   * Makes runs of this task that start from now on call `handler` instead of the task's own handler, command or HTTP request.
   * @returns a function that undoes this
   * @throws TASK_UNKNOWN
   */
  async fake<Payload = never>(task: string, handler: Handler<Payload>): Promise<() => void> {
    await (this.#real as Store).tasks.byName(task);
    this.#fakes.set(task, handler as Handler);
    return () => {
      if (this.#fakes.get(task) === handler) this.#fakes.delete(task);
    };
  }

  /**
   * Enqueues a run of the task, due now, and moves the tower's time forward until this run has ended, including its retries and back-off.
   * @param within a limit in the tower's time; default "1d"
   * @throws TIMEOUT if the run has not ended within the limit; TASK_UNKNOWN, PAYLOAD_…
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

  /** Sleeps in the tower's time instead of real time, for handlers that wait. Resolves early if the signal aborts. */
  async sleep(time: Duration, signal?: AbortSignal): Promise<void> {
    await this.#travel?.sleep(parseDuration(time, "sleep"), signal);
  }

  /** Stops the tower and drops its schema. Handlers that are still running are aborted. */
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
    // Stopping the Carillon waits for timers in the tower's time, which only this loop moves now.
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

  /** Runs `work` only if no other call is moving time, because two concurrent moves would interfere with each other. */
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
