import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { Machine } from "../src/world/machine.ts";
import { Universe } from "../src/world/universe.ts";

const clocks = { rate: 1, baseMs: 0, wallAheadMs: 0 };

it("processes events by time, and events at one time in the order of their requests", async () => {
  const universe = new Universe();
  const seen: string[] = [];
  for (const [name, ms] of Object.entries({ late: 30, first: 10, second: 10, never: 20 })) {
    const takeBack = universe.after(ms, () => void seen.push(`${name} ${universe.nowMs}`));
    if (name === "never") takeBack();
  }
  await universe.run(100);
  expect(seen).toEqual(["first 10", "second 10", "late 30"]);
  expect(universe.nowMs).toBe(100);
});

it("finishes all work that an event starts, including its promises, before the next event", async () => {
  const universe = new Universe();
  const seen: string[] = [];
  universe.after(1, async () => {
    await setImmediate(); // waits for another turn of the event loop, not only for a microtask
    seen.push("promised");
  });
  universe.after(1, () => {
    void Promise.resolve()
      .then(() => undefined)
      .then(() => seen.push("set going"));
  });
  universe.after(1, () => void seen.push("next"));
  await universe.run(2);
  expect(seen).toEqual(["promised", "set going", "next"]);
});

it("delivers nothing to a paused machine, and everything once it resumes, timers first", async () => {
  const universe = new Universe();
  const machine = new Machine("n1", universe, clocks);
  const seen: string[] = [];
  machine.pause();
  machine.deliver(() => void seen.push("a message"));
  machine.after(5, () => void seen.push("a timer"));
  await universe.run(10);
  expect([seen, machine.monotonic()]).toEqual([[], 10]);
  machine.resume();
  await universe.run(20);
  expect(seen).toEqual(["a timer", "a message"]);
});

it("runs nothing in a killed process", async () => {
  const universe = new Universe();
  const machine = new Machine("n1", universe, clocks);
  const seen: string[] = [];
  machine.after(5, () => void seen.push("a timer"));
  machine.kill();
  machine.deliver(() => void seen.push("a message"));
  await universe.run(10);
  expect(seen).toEqual([]);
});

it("stops a loop in which no time passes", async () => {
  const universe = new Universe();
  const again = () => void universe.after(0, again);
  again();
  await universe.run(10);
  expect(universe.spun).toBe(true);
});
