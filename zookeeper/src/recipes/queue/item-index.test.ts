import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ItemIndex } from "./item-index.ts";
import { delayNames, delayPrefix, plainNames } from "./names.ts";

const named = (atMs: number, sequence: number) => `${delayPrefix(atMs)}${String(sequence).padStart(10, "0")}`;

function parsed(name: string) {
  const item = delayNames.parse(name);
  if (!item) throw new Error(`${name} was not read`);
  return item;
}

const add = (index: ItemIndex, name: string) => index.add(name, parsed(name));

function drain(index: ItemIndex): string[] {
  const names: string[] = [];
  for (let name = index.take(); name !== undefined; name = index.take()) names.push(name);
  return names;
}

describe("the index of a queue's names", () => {
  it("returns the item due first, and of equal times the one put first", () => {
    const index = new ItemIndex(delayNames);
    for (const [at, sequence] of [
      [30, 1],
      [10, 5],
      [20, 2],
      [10, 3],
    ] as const) {
      expect(add(index, named(at, sequence))).toBe(true);
    }
    expect(add(index, named(10, 5))).toBe(false);
    expect(index.firstRank).toBe(10);
    expect(drain(index)).toEqual([named(10, 3), named(10, 5), named(20, 2), named(30, 1)]);
    expect(index.firstRank).toBe(Number.POSITIVE_INFINITY);
  });

  it("keeps names unchanged that cannot be derived from time and number", () => {
    const odd = ["queue-0000000007", "queue-|10|0000000008", "queue-r2,0000000A|0000000B|0000000009", "queue-x"];
    const index = new ItemIndex(delayNames);
    for (const name of odd) add(index, name);
    expect(index.delete("queue-x", parsed("queue-x"))).toBe(true);
    expect(drain(index)).toEqual([odd[0], odd[2], odd[1]]);
  });

  it("drops names missing from a listing, and keeps those added during it", () => {
    const index = new ItemIndex(delayNames);
    for (let i = 0; i < 10; i++) add(index, named(i, i));
    index.beginListing();
    for (let i = 0; i < 10; i += 2) add(index, named(i, i));
    add(index, named(99, 99));
    expect(index.endListing()).toBe(5);
    expect(drain(index)).toEqual([0, 2, 4, 6, 8, 99].map((i) => named(i, i)));
  });

  it("can sort by another number", () => {
    const index = new ItemIndex(plainNames, ({ notBeforeMs }) => notBeforeMs);
    const names = ["queue-r1,00000009-0000000001", "queue-r1,00000005-0000000002"];
    for (const name of names)
      index.add(name, plainNames.parse(name) as NonNullable<ReturnType<typeof plainNames.parse>>);
    expect(index.firstRank).toBe(5);
    expect(drain(index)).toEqual(names.toReversed());
  });

  it("behaves like a sorted list, whatever the order of events", () => {
    const name = fc.oneof(
      fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 40 })).map(([at, s]) => named(at, s)),
      fc.integer({ min: 0, max: 20 }).map((s) => `queue-${String(s).padStart(10, "0")}`),
    );
    const step = fc.oneof(
      { weight: 5, arbitrary: fc.record({ kind: fc.constant("add"), name }) },
      { weight: 3, arbitrary: fc.record({ kind: fc.constant("delete"), name }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant("take"), name }) },
    );
    const order = (a: string, b: string) => {
      const [first, second] = [parsed(a), parsed(b)];
      return first.rank - second.rank || first.sequence - second.sequence;
    };
    fc.assert(
      fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
        const index = new ItemIndex(delayNames);
        const model = new Set<string>();
        for (const { kind, name } of steps) {
          if (kind === "add") {
            expect(add(index, name)).toBe(!model.has(name));
            model.add(name);
          } else if (kind === "delete") expect(index.delete(name, parsed(name))).toBe(model.delete(name));
          else {
            const first = [...model].sort(order)[0];
            const taken = index.take();
            expect(taken === undefined).toBe(first === undefined);
            if (taken !== undefined && first !== undefined) {
              expect(order(taken, first)).toBe(0);
              expect(model.delete(taken)).toBe(true);
            }
          }
          expect(index.size).toBe(model.size);
        }
        const rest = drain(index);
        expect(rest.toSorted()).toEqual([...model].sort());
        expect(rest.map((one) => parsed(one).rank)).toEqual(rest.map((one) => parsed(one).rank).sort((a, b) => a - b));
      }),
      { numRuns: 300 },
    );
  });

  it("grows and shrinks by a hundred thousand names", () => {
    const index = new ItemIndex(delayNames);
    const count = 100_000;
    const at = (i: number) => 1_700_000_000_000 + ((i * 7_919) % count);
    for (let i = 0; i < count; i++) add(index, named(at(i), i));
    expect(index.size).toBe(count);
    for (let i = 0; i < count; i += 2) index.delete(named(at(i), i), parsed(named(at(i), i)));
    let before = 0;
    let taken = 0;
    for (let name = index.take(); name !== undefined; name = index.take(), taken++) {
      const { rank, sequence } = parsed(name);
      if (rank < before || rank !== at(sequence) || sequence % 2 !== 1) throw new Error(`${name} is out of its order`);
      before = rank;
    }
    expect(taken).toBe(count / 2);
  });
});
