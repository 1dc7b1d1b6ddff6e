import { expect, test } from "vitest";
import { boundsOf } from "./range.ts";

const now = Date.parse("2026-10-26T00:30:20.500Z");

test("a named range starts at now, rounded down to a step, minus its span", () => {
  expect(boundsOf({ within: "1h" }, now, "UTC")).toEqual({ since: "2026-10-25T23:30:00.000Z" });
  expect(boundsOf({ within: "24h" }, now, "UTC")).toEqual({ since: "2026-10-25T00:00:00.000Z" });
  expect(boundsOf({ within: "7d" }, now, "UTC")).toEqual({ since: "2026-10-19T00:00:00.000Z" });
});

test("the ranges today and yesterday use the zone's days, including a day of 25 hours", () => {
  expect(boundsOf({ within: "today" }, now, "UTC")).toEqual({ since: "2026-10-26T00:00:00.000Z" });
  expect(boundsOf({ within: "yesterday" }, now, "Europe/Berlin")).toEqual({
    since: "2026-10-24T22:00:00.000Z",
    until: "2026-10-25T23:00:00.000Z",
  });
  expect(boundsOf({ within: "yesterday" }, now, "America/Los_Angeles")).toEqual({
    since: "2026-10-24T07:00:00.000Z",
    until: "2026-10-25T07:00:00.000Z",
  });
});

test("an unknown range or an unreadable time sets no bound", () => {
  expect(boundsOf({ within: "forever", since: "soon", until: "2026-10-25T02:00+02:00" }, now, "UTC")).toEqual({
    until: "2026-10-25T00:00:00.000Z",
  });
});
