import { expect, test } from "vitest";
import { zoneNamed } from "./zones.ts";

test("a zone is recognised by its full name in any case, and by its aliases", () => {
  expect(["Europe/Berlin", " asia/shanghai ", "utc", "US/Eastern", "Europe/Ber", "Berlin", ""].map(zoneNamed)).toEqual([
    "Europe/Berlin",
    "Asia/Shanghai",
    "UTC",
    "America/New_York",
    undefined,
    undefined,
    undefined,
  ]);
});
