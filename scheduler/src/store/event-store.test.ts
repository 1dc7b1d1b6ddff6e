import { describe, expect, it } from "vitest";
import { cursorOf, isVisible, placeOfCursor } from "./event-store.ts";

const place = { recovery: 2, ms: 1_700_000_000_000, seen: "10:20:11,15", reading: null, floorMs: 0 };
const reading = { snapshot: "30:40:", ms: 1_700_000_000_500, xid: "999999999999999999", id: "7" };

describe("a cursor", () => {
  it.each([
    ["between two reads", place],
    ["within a read", { ...place, reading, floorMs: 1_600_000_000_000 }],
  ])("%s gives its position", (_, at) => {
    const cursor = cursorOf(at);
    expect(placeOfCursor(cursor)).toEqual(at);
    expect(cursor, "it goes through a header and a URL").toMatch(/^[\d~:,]+$/);
  });

  it.each([
    ["", "nothing"],
    ["1~2~3~4", "too few parts"],
    [cursorOf(place).replace("10:20", "10;20"), "no snapshot"],
    [`${cursorOf(place)}~1`, "too many parts"],
    [cursorOf({ ...place, reading }).replace(/\d+$/, ""), "no last event"],
    [cursorOf({ ...place, seen: "20:10:" }), "a snapshot that ends before it begins"],
    [cursorOf({ ...place, seen: "10:20:25" }), "an open transaction behind the end"],
    [cursorOf({ ...place, seen: "10:20:15,11" }), "open transactions in no order"],
    [cursorOf({ ...place, seen: "0:0:" }), "a snapshot of nothing"],
    [cursorOf({ ...place, seen: "10:20:11," }), "an open transaction without a number"],
    [cursorOf({ ...place, reading: { ...reading, snapshot: "99999999999999999999:1:" } }), "too large a number"],
    [7, "no text"],
  ])("%j is refused: %s", (text, _why) => {
    expect(() => placeOfCursor(text)).toThrow(expect.objectContaining({ code: "OPTION_INVALID", path: "after" }));
  });
});

it.each([
  ["9", true],
  ["11", false],
  ["12", true],
  ["15", false],
  ["19", true],
  ["20", false],
  ["21", false],
])("a snapshot includes transaction %s: %s", (xid, shown) => {
  expect(isVisible(xid, "10:20:11,15")).toBe(shown);
  expect(isVisible(xid, ""), "before the first snapshot").toBe(false);
});
