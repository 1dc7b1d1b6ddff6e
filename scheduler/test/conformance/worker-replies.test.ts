import { afterEach, describe, expect, it } from "vitest";
import { until } from "../support/store-stage.ts";
import { asked, into, settleDown, stopBenches } from "../support/worker-bench.ts";

afterEach(stopBenches);

// Tests of replies that arrive late or never while sessions are lost. A run that has started must not start again, and no run may start
// under a claim that was taken back.

it("a run continues if the store moved its claim to the new session after a lost one", async () => {
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
  "does not restart a run from a claim sync that was read before the run ended, after %s",
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

it("a run claimed in the new session while the old session's claims are moved stays claimed", async () => {
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

it("does not restart a run from a late claim reply after the claim sync listed it and it ended", async () => {
  const { bench, reply } = await asked("a claim");
  bench.adopted = [bench.run];
  bench.rejoin(1, 2);
  await until("it is taken from the book", () => bench.worker.held === 1);
  bench.clock.advance(500);
  expect(bench.starts).toBe(1);
  bench.finish("done");
  await until("the verdict", () => bench.settled.length === 1);
  bench.answers.shift()?.(false);
  await until("it is gone", () => bench.worker.held === 0);
  reply();
  await settleDown();
  bench.clock.advance(1_000);
  expect(bench.starts, "started once").toBe(1);
});

it("finds a claim that the store executed long after it was given up, with one of the next heartbeats", async () => {
  const { bench, reply } = await asked("a reading of the book");
  bench.adopted = [];
  reply();
  await settleDown();
  for (const beats of [1, 2, 4, 8]) {
    for (let i = 1; i < beats; i++) bench.pulse(null);
    await settleDown();
    expect(bench.readings, "not yet").toHaveLength(0);
    bench.pulse(null);
    await until("the book to be read again", () => bench.readings?.length === 1);
    // The reading of the last round is answered after the loop.
    if (beats === 8) break;
    bench.readings?.shift()?.();
    await settleDown();
  }
  bench.readings?.shift()?.();
  await settleDown();
  bench.adopted = [bench.run];
  for (let i = 0; i < 16; i++) bench.pulse(null);
  await until("the book to be read again", () => bench.readings?.length === 1);
  bench.readings?.shift()?.();
  await until("it is held", () => bench.worker.held === 1);
  bench.clock.advance(500);
  expect(bench.starts).toBe(1);
});

it("does not request a claim sync with its heartbeats if no reply was ever lost", async () => {
  const bench = await into("waiting");
  bench.readings = [];
  for (let i = 0; i < 100; i++) bench.pulse(null);
  await settleDown();
  expect(bench.readings).toHaveLength(0);
});

it("keeps a verdict that the store refused for a while, and does not restart its run from the claim sync", async () => {
  const bench = await into("settling");
  bench.adopted = [bench.run];
  bench.answers.shift()?.(new Error("canceling statement due to statement timeout"));
  await settleDown();
  expect(bench.worker.held).toBe(1);
  bench.claiming = [];
  bench.worker.nudge(bench.worker.now());
  await until("a claim", () => bench.claiming?.length === 1);
  bench.claiming.shift()?.(new Error("the connection broke"));
  bench.claiming = undefined;
  await settleDown();
  for (let tries = 2; tries < 4; tries++) {
    bench.clock.advance(2_000);
    await until("it to be tried again", () => bench.settled.length === tries);
    bench.answers.shift()?.(tries < 3 ? new Error("permission denied") : false);
    await settleDown();
  }
  await until("it is gone", () => bench.worker.held === 0);
  expect(bench.starts).toBe(1);
  expect(bench.kinds()).toEqual(["succeeded", "succeeded", "succeeded"]);
});

it("abandons a verdict that the store still refuses at the stop, and waits for nothing afterwards", async () => {
  const bench = await into("settling");
  bench.answers.shift()?.(new Error("permission denied"));
  await settleDown();
  const stopping = bench.worker.stop(30_000, 250);
  await until("its last try", () => bench.settled.length === 2);
  bench.answers.shift()?.(new Error("permission denied"));
  await stopping;
  bench.clock.advance(120_000);
  await settleDown();
  expect(bench.settled).toHaveLength(2);
  expect(bench.log.lines.map(({ message }) => message)).toContain("a verdict could not be written");
});

it("keeps claiming despite a verdict that the store refuses", async () => {
  const bench = await into("settling", {}, 1);
  bench.answers.shift()?.(new Error("permission denied"));
  await settleDown();
  bench.offers = [{ ...bench.run, runId: 11, fence: 101 }];
  bench.worker.nudge(bench.worker.now());
  await until("another", () => bench.worker.held === 2);
});

describe.each(["a claim", "a reading of the book"] as const)("a late reply of %s", (what) => {
  it("starts nothing if its session was lost before it arrived, and its runs were taken back", async () => {
    const { bench, reply } = await asked(what);
    bench.adopted = [];
    bench.readings = undefined;
    bench.rejoin(1, 2);
    await until("the claims to be moved", () => bench.log.lines.some(({ message }) => /took over/.test(message)));
    reply();
    await settleDown();
    bench.clock.advance(1_000);
    await settleDown();
    expect({ held: bench.worker.held, starts: bench.starts }).toEqual({ held: 0, starts: 0 });
  });

  it("starts nothing while the session is in doubt, until its remaining claims are known", async () => {
    const { bench, reply } = await asked(what);
    bench.doubtMs = 1;
    reply();
    await until("it is held", () => bench.worker.held === 1);
    bench.adopted = [];
    bench.readings = [];
    bench.doubtMs = 0;
    bench.rejoin(1, 2);
    await until("the book to be asked for", () => bench.readings?.length === 1);
    bench.clock.advance(1_000);
    await settleDown();
    expect(bench.starts, "while they are moved").toBe(0);
    bench.readings.shift()?.();
    await until("it is dropped", () => bench.worker.held === 0);
    bench.clock.advance(1_000);
    await settleDown();
    expect(bench.starts).toBe(0);
  });
});

it("takes no claims for a session that is lost as well, once these were moved on", async () => {
  const bench = await into("waiting");
  bench.adopted = [bench.run];
  bench.readings = [];
  bench.rejoin(1, 2);
  await until("the first moving", () => bench.readings?.length === 1);
  bench.adopted = [];
  bench.rejoin(2, 3);
  await until("the second moving", () => bench.readings?.length === 2);
  bench.readings.pop()?.();
  await until("it is dropped", () => bench.worker.held === 0);
  bench.readings.pop()?.();
  await settleDown();
  bench.clock.advance(1_000);
  await settleDown();
  expect({ held: bench.worker.held, starts: bench.starts }).toEqual({ held: 0, starts: 0 });
});

it.each(["waiting", "running"] as const)(
  "continues runs that were %s if the reply about moving a lost session's claims is lost",
  async (state) => {
    const bench = await into(state);
    bench.clock.advance(100);
    bench.adopted = [bench.run];
    const readings: NonNullable<(typeof bench)["readings"]> = [];
    bench.readings = readings;
    bench.rejoin(1, 2);
    await until("the book to be asked for", () => readings.length === 1);
    bench.readings = undefined;
    readings.shift()?.(new Error("the connection broke"));
    // Time advances in small steps, so that the worker's periodic check reads the claims before the worker tries to move them again.
    for (let passedMs = 0; passedMs < 1_000; passedMs += 50) {
      await settleDown();
      bench.clock.advance(50);
    }
    await until("its only start", () => bench.starts === 1);
    expect({ held: bench.worker.held, aborts: bench.aborts }).toEqual({ held: 1, aborts: [] });
  },
);

it("starts nothing while a lost session's claims are moved, and the remaining ones afterwards", async () => {
  const bench = await into("waiting");
  bench.adopted = [bench.run];
  bench.readings = [];
  bench.rejoin(1, 2);
  await until("the book to be asked for", () => bench.readings?.length === 1);
  bench.clock.advance(1_000);
  await settleDown();
  expect(bench.starts, "while they are moved").toBe(0);
  bench.readings.shift()?.();
  await until("its start", () => bench.starts === 1);
});
