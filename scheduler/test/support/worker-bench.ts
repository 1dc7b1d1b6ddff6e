import { expect } from "vitest";
import { seeded } from "../../src/base/random.ts";
import type { Membership } from "../../src/cluster/membership.ts";
import type { Pulse } from "../../src/cluster/session-store.ts";
import type { ClaimState } from "../../src/run/claim.ts";
import type { ClaimedRun, ClaimRequest, ClaimStore, RoomElsewhere, Settlement } from "../../src/run/claim-store.ts";
import type { Handler } from "../../src/run/handler.ts";
import { Definitions } from "../../src/store/definitions.ts";
import { StoreClock } from "../../src/store/store-clock.ts";
import { defineTask, type TaskOptions } from "../../src/task/task.ts";
import type { TaskStore } from "../../src/task/task-store.ts";
import { Worker } from "../../src/worker/worker.ts";
import { recordingLog, until } from "./store-stage.ts";
import { VirtualClock } from "./virtual-clock.ts";

const startMs = Date.UTC(2030, 0, 1);

/**
 * A worker in virtual time with a fake store that first offers one run. The store answers `settle` only when the test says so; it
 * answers claim requests and reads of its claims at once unless the test asks to control them too.
 */
export class Bench {
  readonly clock = new VirtualClock(startMs);
  readonly log = recordingLog();
  readonly settled: Settlement[] = [];
  readonly reports: number[] = [];
  /** Functions that answer the open calls of `settle`. */
  readonly answers: ((refused: boolean | Error) => void)[] = [];
  readonly aborts: string[] = [];
  starts = 0;
  recalls: { runId: number; fence: number; kind: "cancel" | "withdraw"; why: string }[] = [];
  doubtMs = 0;
  finish: (value: unknown) => void = () => undefined;
  fail: (error: Error) => void = () => undefined;
  pulse: (nextReadyMs: number | null) => void = () => undefined;
  /** The number of claim requests so far. */
  claims = 0;
  rejoin: (lost: number, next: number) => void = () => undefined;
  readonly run: ClaimedRun;
  readonly worker: Worker;
  /** The claims of this process that the store returns when the process reads its claims or moves them to a new session. */
  adopted: ClaimedRun[] = [];
  /** The lost sessions whose claims were moved to a new session. */
  readonly #moved = new Set<number>();
  /**
   * Functions that answer the open reads of the store's claims (`readings`) and the open claim requests (`claiming`); undefined:
   * the store answers at once.
   */
  readings: ((failed?: Error) => void)[] | undefined;
  claiming: ((failed?: Error) => void)[] | undefined;
  /** The runs that the next claim returns. */
  offers: ClaimedRun[];

  /** `room`: the free slots of other workers that the store reports; `asked`: how often the worker has queried them. */
  room: RoomElsewhere[] = [];
  asked = 0;

  /** The due time of the next run that a claim leaves in the store; null: none. */
  nextDueMs: number | null = null;

  /** @param claiming if given, claim requests wait in this list for the test's answer, from the first one on */
  constructor(options: TaskOptions = {}, claiming?: Bench["claiming"], concurrency = 10) {
    this.claiming = claiming;
    const definition = defineTask("t", { timeout: "10s", grace: "1s", ...options });
    const record = {
      taskId: 1,
      name: "t",
      version: 1,
      definition,
      groupId: 1,
      paused: null,
      changedMs: 0,
      nextSlotMs: null,
    };
    const plain = { version: 1, attempt: 1, slotMs: null, key: null, payload: null, priority: 5, linked: false };
    this.run = { runId: 10, taskId: 1, fence: 100, dueMs: startMs + 500, ...plain };
    this.offers = [this.run];
    const claims = {
      claim: async (_request: ClaimRequest) => {
        this.claims++;
        const runs = this.offers.splice(0);
        await this.#answered(this.claiming);
        return { runs, nextDue: async () => this.nextDueMs };
      },
      turn: async () => ({ runs: [], lastTaskId: 0 }),
      coming: async () => ({ counts: [], nextMs: null }),
      settle: (_session: number, settlements: Settlement[]) => {
        this.settled.push(...settlements);
        return new Promise<Set<number>>((resolve, reject) => {
          this.answers.push((refused) =>
            refused instanceof Error
              ? reject(refused)
              : resolve(new Set(refused ? settlements.map(({ fence }) => fence) : [])),
          );
        });
      },
      settleIn: async () => true,
      heldBy: () => this.#read(),
      adopt: (lost: number) => this.#adopt(lost),
      roomElsewhere: async () => {
        this.asked++;
        return this.room;
      },
      recalls: async () => this.recalls,
      report: async (_session: number, reports: { fence: number }[]) => {
        const fences = reports.map(({ fence }) => fence);
        this.reports.push(...fences);
        return new Set(fences);
      },
      reclaim: async () => [],
    } satisfies ClaimStore;
    const membership = {
      node: "n",
      sessionId: 1,
      trusted: () => this.doubtMs === 0,
      doubtMs: () => this.doubtMs,
      onPulse: (listener: (pulse: Pulse) => void) => {
        this.pulse = (nextReadyMs) => listener({ nextReadyMs } as Pulse);
      },
      onRejoin: (listener: (lost: number, next: number) => void) => {
        this.rejoin = (lost, next) => {
          membership.sessionId = next;
          listener(lost, next);
        };
      },
    } as unknown as Membership & { sessionId: number };
    const handler: Handler = (run) => {
      this.starts++;
      run.signal.addEventListener("abort", () => this.aborts.push(run.signal.reason.code));
      return new Promise((resolve, reject) => {
        this.finish = resolve;
        this.fail = reject;
      });
    };
    const storeClock = new StoreClock(this.clock);
    this.worker = new Worker({
      claims,
      membership,
      storeClock,
      handlerOf: () => handler,
      clock: this.clock,
      random: seeded(1),
      log: this.log.log,
      definitions: new Definitions({ byIds: async () => [record] } as unknown as TaskStore),
      writeLogs: async () => undefined,
      groupIds: [1],
      concurrency,
      claimAheadMs: 1_000,
    });
  }

