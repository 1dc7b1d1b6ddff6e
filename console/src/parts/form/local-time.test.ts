import { describe, expect, test } from "vitest";
import { instantText, localText } from "./local-time.ts";

describe("a time field's text", () => {
  test("is of the zone that was chosen, whatever the machine's is", () => {
    const noon = Date.UTC(2026, 6, 1, 12);
    for (const [zone, text] of [
      ["UTC", "2026-07-01T12:00"],
      ["Europe/Berlin", "2026-07-01T14:00"],
      ["Asia/Kathmandu", "2026-07-01T17:45"],
      ["America/Los_Angeles", "2026-07-01T05:00"],
    ] as const) {
      expect([zone, localText(noon, zone)]).toEqual([zone, text]);
      expect([zone, instantText(text, zone)]).toEqual([zone, "2026-07-01T12:00:00.000Z"]);
    }
  });

  test("is the first of two where clocks go back, and moved by the gap in a gap", () => {
    expect(instantText("2026-10-25T02:30", "Europe/Berlin")).toBe("2026-10-25T00:30:00.000Z");
    expect(instantText("2026-03-29T02:30", "Europe/Berlin")).toBe("2026-03-29T01:30:00.000Z");
  });

  test("stays as it is while a year is half typed", () => {
    const half = instantText("0002-10-25T02:30", "Europe/Berlin");
    expect(localText(Date.parse(half), "Europe/Berlin")).toBe("0002-10-25T02:30");
  });
});
