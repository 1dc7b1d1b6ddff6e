import { describe, expect, it } from "vitest";
import type { LogLine } from "./levels.ts";
import { followed, keptMost, type Loaded, preceded } from "./loaded.ts";

const lines = (from: number, count: number) =>
  Array.from({ length: count }, (_, n) => ({ id: `${from + n}(0,1)` }) as LogLine);
const loaded = (from: number, count: number): Loaded => ({ lines: lines(from, count), before: true, after: false });
const span = ({ lines }: Loaded) => [lines.length, lines[0]?.id, lines.at(-1)?.id];

describe("the loaded part of a log", () => {
  it("grows at either end as long as it is short", () => {
    const earlier = preceded(loaded(500, 500), lines(0, 500), false);
    expect([span(earlier), earlier.before, earlier.after]).toEqual([[1_000, "0(0,1)", "999(0,1)"], false, false]);
    const later = followed(earlier, lines(1_000, 500), true);
    expect([span(later), later.before, later.after]).toEqual([[1_500, "0(0,1)", "1499(0,1)"], false, true]);
  });

  it("drops the earliest lines when it grows at the end", () => {
    const later = followed({ ...loaded(0, keptMost), before: false }, lines(keptMost, 500), false);
    expect([span(later), later.before, later.after]).toEqual([
      [keptMost, "500(0,1)", `${keptMost + 499}(0,1)`],
      true,
      false,
    ]);
  });

  it("drops the latest lines when it grows at the beginning, and then no longer reaches the end of the log", () => {
    const earlier = preceded(loaded(500, keptMost), lines(0, 500), false);
    expect([span(earlier), earlier.before, earlier.after]).toEqual([
      [keptMost, "0(0,1)", `${keptMost - 1}(0,1)`],
      false,
      true,
    ]);
  });

  it("puts lines that arrive late in their places", () => {
    const late = followed(loaded(0, 3), [...lines(4, 1), ...lines(3, 1)], false);
    expect(late.lines).toEqual(lines(0, 5));
  });
});