  /** Returns the store's claims at the time of the call, even if the reply comes later. */
  async #read(): Promise<ClaimedRun[]> {
    return await this.#later([...this.adopted]);
  }

  /** Moves the claims of a lost session to the new one. A second call finds no claims, even if the reply to the first was lost. */
  async #adopt(lost: number): Promise<ClaimedRun[]> {
    const book = this.#moved.has(lost) ? [] : [...this.adopted];
    this.#moved.add(lost);
    return await this.#later(book);
  }

  async #later(book: ClaimedRun[]): Promise<ClaimedRun[]> {
    await this.#answered(this.readings);
    return book;
  }

  async #answered(by: ((failed?: Error) => void)[] | undefined): Promise<void> {
    if (by) await new Promise<void>((resolve, reject) => by.push((failed) => (failed ? reject(failed) : resolve())));
  }

  kinds(): string[] {
    return this.settled.map(({ verdict }) => (verdict.kind === "ended" ? verdict.outcome : verdict.kind));
  }
}

const benches: Bench[] = [];

/** Stops all benches in any state: their handlers end, every verdict is answered, and the workers stop. */
export async function stopBenches(): Promise<void> {
  for (const bench of benches.splice(0)) {
    bench.finish(undefined);
    const stopping = bench.worker.stop(0, 250);
    let stopped = false;
    void stopping.then(() => {
      stopped = true;
    });
    await until("the worker to stop", () => {
      for (const answer of bench.answers.splice(0)) answer(false);
      bench.finish(undefined);
      bench.clock.advance(1_000);
      return stopped;
    });
  }
}

export async function into(state: ClaimState, options: TaskOptions = {}, concurrency?: number): Promise<Bench> {
  const bench = new Bench(options, undefined, concurrency);
  benches.push(bench);
  await until("the claim", () => bench.worker.held === 1);
  if (state === "waiting") return bench;
  bench.clock.advance(500);
  expect(bench.starts).toBe(1);
  if (state === "running") return bench;
  if (state === "ending") {
    bench.clock.advance(10_000);
    expect(bench.aborts).toEqual(["TIMEOUT"]);
    return bench;
  }
  bench.finish("done");
  await until("the verdict", () => bench.settled.length === 1);
  if (state === "gone") {
    bench.answers.shift()?.(false);
    await until("it is gone", () => bench.worker.held === 0);
  }
  return bench;
}

/** Waits 5 ms, so that promises and timers that are ready have run. */
export const settleDown = () => new Promise((resolve) => setTimeout(resolve, 5));

/**
 * Makes a bench with a request whose reply the test controls: a claim, or the read of the store's claims after a claim's reply was lost.
 */
export async function asked(what: "a claim" | "a reading of the book"): Promise<{ bench: Bench; reply: () => void }> {
  const claiming: NonNullable<Bench["claiming"]> = [];
  const bench = new Bench({}, claiming);
  benches.push(bench);
  await until("the claim", () => claiming.length === 1);
  bench.claiming = undefined;
  const reply = () => void claiming.shift()?.();
  if (what === "a claim") return { bench, reply };
  const readings: NonNullable<Bench["readings"]> = [];
  bench.adopted = [bench.run];
  bench.readings = readings;
  claiming.shift()?.(new Error("the connection broke"));
  await settleDown();
  bench.clock.advance(250);
  await until("the reading", () => readings.length === 1);
  return { bench, reply: () => void readings.shift()?.() };
}
