import { expect, test } from "vitest";
import { VirtualClock } from "../../../test/support/virtual-clock.ts";
import { DueTimer } from "./due-timer.ts";

test("a due callback runs in this turn of the event loop but after the call; a replaced or cancelled one never runs", async () => {
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
