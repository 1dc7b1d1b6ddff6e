import { expect, it } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import { silentLog } from "../base/log.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Store } from "../store/store.ts";
import { StoreClock } from "../store/store-clock.ts";
import { OperationRunner } from "./operation-runner.ts";

const wallMs = 1_800_000_000_000;

/** Creates an operation runner whose store returns these results of `step` in turn, and then the last one again and again. */
function lead(...answers: { stepped: number | null; inMs: number | null }[]) {
  const clock = new VirtualClock(wallMs);
  let steps = 0;
  const step = async (nowMs: number) => {
    const { stepped, inMs } = answers[Math.min(steps++, answers.length - 1)] as (typeof answers)[number];
    return { stepped, nextMs: inMs === null ? null : nowMs + inMs };
  };
  const operationRunner = new OperationRunner({
    clock,
    storeClock: new StoreClock(clock),
    log: silentLog,
    store: { operations: { step } } as unknown as Store,
    membership: { term: () => 1 } as Membership,
  });
  return {
    operationRunner,
    steps: () => steps,
    async pass(ms: number): Promise<void> {
      for (let passed = 0; passed < ms; passed += 10) {
        clock.advance(10);
        await new Promise(setImmediate);
      }
    },
  };
}

it("continues while an operation has work left", async () => {
  const { operationRunner, steps, pass } = lead(
    { stepped: 1, inMs: 0 },
    { stepped: 1, inMs: 0 },
    { stepped: null, inMs: null },
  );
  await operationRunner.run();
  expect(steps()).toBe(3);
  await pass(60_000);
  expect(steps()).toBe(3);
});

it("waits for an operation with a rate limit", async () => {
  const { operationRunner, steps, pass } = lead({ stepped: null, inMs: 200 });
  await operationRunner.run();
  await pass(190);
  expect(steps()).toBe(1);
  await pass(820);
  expect(steps()).toBe(6);
});

it("checks about once a second an operation that another process is working on, in case it has stopped", async () => {
  const { operationRunner, steps, pass } = lead({ stepped: null, inMs: 0 });
  await operationRunner.run();
  await pass(10_005);
  expect(steps()).toBeGreaterThan(5);
  expect(steps()).toBeLessThan(12);
});
