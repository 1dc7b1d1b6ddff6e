import { expect, test } from "vitest";
import type { Clock } from "../base/clock.ts";
import { StoreWait } from "./store-wait.ts";

/** Returns the median after answers that took the given times, in ms: in all, and the part in which the event loop was busy. */
function medianOf(answers: readonly { tookMs: number; busyMs?: number }[]): number | null {
  const at = { mono: 0, busy: 0 };
  const clock: Clock = {
    monotonic: () => at.mono,
    wall: () => at.mono,
    after: () => () => undefined,
    busyMs: () => at.busy,
  };
  const wait = new StoreWait(clock);
  for (const { tookMs, busyMs = 0 } of answers) {
    const answered = wait.begin();
    at.mono += tookMs;
    at.busy += busyMs;
    answered();
  }
  return wait.medianMs;
}

const slow = { tookMs: 2_000 };
const fast = { tookMs: 2 };

test.each([
  ["too few answers", [slow, slow, slow, slow], null],
  ["a slow store", [slow, slow, slow, slow, slow], 2_000],
  ["a store that became slow", [fast, fast, slow, slow, slow], 2_000],
  ["two answers that a busy machine delayed", [slow, fast, fast, slow, fast], 2],
  ["a slow store that has become fast", [slow, slow, slow, fast, fast, fast], 2],
  ["answers that waited for this process's own code", Array(5).fill({ tookMs: 2_000, busyMs: 1_990 }), 10],
])("the time for which a process waits for its store: %s", (_, answers, medianMs) => {
  expect(medianOf(answers)).toBe(medianMs);
});
