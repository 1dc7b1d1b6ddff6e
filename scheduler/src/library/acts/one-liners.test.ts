import { expect, expectTypeOf, it } from "vitest";
import { carillon } from "../carillon.ts";
import type { RunHandle } from "../run-handle.ts";

const make = () => carillon({ store: "embedded", handleSignals: false });

it("defines a task by its schedule and its function, and takes the function's name", () => {
  const tower = make();
  const poll = () => "polled";
  const polled = tower.every("1h", poll);
  const digest = tower.cron("0 9 * * MON-FRI", () => 1, { name: "digest", zone: "Europe/Berlin", timeout: "1m" });
  expect([polled.name, digest.name]).toEqual(["poll", "digest"]);
  const local = new Intl.DateTimeFormat("en", { hour: "numeric", hourCycle: "h23", timeZone: "Europe/Berlin" });
  expect(digest.next(5).map((at) => local.format(at))).toEqual(["09", "09", "09", "09", "09"]);
  expectTypeOf(polled.run).returns.toEqualTypeOf<Promise<RunHandle<string>>>();
  expect(() => tower.every("2h", poll)).toThrow(expect.objectContaining({ code: "TASK_DUPLICATE" }));
});

it("refuses a function without a valid name, or with a name that may change in the next build", () => {
  const tower = make();
  for (const unnamed of [() => 1, { ab: () => 1 }.ab])
    expect(() => tower.every("10s", unnamed)).toThrow(
      expect.objectContaining({ code: "TASK_INVALID", path: "name", hint: expect.stringContaining("{ name:") }),
    );
  expect(tower.every("10s", () => 1, { name: "ab" })).toMatchObject({ name: "ab" });
});
