import { expect, test } from "vitest";
import { VirtualClock } from "../../../test/support/virtual-clock.ts";
import { DueTimer } from "./due-timer.ts";

test("what is due is called in this turn of the event loop, but not in the call; what is set anew or cancelled, not at all", async () => {
  const clock = new VirtualClock(0);
  const timer = new DueTimer(clock);
  const called: string[] = [];
  timer.set(0, () => called.push("given up"));
  timer.set(0, () => called.push("now"));
  expect(called).toEqual([]);
  await Promise.resolve();
  expect(called).toEqual(["now"]);
  timer.set(0, () => called.push("cancelled"));
  timer.cancel();
  timer.set(5, () => called.push("later"));
  await Promise.resolve();
  expect(called).toEqual(["now"]);
});
