import { expect, test } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import { CachedRead } from "./cached-read.ts";

test("a read is shared by its callers and cached for a time, unless it fails or is forgotten", async () => {
  const clock = new VirtualClock(0);
  const answers: (number | Error)[] = [1, new Error("away"), 2, 3];
  let reads = 0;
  const read = new CachedRead(clock, 1_000, async () => {
    const answer = answers[reads++];
    if (answer instanceof Error) throw answer;
    return answer;
  });
  expect(await Promise.all([read.get(), read.get()])).toEqual([1, 1]);
  clock.advance(999);
  expect([await read.get(), reads]).toEqual([1, 1]);
  clock.advance(1);
  const [one, other] = await Promise.allSettled([read.get(), read.get()]);
  expect([one.status, other.status, reads]).toEqual(["rejected", "rejected", 2]);
  expect(await read.get()).toBe(2);
  read.forget();
  expect([await read.get(), reads]).toEqual([3, 4]);
});
