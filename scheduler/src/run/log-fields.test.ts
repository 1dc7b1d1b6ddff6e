import { describe, expect, it } from "vitest";
import { CarillonError } from "../base/errors.ts";
import { logFields } from "./log-fields.ts";

const circular: Record<string, unknown> = {};
circular.self = circular;

describe("the fields of a log line", () => {
  it("are kept in their JSON form", () => {
    expect(logFields(undefined)).toBeNull();
    expect(logFields({ a: 1, at: new Date(0) })).toEqual({ a: 1, at: "1970-01-01T00:00:00.000Z" });
  });

  it("keep the properties of an Error, and big integers as texts", () => {
    const error = Object.assign(new Error("no"), { code: "ENO" });
    const kept = { message: "no", code: "ENO", stack: expect.stringContaining("Error: no") };
    expect(logFields({ error, list: [error], n: 12n })).toEqual({ error: kept, list: [kept], n: "12" });
    expect(logFields(error)).toEqual(kept);
    expect(logFields({ error: new CarillonError("TIMEOUT", "late") })).toEqual({
      error: { code: "TIMEOUT", message: "late" },
    });
  });

  it.each([
    ["goes in a circle", circular, /circular/],
    ["has a NUL", "a\0b", /NUL/],
    ["is too large", "x".repeat(300_000), /limit is 262144/],
    [
      "throws when it is looked at",
      {
        toJSON() {
          throw new Error("do not look");
        },
      },
      /do not look/,
    ],
  ])("have a reason in place of a value that %s", (_, value, why) => {
    expect(logFields({ user: 7, value })).toEqual({ user: 7, value: { notKept: expect.stringMatching(why) } });
  });

  it("have a single reason if together they are too large or cannot be inspected", () => {
    const large = { a: "x".repeat(200_000), b: "x".repeat(200_000) };
    expect(logFields(large)).toEqual({ notKept: expect.stringContaining("limit") });
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(logFields(proxy)).toEqual({ notKept: expect.stringContaining("revoked") });
    expect(logFields(() => 1)).toEqual({});
  });
});
