import { expect, test, vi } from "vitest";
import { Sleeper, systemClock } from "./clock.ts";

const turns = async () => {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
};

/** A loop that counts its steps, and sleeps after each step until it is woken. */
function loop() {
  const sleeper = new Sleeper({ ...systemClock, after: () => () => undefined });
  const state = { steps: 0 };
  let finishStep: (() => void) | undefined;
  void (async () => {
    for (;;) {
      await sleeper.sleep(1_000);
      state.steps++;
      await new Promise<void>((resolve) => {
        finishStep = resolve;
      });
    }
  })();
  return { sleeper, state, finish: () => finishStep?.() };
}

test("a wake ends one sleep, and several wakes before it count as one", async () => {
  const { sleeper, state, finish } = loop();
  sleeper.wake();
  sleeper.wake();
  await turns();
  expect(state.steps).toBe(1);
  finish();
  await turns();
  expect(state.steps).toBe(1);
  sleeper.wake();
  await turns();
  expect(state.steps).toBe(2);
});

test("wakes during a step cause exactly one further step, at once", async () => {
  const { sleeper, state, finish } = loop();
  sleeper.wake();
  await turns();
  sleeper.wake();
  sleeper.wake();
  await turns();
  expect(state.steps).toBe(1);
  finish();
  await turns();
  expect(state.steps).toBe(2);
  finish();
  await turns();
  expect(state.steps).toBe(2);
});

test("a sleep without a wake lasts its full time", async () => {
  const fires: (() => void)[] = [];
  const after = (_ms: number, fire: () => void) => {
    fires.push(fire);
    return () => undefined;
  };
  const sleeper = new Sleeper({ ...systemClock, after });
  let slept = 0;
  void sleeper.sleep(50).then(() => slept++);
  await turns();
  expect(slept).toBe(0);
  fires[0]?.();
  await turns();
  expect(slept).toBe(1);
});

test("a wait below one millisecond does not end early, uses no timer, and can be cancelled", async () => {
  const timers = vi.spyOn(globalThis, "setTimeout");
  const took: number[] = [];
  for (let i = 0; i < 20; i++) {
    const began = performance.now();
    await new Promise<void>((resolve) => systemClock.after(0.2, resolve));
    took.push(performance.now() - began);
  }
  expect(Math.min(...took)).toBeGreaterThanOrEqual(0.2);
  const own = timers.mock.calls.filter(([, ms]) => ms === 0.2);
  timers.mockRestore();
  expect(own).toEqual([]);
  let fired = false;
  systemClock.after(0.2, () => {
    fired = true;
  })();
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect(fired).toBe(false);
});
