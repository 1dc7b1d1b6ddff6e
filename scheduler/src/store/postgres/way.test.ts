import { expect, it } from "vitest";
import { systemClock } from "../../base/clock.ts";
import { silentLog } from "../../base/log.ts";
import { wayTo } from "./way.ts";

it.each([
  ["postgres://a/db", "postgres://a/db"],
  ...["allow", "prefer", "require", "verify-ca", "verify-full"].map((mode) => [
    `postgres://a/db?sslmode=${mode}&application_name=x`,
    "postgres://a/db?sslmode=verify-full&application_name=x",
  ]),
  ["postgres://a/db?ssl%6dode=req%75ire", "postgres://a/db?sslmode=verify-full"],
  ["postgres://a/db?uselibpqcompat=false&sslmode=require", "postgres://a/db?uselibpqcompat=false&sslmode=verify-full"],
  ["postgres://a/db?uselibpqcompat=true&sslmode=require", "postgres://a/db?uselibpqcompat=true&sslmode=require"],
  ["postgres://a/db?sslmode=no-verify", "postgres://a/db?sslmode=no-verify"],
  ["postgres://a/db?sslmode=disable", "postgres://a/db?sslmode=disable"],
])("%s reaches the store by %s", (given, url) => {
  expect(wayTo(given as string, systemClock, silentLog).url).toBe(url);
});

it("a URL with two modes is refused, because its readers would not agree on one", () => {
  expect(() => wayTo("postgres://a/db?sslmode=require&sslmode=prefer", systemClock, silentLog)).toThrow(
    expect.objectContaining({ code: "OPTION_INVALID", path: "store" }),
  );
});
