import { afterEach, describe, expect, it } from "vitest";
import { type ClaimEvent, type ClaimState, claimEvents, claimStates, claimTable } from "../../src/run/claim.ts";
import { until } from "../support/store-stage.ts";
import { type Bench, into, settleDown, stopBenches } from "../support/worker-bench.ts";

afterEach(stopBenches);

const recall = (bench: Bench, kind: "cancel" | "withdraw") => {
  bench.recalls = [{ runId: 10, fence: 100, kind, why: "asked" }];
  bench.worker.onSignal({ kind: "recall" });
};
describe("the claim table", () => {
  it("defines every event in every state", () => {
    expect(Object.keys(claimTable)).toEqual([...claimStates]);
    for (const state of claimStates) {
      expect(Object.keys(claimTable[state]), state).toEqual([...claimEvents]);
      for (const event of claimEvents) expect(claimStates).toContain(claimTable[state][event][0]);
    }
  });

  it("acts only on a change of state, or to keep a claim; a claim that is gone stays gone", () => {
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

/** How each event is caused in each state in which it can occur in a worker. */
const happens: Partial<Record<ClaimState, Partial<Record<ClaimEvent, (bench: Bench) => Promise<void> | void>>>> = {
  waiting: {
    due: (bench) => bench.clock.advance(500),
    cancel: (bench) => recall(bench, "cancel"),
    withdraw: (bench) => recall(bench, "withdraw"),
    "give back": (bench) => void bench.worker.stop(0, 250),
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
      // The verdict under way is the only one; no second verdict may follow.
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

  it("no run starts while the session is in doubt, and running ones are aborted when the grace is over", async () => {
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

  it("claims again only when a heartbeat reports claimable runs: a lost signal costs one heartbeat", async () => {
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

  it("backs off when due runs cannot be claimed, as another transaction has locked them", async () => {
    const bench = await into("gone");
    bench.claims = 0;
    bench.nextDueMs = bench.worker.now();
    bench.worker.nudge(bench.worker.now());
    for (let passedMs = 0; passedMs < 2_000; passedMs += 20) {
      await settleDown();
      bench.clock.advance(20);
    }
    expect(bench.claims).toBeGreaterThan(8);
    expect(bench.claims).toBeLessThan(20);
  });

  it("claims nothing that it could not start: released runs are left to other workers until one of its own ends", async () => {
    const bench = await into("running", { timeout: "1h" }, 1);
    bench.offers.push({ ...bench.run, runId: 11, fence: 101 });
    bench.worker.nudge(bench.worker.now());
    await until("another to wait behind it", () => bench.worker.held === 2);
    await until("that to be given back", () => {
      bench.clock.advance(250);
      return bench.kinds().includes("released");
    });
    for (const answer of bench.answers.splice(0)) answer(false);
    await settleDown();
    bench.claims = 0;
    bench.worker.nudge(bench.worker.now());
    for (let passedMs = 0; passedMs < 60_000; passedMs += 250) {
      await settleDown();
      bench.clock.advance(250);
    }
    expect(bench.claims).toBe(0);
    bench.offers = [{ ...bench.run, runId: 11, fence: 102 }];
    bench.finish(null);
    await settleDown();
    expect([bench.claims, bench.starts], "at once").toEqual([1, 2]);
  });

  describe("passes on runs that it cannot start", () => {
    /** Starts a run in the worker's only slot, and makes the worker claim runs that wait behind it. */
    const behind = async (...runIds: number[]) => {
      const bench = await into("running", { timeout: "1h" }, 1);
      bench.offers.push(...runIds.map((runId) => ({ ...bench.run, runId, fence: 90 + runId })));
      bench.worker.nudge(bench.worker.now());
      await until("them to wait behind it", () => bench.worker.held === 1 + runIds.length);
      return bench;
    };
    const pass = async (bench: Bench, ms: number) => {
      for (let passedMs = 0; passedMs < ms; passedMs += 50) {
        bench.clock.advance(50);
        await settleDown();
      }
    };
    const released = (bench: Bench) =>
      bench.settled.filter(({ verdict }) => verdict.kind === "released").map(({ runId }) => runId);

    it("as many as other workers have free slots for, and polls less and less often while there are none", async () => {
      const bench = await behind(11, 12, 13);
      await pass(bench, 450);
      expect([bench.asked, released(bench)], "after 50 and 200 ms").toEqual([2, []]);
      bench.room = [{ places: 1, taskIds: [2] }];
      await pass(bench, 50);
      expect([bench.asked, released(bench)], "for another task").toEqual([3, []]);
      bench.room.push({ places: 1, taskIds: [1] });
      await pass(bench, 50);
      expect([bench.asked, released(bench)]).toEqual([4, [11]]);
    });

    it("but keeps for a while a run that it passed on and claimed again", async () => {
      const bench = await behind(11);
      bench.room = [{ places: 1, taskIds: [1] }];
      await pass(bench, 50);
      expect(released(bench)).toEqual([11]);
      bench.offers = [12, 11].map((runId) => ({ ...bench.run, runId, fence: 100 + runId }));
      bench.finish(null);
      await until("12 to have the place, and 11 to wait behind it", () => {
        for (const answer of bench.answers.splice(0)) answer(false);
        return bench.starts === 2 && bench.worker.held === 2;
      });
      await pass(bench, 900);
      expect(released(bench)).toEqual([11]);
      await pass(bench, 400);
      expect(released(bench)).toEqual([11, 11]);
    });
  });

  it("a handler that never settles does not prevent its worker from stopping", async () => {
    const bench = await into("running");
    bench.finish = () => undefined;
    let stopped = false;
    void bench.worker.stop(1_000, 250).then(() => {
      stopped = true;
    });
    await settleDown();
    bench.clock.advance(1_000);
    await until("it is told", () => bench.aborts.length === 1);
    expect(bench.aborts).toEqual(["STOPPED"]);
    await settleDown();
    bench.clock.advance(124);
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

  it("a handler that ignores its signal loses its claim after 12 s, and its slot goes to the next run", async () => {
    const bench = await into("ending", {}, 1);
    bench.clock.advance(11_999);
    await settleDown();
    expect(bench.settled).toEqual([]);
    bench.clock.advance(1);
    await until("the verdict", () => bench.settled.length === 1);
    expect(bench.kinds()).toEqual(["failed"]);
    expect(bench.settled[0]?.verdict).toMatchObject({ error: expect.stringContaining("TIMEOUT") });
    bench.answers.shift()?.(false);
    bench.offers = [{ ...bench.run, runId: 11, fence: 101, dueMs: bench.clock.wall() }];
    bench.worker.nudge(bench.clock.wall());
    await until("the next run to start", () => {
      bench.clock.advance(250);
      return bench.starts === 2;
    });
  });
});
