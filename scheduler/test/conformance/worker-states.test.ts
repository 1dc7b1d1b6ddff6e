import { afterEach, describe, expect, it } from "vitest";
import { type ClaimEvent, type ClaimState, claimEvents, claimStates, claimTable } from "../../src/claim.ts";
import type { Membership } from "../../src/coordination.ts";
import { Definitions } from "../../src/definitions.ts";
import type { Handler } from "../../src/handler.ts";
import { seeded } from "../../src/random.ts";
import type { ClaimedRun, ClaimRequest, ClaimStore, Pulse, Settlement, TaskStore } from "../../src/store.ts";
import { StoreClock } from "../../src/store-clock.ts";
import { defineTask, type TaskOptions } from "../../src/task.ts";
import { Worker } from "../../src/worker/worker.ts";
import { recordingLog, until } from "../support/store-stage.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

const startMs = Date.UTC(2030, 0, 1);

/** A worker on virtual time, before a store of one claim that answers when the test says so. */
class Bench {
  readonly clock = new VirtualClock(startMs);
  readonly log = recordingLog();
  readonly settled: Settlement[] = [];
  readonly reports: number[] = [];
  /** Answers to `settle`, withheld until the test gives them. */
  readonly answers: ((refused: boolean) => void)[] = [];
  readonly aborts: string[] = [];
  starts = 0;
  recalls: { runId: number; fence: number; kind: "cancel" | "withdraw"; why: string }[] = [];
  doubtMs = 0;
  finish: (value: unknown) => void = () => undefined;
  fail: (error: Error) => void = () => undefined;
  pulse: (nextReadyMs: number | null) => void = () => undefined;
  /** Asked for so far. */
  claims = 0;
  rejoin: (lost: number, next: number) => void = () => undefined;
  readonly run: ClaimedRun;
  readonly worker: Worker;
  /** What the store's book says this process has, when it comes back after losing its session. */
  adopted: ClaimedRun[] = [];
  /** Readings of that book, and claims, which the test answers; undefined: answered at once. */
  readings: ((failed?: Error) => void)[] | undefined;
  claiming: ((failed?: Error) => void)[] | undefined;
  /** What the next claim brings. */
  offers: ClaimedRun[];

