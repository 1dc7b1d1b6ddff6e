import { describe, expect, test } from "vitest";
import type { Json } from "../json.ts";
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
    const pattern = "^(a+)+$";
    const listed = {
      type: "array",
      items: [{ type: "string", pattern }],
      additionalItems: { type: "string", pattern },
    };
    expect(payloadIssues(listed, ["", `${"a".repeat(60)}!`].reverse())).toEqual([]);
    expect(
      payloadIssues({ properties: { enum: { type: "string", pattern } } }, { enum: `${"a".repeat(60)}!` }),
    ).toEqual([]);
    expect(payloadIssues({ $ref: "https://elsewhere.example/schema.json" }, {})).toBeNull();
  });

  test("is given up where it means itself, or doubles at each step", () => {
    expect(payloadIssues({ anyOf: [{ $ref: "#" }, { $ref: "#" }] }, "x")).toBeNull();
    const twice = (at: number) => ({ anyOf: [{ $ref: `#/$defs/s${at}` }, { $ref: `#/$defs/s${at}` }] });
    const $defs: Record<string, Json> = { s40: { type: "number" } };
    for (let at = 0; at < 40; at++) $defs[`s${at}`] = twice(at + 1);
    const bomb = { $ref: "#/$defs/s0", $defs };
    expect(payloadIssues(bomb, "x")).toBeNull();
    // And is known from then on.
    const began = process.cpuUsage();
    for (let again = 0; again < 20; again++) expect(payloadIssues(bomb, "x")).toBeNull();
    const { user, system } = process.cpuUsage(began);
    expect((user + system) / 1_000).toBeLessThan(2_000);
  });
});
