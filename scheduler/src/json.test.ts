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

  it("gives back what JSON gives back", () => {
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
  ])("refuses %s", (_, value) => {
    expect(() => jsonText(value, "the payload")).toThrow(code("PAYLOAD_NOT_JSON"));
  });

  it.each(["\\u0000", "\\\\u0000", "a\\\\\\ud800", "\u0001", "😀", "\u2028"])(
    "takes %j, which only looks like one",
    (value) => {
      expect(JSON.parse(jsonText(value, "x") as string)).toBe(value);
    },
  );

  it("counts bytes of UTF-8, quotes included, to the byte", () => {
    expect(jsonText("a".repeat(limits.payloadBytes - 2), "x")).toHaveLength(limits.payloadBytes);
    expect(() => jsonText("a".repeat(limits.payloadBytes - 1), "the payload")).toThrow(code("PAYLOAD_TOO_LARGE"));
    const euros = Math.floor((limits.payloadBytes - 2) / 3);
    expect(jsonText("€".repeat(euros), "x")).not.toBeNull();
    expect(() => jsonText("€".repeat(euros + 1), "the payload")).toThrow(code("PAYLOAD_TOO_LARGE"));
  });
});
