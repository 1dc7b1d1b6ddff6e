import { expect, it } from "vitest";
import { tasksOf, told, utc } from "../../../test/support/imports.ts";
import { importSystemd } from "./timers.ts";

const imported = (lines: string) =>
  importSystemd(
    [
      { path: "a.timer", text: `[Timer]\nOnCalendar=*-*-* 02:00:00 UTC\n${lines}\n` },
      { path: "a.service", text: "[Service]\nExecStart=/bin/true\n" },
    ],
    utc,
  );
const scheduleOf = (lines: string) => tasksOf(imported(lines)).a?.schedule;

it("imports a random delay as a jitter, and a fixed random delay as a jitter by task", () => {
  expect(scheduleOf("RandomizedDelaySec=2h")).toMatchObject({ jitter: "2h" });
  expect(scheduleOf("RandomizedDelaySec=2h")).not.toHaveProperty("jitterBy");
  for (const lines of ["RandomizedDelaySec=2h\nFixedRandomDelay=true", "RandomizedOffsetSec=2h"])
    expect(scheduleOf(lines)).toMatchObject({ jitter: "2h", jitterBy: "task" });
});

it("reports a delay without a fixed length, and the second of two delays", () => {
  for (const field of ["RandomizedDelaySec", "RandomizedOffsetSec"]) {
    expect(told(imported(`${field}=1month`), "lost").join()).toContain(
      `its ${field} 1month, which has no fixed length`,
    );
    expect(scheduleOf(`${field}=1month`)).not.toHaveProperty("jitter");
  }
  const both = "RandomizedDelaySec=1h\nRandomizedOffsetSec=2h";
  expect(told(imported(both), "lost").join()).toContain("its RandomizedOffsetSec 2h");
  expect(scheduleOf(both)).toMatchObject({ jitter: "1h" });
});
