import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Heap } from "./heap.ts";

describe("the heap", () => {
  it("is empty at first, and again once every entry has been popped", () => {
    const heap = new Heap<string>();
    expect([heap.size, heap.least, heap.pop()]).toEqual([0, undefined, undefined]);
    heap.push(1, "a");
    expect([heap.size, heap.least, heap.pop(), heap.size, heap.least]).toEqual([1, 1, "a", 0, undefined]);
  });

  it("pops entries in sorted order, however pushes and pops are mixed", () => {
    fc.assert(
      fc.property(
        fc.array(fc.option(fc.integer({ min: -50, max: 50 }), { nil: null, freq: 2 }), { maxLength: 300 }),
        (steps) => {
          const heap = new Heap<{ key: number }>();
          const model: number[] = [];
          for (const key of steps) {
            if (key === null) {
              expect(heap.pop()?.key).toBe(model.shift());
            } else {
              heap.push(key, { key });
              model.push(key);
              model.sort((a, b) => a - b);
            }
            expect(heap.size).toBe(model.length);
            expect(heap.least).toBe(model[0]);
          }
        },
      ),
    );
  });
});
