import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { jsonText } from "./json.ts";
import { limits } from "./limits.ts";

const code = (name: string) => expect.objectContaining({ code: name, message: expect.stringContaining("the payload") });

describe("payloads as JSON", () => {
  it("undefined is no payload, null is one", () => {
    expect(jsonText(undefined, "x")).toBeNull();
    expect(jsonText(null, "x")).toBe("null");
  });

  it("writes the same text as JSON.stringify", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        fc.pre(!/\\u(?:0000|d[89a-f])/.test(text));
        expect(jsonText(value, "x")).toBe(text);
      }),
    );
  });

  it.each([
    ["a function", () => 1],
    ["a symbol", Symbol("s")],
    ["a bigint", 1n],
    [
      "a circle",
      (() => {
        const circle: Record<string, unknown> = {};
        circle.self = circle;
        return circle;
      })(),
    ],
    ["a NUL", { a: "x\0y" }],
    ["half a surrogate pair", ["\ud800"]],
    ["half a pair after a backslash", "\\\udfff"],
    ["a NUL in a name", { "\0": 1 }],
    ["NaN", Number.NaN],
    ["infinity in a list", { a: [1, Number.NEGATIVE_INFINITY] }],
    ["a map", new Map([[1, 2]])],
    ["a set", { a: { b: new Set([1]) } }],
    ["an error", [new TypeError("x")]],
    ["an error of its own class with fields", Object.assign(new (class Own extends Error {})("x"), { code: "E" })],
    ["a promise that was not awaited", { rows: Promise.resolve([]) }],
    ["a pattern", /x/],
    ["a function in an object", { f: () => 1 }],
    ["a symbol in a list", [Symbol("s")]],
  ])("refuses %s", (_, value) => {
    expect(() => jsonText(value, "the payload")).toThrow(code("PAYLOAD_NOT_JSON"));
  });

  it("names the path of a value that JSON would lose", () => {
    expect(() => jsonText({ rows: [1, { due: Number.NaN }] }, "the payload")).toThrow(
      "the payload has NaN at rows.1.due, which JSON does not have",
    );
  });

  it("uses toJSON, and leaves out undefined values", () => {
    class Money {
      cents = 5;
      note = undefined;
    }
    const given = { at: new Date(0), price: new Money(), bare: Object.assign(Object.create(null), { a: 1 }) };
    expect(jsonText(given, "x")).toBe('{"at":"1970-01-01T00:00:00.000Z","price":{"cents":5},"bare":{"a":1}}');
  });

  it.each(["\\u0000", "\\\\u0000", "a\\\\\\ud800", "\u0001", "😀", "\u2028"])(
    "accepts %j, which only looks like a forbidden escape",
    (value) => {
      expect(JSON.parse(jsonText(value, "x") as string)).toBe(value);
    },
  );

  it("counts the exact size in UTF-8 bytes, including quotes", () => {
    expect(jsonText("a".repeat(limits.payloadBytes - 2), "x")).toHaveLength(limits.payloadBytes);
    expect(() => jsonText("a".repeat(limits.payloadBytes - 1), "the payload")).toThrow(code("PAYLOAD_TOO_LARGE"));
    const euros = Math.floor((limits.payloadBytes - 2) / 3);
    expect(jsonText("€".repeat(euros), "x")).not.toBeNull();
    expect(() => jsonText("€".repeat(euros + 1), "the payload")).toThrow(code("PAYLOAD_TOO_LARGE"));
  });
});
