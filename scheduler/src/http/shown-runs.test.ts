import { deflateRawSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { seeded } from "../base/random.ts";
import { ShownRuns } from "./shown-runs.ts";

const random = seeded(3);
const drawn = (count: number, most: number) =>
  Array.from({ length: count }, () => 1 + Math.floor(random.next() * most));

describe("the runs that a paged list has already shown", () => {
  it.each([
    ["none", []],
    ["one", [1]],
    ["those of any size", [1, 127, 128, 129, 16_383, 16_384, 2 ** 31, 2 ** 32 + 5, Number.MAX_SAFE_INTEGER]],
    ["a thousand here and there", drawn(1_000, 1_000_000)],
    ["fifty thousand one after the other", Array.from({ length: 50_000 }, (_, i) => 7_000_000 + i)],
  ])("are read back as they were written: %s", (_, runs) => {
    const text = new ShownRuns(runs).text();
    expect(text.length).toBeLessThanOrEqual(5_000);
    const read = ShownRuns.read(text);
    expect(runs.filter((run) => !read?.has(run))).toEqual([]);
    expect(read?.text()).toBe(text);
    expect(read?.has(2)).toBe(false);
  });

  it("fit in a cursor; if there are too many, the oldest are left out", () => {
    const runs = drawn(20_000, 10 ** 9).sort((a, b) => a - b);
    const text = new ShownRuns(runs).text();
    expect(text.length).toBeLessThanOrEqual(5_000);
    const read = ShownRuns.read(text) as ShownRuns;
    expect(read.has(runs.at(-1) as number)).toBe(true);
    expect(runs.slice(-1_000).filter((run) => !read.has(run))).toEqual([]);
    expect(read.has(runs[0] as number)).toBe(false);
  });

  it.each([
    ["no text", ""],
    ["no bytes of deflate", "nonsense"],
    ["a number that is cut", deflateRawSync(Uint8Array.of(1, 200)).toString("base64url")],
    ["a number beyond all", deflateRawSync(new Uint8Array(40).fill(255)).toString("base64url")],
    ["more than memory is given for", deflateRawSync(new Uint8Array(900_000).fill(1)).toString("base64url")],
    ["too many runs", deflateRawSync(new Uint8Array(200_000).fill(1)).toString("base64url")],
  ])("are not read from %s", (_, text) => {
    expect(ShownRuns.read(text)).toBeNull();
  });
});
