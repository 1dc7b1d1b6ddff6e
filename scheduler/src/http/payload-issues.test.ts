import { describe, expect, test } from "vitest";
import { payloadIssues } from "./payload-issues.ts";

const schema = {
  type: "object",
  properties: {
    ledger: { type: "string", pattern: "^(a+)+$" },
    pattern: { type: "integer", minimum: 1 },
    lines: { type: "array", items: { type: "object", properties: { sku: { type: "string" } }, required: ["sku"] } },
  },
  required: ["ledger"],
};

describe("a payload's schema", () => {
  test("tells what it has against a payload, and where", () => {
    const of = (payload: unknown) => payloadIssues(schema, payload)?.map(({ path }) => path);
    expect(of({ ledger: "eu", lines: [{ sku: "a" }] })).toEqual([]);
    expect(of({ pattern: 0, lines: [{ sku: "a" }, {}] })).toEqual([["ledger"], ["pattern"], ["lines", 1, "sku"]]);
    expect(of(null)).toEqual([[]]);
  });

  test("holds nobody up by a pattern, and is no hindrance where it is not understood", () => {
    expect(payloadIssues(schema, { ledger: `${"a".repeat(60)}!` })).toEqual([]);
    expect(payloadIssues({ $ref: "https://elsewhere.example/schema.json" }, {})).toBeNull();
  });
});
