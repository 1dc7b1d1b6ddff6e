import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { placeOf } from "../base/protect.ts";
import { nearestBefore, placeIn } from "./line.ts";

const named = (marker: string, number: number) =>
  `_c_${"0".repeat(8)}-1111-2222-3333-${"4".repeat(12)}-${marker}${String(number).padStart(10, "0")}`;

describe("a line of waiters", () => {
  it("finds the nearest predecessor, whatever the order of the list", () => {
    const names = [3, 11, 7, 9, 2].map((number) => named("lock-", number));
    expect(nearestBefore(names, placeOf(named("lock-", 9), "lock-"), ["lock-"])).toBe(named("lock-", 7));
    expect(nearestBefore(names, placeOf(named("lock-", 2), "lock-"), ["lock-"])).toBeUndefined();
  });

  it("ignores names that are not in the line", () => {
    const names = ["leases", "ready", named("latch-", 1), named("lock-", 5)];
    expect(nearestBefore(names, placeOf(named("lock-", 5), "lock-"), ["lock-"])).toBeUndefined();
    expect(placeIn("leases", ["lock-"])).toBeUndefined();
  });

  it("accepts names without protection, as other clients create them", () => {
    const names = ["lock-0000000003", named("lock-", 5)];
    expect(nearestBefore(names, "0000000005", ["lock-"])).toBe("lock-0000000003");
  });

  it("makes readers wait only for writers, and writers for all", () => {
    const markers = { read: "__READ__", write: "__WRIT__" };
    const names = [named(markers.write, 1), named(markers.read, 2), named(markers.read, 3), named(markers.write, 4)];
    expect(nearestBefore(names, "0000000003", [markers.write])).toBe(named(markers.write, 1));
    expect(nearestBefore(names, "0000000004", [markers.read, markers.write])).toBe(named(markers.read, 3));
    expect(nearestBefore(names, "0000000002", [])).toBeUndefined();
  });

  it("is a chain: each waiter waits for one other, and no two wait for the same", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.integer({ min: 0, max: 2 ** 31 - 1 }), { minLength: 1, maxLength: 50 }),
        (numbers) => {
          const names = numbers.map((number) => named("lock-", number));
          const waitsFor = names.map((name) => nearestBefore(names, placeOf(name, "lock-"), ["lock-"]));
          expect(waitsFor.filter((name) => name === undefined).length).toBe(1);
          const known = waitsFor.filter((name) => name !== undefined);
          expect(new Set(known).size).toBe(numbers.length - 1);
          const order = [...numbers].sort((a, b) => a - b);
          for (const [index, number] of numbers.entries()) {
            const before = order[order.indexOf(number) - 1];
            expect(waitsFor[index]).toBe(before === undefined ? undefined : named("lock-", before));
          }
        },
      ),
    );
  });
});
