import { expect, test } from "vitest";
import { boundsOf } from "./range.ts";

const now = Date.parse("2026-10-26T00:30:20.500Z");

test("a named range is counted from now, or from the step before", () => {
  expect(boundsOf({ within: "1h" }, now, "UTC")).toEqual({ since: "2026-10-25T23:30:00.000Z" });
  expect(boundsOf({ within: "24h" }, now, "UTC")).toEqual({ since: "2026-10-25T00:00:00.000Z" });
  expect(boundsOf({ within: "7d" }, now, "UTC")).toEqual({ since: "2026-10-19T00:00:00.000Z" });
});

test("days are those of the zone, also where one has 25 hours", () => {
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

test("what is no range and no time bounds nothing", () => {
  expect(boundsOf({ within: "forever", since: "soon", until: "2026-10-25T02:00+02:00" }, now, "UTC")).toEqual({
    until: "2026-10-25T00:00:00.000Z",
  });
});
