import { expect, test } from "vitest";
import { recordingLog } from "../../test/support/store-stage.ts";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import { closingMs, Ending } from "./ending.ts";

const never = () => new Promise<void>(() => undefined);

function stopping(drainMs: number) {
  const clock = new VirtualClock(0);
  const { log, lines } = recordingLog();
  const beganMono = clock.monotonic();
  const ending = new Ending({ clock, log, drainMs });
  /** Lets virtual time pass until the work is done. @returns the ms that the stop has taken so far */
  const passes = async (work: Promise<unknown>) => {
    let done = false;
    void work.finally(() => {
      done = true;
    });
    for (; !done; clock.advance(1)) await new Promise((resolve) => setImmediate(resolve));
    return clock.monotonic() - beganMono;
  };
  const told = () => lines.map(({ level, fields }) => [level, fields.step]);
  return { clock, ending, passes, told };
}

test.each([0, 500, 30_000])(
  "with a drain of %s ms, a stop whose steps all hang ends in time and names each step",
  async (drainMs) => {
    const { ending, passes, told } = stopping(drainMs);
    const all = async () => {
      await ending.step("handlers", never, ending.workMs);
      for (const name of ["locks", "the cluster", "the store"]) await ending.step(name, never);
    };
    const passedMs = await passes(all());
    // 10 ms of tolerance, because each step may take a ms or two longer.
    expect(passedMs).toBeLessThanOrEqual(drainMs + closingMs + 10);
    expect(passedMs).toBeGreaterThan(drainMs);
    expect(told()).toEqual(["handlers", "locks", "the cluster", "the store"].map((name) => ["warn", name]));
    ending.done();
  },
);

test("handlers get the whole drain; each later step gets half of the remaining time", () => {
  const { clock, ending } = stopping(1_000);
  expect([ending.drainMs, ending.workMs, ending.leftMs]).toEqual([1_000, 1_250, 1_500]);
  clock.advance(1_200);
  expect([ending.drainMs, ending.workMs, ending.leftMs]).toEqual([0, 50, 300]);
  clock.advance(1_000);
  expect([ending.drainMs, ending.workMs, ending.leftMs]).toEqual([0, 0, 0]);
});

test("a hanging step is abandoned after 5 s, however long the drain is", async () => {
  const { ending, passes } = stopping(600_000);
  expect(await passes(ending.step("the cluster", never))).toBeLessThan(5_010);
});

test("a failing step does not prevent the next one, and its error is thrown at the end", async () => {
  const { ending, passes, told } = stopping(1_000);
  let done = 0;
  const failing = () => Promise.reject(new Error("first"));
  await passes(ending.step("one", failing));
  await passes(ending.step("two", () => Promise.reject(new Error("second"))));
  await passes(ending.step("three", async () => void done++));
  await passes(ending.step("nothing to do", () => undefined));
  expect(done).toBe(1);
  expect(told()).toEqual([
    ["error", "one"],
    ["error", "two"],
  ]);
  expect(() => ending.done()).toThrow("first");
});

test("a late error of an abandoned step is ignored and causes no second warning", async () => {
  const { ending, passes, told } = stopping(0);
  let fail = (_: Error): void => undefined;
  await passes(
    ending.step(
      "slow",
      () =>
        new Promise((_, reject) => {
          fail = reject;
        }),
    ),
  );
  fail(new Error("late"));
  await new Promise((resolve) => setImmediate(resolve));
  expect(told()).toEqual([
    ["warn", "slow"],
    ["debug", "slow"],
  ]);
  ending.done();
});
