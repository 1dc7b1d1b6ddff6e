import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { styleOf } from "./style.ts";
import { styledWidth } from "./styled-text.ts";
import { type Column, tableLines } from "./table.ts";
import { plain, widthOf } from "./text.ts";

const columns: Column[] = [
  { title: "TASK", least: 6 },
  { title: "NEXT" },
  { title: "OK", align: "right", drop: 1 },
  { title: "NODE", least: 4, drop: 2 },
];
const rows = [
  ["settle-accounts", "in 8 d", "12", "tenor-a315"],
  ["結算", "now", "1203", "maria"],
];

describe("a table", () => {
  it("is aligned in columns if it fits", () => {
    expect(tableLines(columns, rows)).toEqual([
      "TASK             NEXT      OK  NODE",
      "settle-accounts  in 8 d    12  tenor-a315",
      "結算             now     1203  maria",
    ]);
  });

  it("shortens flexible columns first, then drops the least important ones", () => {
    expect(tableLines(columns, rows, { width: 30 })).toEqual([
      "TASK     NEXT      OK  NODE",
      "settle…  in 8 d    12  tenor-…",
      "結算     now     1203  maria",
    ]);
    expect(tableLines(columns, rows, { width: 21 })).toEqual([
      "TASK     NEXT      OK",
      "settle…  in 8 d    12",
      "結算     now     1203",
    ]);
    expect(tableLines(columns, rows, { width: 14 })).toEqual(["TASK    NEXT", "settl…  in 8 d", "結算    now"]);
  });

  it("is never wider than the given width, whatever it contains", () => {
    const cell = fc.string({ maxLength: 30 }).map(plain);
    fc.assert(
      fc.property(
        fc.array(fc.tuple(cell, cell, cell, cell), { maxLength: 5 }),
        fc.integer({ min: 1, max: 80 }),
        (any, width) => {
          for (const line of tableLines(columns, any, { width })) expect(widthOf(line)).toBeLessThanOrEqual(width);
        },
      ),
    );
  });

  it("leaves out an empty column", () => {
    expect(tableLines(columns, [["a", "now", "", ""]])).toEqual(["TASK  NEXT", "a     now"]);
  });

  it("colours words, but not the padding beside them", () => {
    const style = styleOf(true);
    const [, line = ""] = tableLines([{ title: "A" }, { title: "B" }], [[{ text: "x", paint: style.bad }, "y"]], {
      style,
    });
    expect(line).toBe("\u001b[31mx\u001b[39m  y");
    expect(styledWidth(line)).toBe(4);
  });
});