  /** @param claiming where its claims wait for an answer, from the first one on */
  constructor(options: TaskOptions = {}, claiming?: Bench["claiming"]) {
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
        return { runs, nextDue: async () => null };
      },
      turn: async () => ({ runs: [], lastTaskId: 0 }),
      settle: (_session: number, settlements: Settlement[]) => {
        this.settled.push(...settlements);
        return new Promise<Set<number>>((resolve) => {
          this.answers.push((refused) => resolve(new Set(refused ? settlements.map(({ fence }) => fence) : [])));
        });
      },
      settleIn: async () => true,
      heldBy: () => this.#read(),
      adopt: () => this.#read(),
      recalls: async () => this.recalls,
      report: async (_session: number, reports: { fence: number }[]) =>
        void this.reports.push(...reports.map(({ fence }) => fence)),
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
        this.rejoin = listener;
      },
    } as unknown as Membership;
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
      ...{
        claims,
        membership,
        storeClock,
        handlerOf: () => handler,
        clock: this.clock,
        random: seeded(1),
        log: this.log.log,
      },
      definitions: new Definitions({ byIds: async () => [record] } as unknown as TaskStore),
      writeLogs: async () => undefined,
      ...{ groupIds: [1], concurrency: 10, claimAheadMs: 1_000 },
    });
  }

  /** The book as it stands when it is asked for, however late the answer comes. */
  async #read(): Promise<ClaimedRun[]> {
    const book = [...this.adopted];
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
afterEach(async () => {
  for (const bench of benches.splice(0)) {
    // Whatever state it is in: let the handler end, answer every verdict, and the worker stops.
    bench.finish(undefined);
    const stopping = bench.worker.stop(0);
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
});

async function into(state: ClaimState, options: TaskOptions = {}): Promise<Bench> {
  const bench = new Bench(options);
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

const recall = (bench: Bench, kind: "cancel" | "withdraw") => {
  bench.recalls = [{ runId: 10, fence: 100, kind, why: "asked" }];
  bench.worker.onSignal({ kind: "recall" });
};
/** Lets everything that is ready to run do so. */
const settleDown = () => new Promise((resolve) => setTimeout(resolve, 5));

describe("the claim table", () => {
  it("answers every event in every state", () => {
    expect(Object.keys(claimTable)).toEqual([...claimStates]);
    for (const state of claimStates) {
      expect(Object.keys(claimTable[state]), state).toEqual([...claimEvents]);
      for (const event of claimEvents) expect(claimStates).toContain(claimTable[state][event][0]);
    }
  });

  it("acts only on the way to another state, or to keep what it has; and what is gone stays gone", () => {
    for (const state of claimStates) {
      for (const event of claimEvents) {
        const [next, act] = claimTable[state][event];
        if (next === state) expect(["none", "keep"], `${state} + ${event}`).toContain(act);
        else expect(act, `${state} + ${event}`).not.toBe("none");
        if (state === "gone") expect(next).toBe("gone");
      }
    }
  });
});

/** What is seen from outside when the table's act is done, for each pair that can come about in a worker. */
const happens: Partial<Record<ClaimState, Partial<Record<ClaimEvent, (bench: Bench) => Promise<void> | void>>>> = {
  waiting: {
    due: (bench) => bench.clock.advance(500),
    cancel: (bench) => recall(bench, "cancel"),
    withdraw: (bench) => recall(bench, "withdraw"),
    "give back": (bench) => void bench.worker.stop(0),
    "session lost": (bench) => bench.rejoin(1, 2),
  },
  running: {
    returned: (bench) => bench.finish("done"),
    threw: (bench) => bench.fail(new Error("no")),
    timeout: (bench) => bench.clock.advance(10_000),
    cancel: (bench) => recall(bench, "cancel"),
    withdraw: (bench) => recall(bench, "withdraw"),
    "session lost": (bench) => bench.rejoin(1, 2),
  },
  ending: {
    returned: (bench) => bench.finish("done"),
    threw: (bench) => bench.fail(new Error("no")),
    cancel: (bench) => recall(bench, "cancel"),
    withdraw: (bench) => recall(bench, "withdraw"),
    "session lost": (bench) => bench.rejoin(1, 2),
  },
  settling: {
    cancel: (bench) => recall(bench, "cancel"),
    withdraw: (bench) => recall(bench, "withdraw"),
    timeout: (bench) => bench.clock.advance(10_000),
    "session lost": (bench) => bench.rejoin(1, 2),
    acknowledged: (bench) => bench.answers.shift()?.(false),
    refused: (bench) => bench.answers.shift()?.(true),
  },
  gone: {
    cancel: (bench) => recall(bench, "cancel"),
    withdraw: (bench) => recall(bench, "withdraw"),
    timeout: (bench) => bench.clock.advance(10_000),
    "session lost": (bench) => bench.rejoin(1, 2),
  },
};

describe("a worker follows the claim table:", () => {
  const pairs = claimStates.flatMap((state) =>
    Object.keys(happens[state] ?? {}).map((event) => [state, event as ClaimEvent] as const),
  );
  it.each(pairs)("%s + %s", async (state, event) => {
    const bench = await into(state);
    const before = {
      starts: bench.starts,
      aborts: bench.aborts.length,
      settled: bench.settled.length,
      reports: bench.reports.length,
    };
    await happens[state]?.[event]?.(bench);
    const [next, act] = claimTable[state][event];
    const expected = {
      starts: before.starts + (act === "start" ? 1 : 0),
      aborts: before.aborts + (act === "abort" ? 1 : 0),
      settled: before.settled + (act.startsWith("report") ? 1 : 0),
      held: next === "gone" ? 0 : 1,
    };
    const seen = () => ({
      starts: bench.starts,
      aborts: bench.aborts.length,
      settled: bench.settled.length,
      held: bench.worker.held,
    });
    await until(
      `${JSON.stringify(expected)}, not ${JSON.stringify(seen())}`,
      () => JSON.stringify(seen()) === JSON.stringify(expected),
    );
    await settleDown();
    expect(seen(), "and nothing more").toEqual(expected);
    if (next === "settling" && state === "settling") {
      // The verdict on its way is the only one: none waits behind it.
      bench.answers.shift()?.(false);
      await until("it is gone", () => bench.worker.held === 0);
      await settleDown();
      expect(bench.settled).toHaveLength(1);
    }
    if (act === "report cancelled") expect(bench.kinds()).toEqual(["cancelled"]);
    if (act === "report released") expect(bench.kinds()).toEqual(["released"]);
    if (act === "keep") expect(bench.reports).toEqual([100]);
    if (act === "report" && state === "running")
      expect(bench.kinds()).toEqual([event === "returned" ? "succeeded" : "failed"]);
  });

  it("nothing starts while the session is in doubt, and what runs is told when the grace is over", async () => {
    const waiting = await into("waiting");
    waiting.doubtMs = 1;
    waiting.clock.advance(600);
    expect(waiting.starts).toBe(0);
    expect(waiting.worker.held, "dropped").toBe(0);
    waiting.adopted = [waiting.run];
    waiting.doubtMs = 0;
    waiting.clock.advance(250);
    await until("its session lives on: the store's book has it still", () => {
      waiting.clock.advance(10);
      return waiting.starts === 1;
    });
    const short = await into("running");
    short.doubtMs = 1;
    short.clock.advance(250);
    expect(short.aborts, "the store does not know that it runs: it has no grace").toEqual(["SESSION_LOST"]);
    const running = await into("running");
    running.clock.advance(1_250);
    await until("the report", () => running.reports.length > 0);
    await settleDown();
    running.doubtMs = 600;
    running.clock.advance(250);
    expect(running.aborts).toEqual([]);
    running.doubtMs = 850;
    running.clock.advance(250);
    expect(running.aborts).toEqual(["SESSION_LOST"]);
  });

  it("a claim that the store still has for it after a lost session goes on", async () => {
    const bench = await into("running");
    bench.adopted = [bench.run];
    bench.rejoin(1, 2);
    await settleDown();
    expect(bench.aborts).toEqual([]);
    bench.finish("done");
    await until("the verdict", () => bench.settled.length === 1);
    expect(bench.kinds()).toEqual(["succeeded"]);
  });

  it.each(["a lost reply", "a lost session"])(
    "does not start a run again from a book that was read before the run ended, after %s",
    async (after) => {
      const bench = await into("running");
      bench.adopted = [bench.run];
      bench.readings = [];
      if (after === "a lost session") bench.rejoin(1, 2);
      else {
        bench.claiming = [];
        bench.worker.nudge(bench.worker.now());
        await until("a claim", () => bench.claiming?.length === 1);
        bench.claiming.shift()?.(new Error("the connection broke"));
        bench.claiming = undefined;
        await settleDown();
        bench.clock.advance(250);
      }
      await until("the book to be read", () => bench.readings?.length === 1);
      bench.finish("done");
      await until("the verdict", () => bench.settled.length === 1);
      bench.answers.shift()?.(false);
      await until("it is gone", () => bench.worker.held === 0);
      bench.readings.shift()?.();
      await settleDown();
      bench.clock.advance(1_000);
      await settleDown();
      expect(bench.starts, "started once").toBe(1);
      expect(bench.worker.held).toBe(0);
    },
  );

  it("what it claimed in the new session while the old one's claims were moved stays its own", async () => {
    const bench = await into("running");
    bench.adopted = [bench.run];
    bench.readings = [];
    bench.rejoin(1, 2);
    bench.offers = [{ ...bench.run, runId: 11, fence: 101 }];
    bench.worker.nudge(bench.worker.now());
    await until("the claim", () => bench.worker.held === 2);
    bench.readings.shift()?.();
    await settleDown();
    expect(bench.worker.held).toBe(2);
    expect(bench.aborts).toEqual([]);
    bench.clock.advance(10);
    expect(bench.starts).toBe(2);
  });

  it("does not start a run again from a claim's reply that came after the book had told of it and it had ended", async () => {
    const claiming: NonNullable<Bench["claiming"]> = [];
    const bench = new Bench({}, claiming);
    benches.push(bench);
    await until("the claim", () => claiming.length === 1);
    bench.claiming = undefined;
    bench.adopted = [bench.run];
    bench.rejoin(1, 2);
    await until("it is taken from the book", () => bench.worker.held === 1);
    bench.clock.advance(500);
    expect(bench.starts).toBe(1);
    bench.finish("done");
    await until("the verdict", () => bench.settled.length === 1);
    bench.answers.shift()?.(false);
    await until("it is gone", () => bench.worker.held === 0);
    claiming.shift()?.();
    await settleDown();
    bench.clock.advance(1_000);
    expect(bench.starts, "started once").toBe(1);
  });

  it("asks again only when a pulse tells of what it can claim: a signal that was lost costs a beat", async () => {
    const bench = await into("gone");
    await settleDown();
    bench.claims = 0;
    bench.clock.advance(10 * 60_000);
    bench.pulse(null);
    await settleDown();
    expect(bench.claims).toBe(0);
    bench.pulse(bench.worker.now() + 5_000);
    bench.clock.advance(3_990);
    await settleDown();
    expect(bench.claims, "not before the time to claim").toBe(0);
    bench.clock.advance(10);
    await until("the claim", () => bench.claims === 1);
    bench.pulse(bench.worker.now());
    await until("the next claim", () => bench.claims === 2);
  });

  it("a handler that never settles does not keep its worker from stopping", async () => {
    const bench = await into("running");
    bench.finish = () => undefined;
    let stopped = false;
    void bench.worker.stop(1_000).then(() => {
      stopped = true;
    });
    await settleDown();
    bench.clock.advance(1_000);
    await until("it is told", () => bench.aborts.length === 1);
    expect(bench.aborts).toEqual(["STOPPED"]);
    await settleDown();
    bench.clock.advance(29_999);
    await settleDown();
    expect([stopped, bench.settled.length]).toEqual([false, 0]);
    bench.clock.advance(1);
    await until("its claim ends as a lost worker's does", () => bench.kinds().includes("retry"));
    await until("the worker to stop", () => {
      for (const answer of bench.answers.splice(0)) answer(false);
      bench.clock.advance(100);
      return stopped;
    });
  });

  it("a handler that ignores its signal loses its claim after half a minute", async () => {
    const bench = await into("ending");
    bench.clock.advance(29_999);
    await settleDown();
    expect(bench.settled).toEqual([]);
    bench.clock.advance(1);
    await until("the verdict", () => bench.settled.length === 1);
    expect(bench.kinds()).toEqual(["failed"]);
    expect(bench.settled[0]?.verdict).toMatchObject({ error: expect.stringContaining("TIMEOUT") });
  });
});
