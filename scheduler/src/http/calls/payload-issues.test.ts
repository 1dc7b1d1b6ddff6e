import { Ajv2020 } from "ajv/dist/2020.js";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { Json } from "../../base/json.ts";
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

/** The number of attempts: on a busy machine, the time limit may end a check that is not costly. */
const askedAtMost = 50;
const issuesOf: typeof payloadIssues = (given, payload) => {
  for (let time = 0; time < askedAtMost; time++) {
    const issues = payloadIssues(given, payload);
    if (issues !== null) return issues;
  }
  return null;
};

/** Makes each check appear to use `ms` of CPU time, because a check that exceeds the time limit on a busy machine may have used little. */
const spends = (ms: number) => vi.spyOn(process, "cpuUsage").mockReturnValue({ user: ms * 1_000, system: 0 });
afterEach(() => vi.restoreAllMocks());

describe("a payload's schema", () => {
  test("reports what is wrong with a payload, and its path", () => {
    const of = (payload: unknown) => issuesOf(schema, payload)?.map(({ path }) => path);
    expect(of({ ledger: "aa", lines: [{ sku: "a" }] })).toEqual([]);
    expect(of({ pattern: 0, lines: [{ sku: "a" }, {}] })).toEqual([["ledger"], ["pattern"], ["lines", 1, "sku"]]);
    expect(of(null)).toEqual([[]]);
    // The $id of a payload schema must not collide with that of another schema or of the dialect's meta-schema.
    for (const $id of ["http://json-schema.org/draft-07/schema", "x"])
      for (let again = 0; again < 2; again++) expect(issuesOf({ ...schema, $id }, { ledger: "aa" })).toEqual([]);
  });

  test("checks patterns, and interrupts a pattern that never ends", () => {
    const held = (ledger: string) => issuesOf({ ...schema, title: "short" }, { ledger });
    expect(held("aa")).toEqual([]);
    expect(held("b")).toEqual([{ path: ["ledger"], message: expect.stringContaining("^(a+)+$") }]);
    const names = { type: "object", patternProperties: { "^n": { type: "number" } }, additionalProperties: false };
    expect(issuesOf(names, { n1: 1 })).toEqual([]);
    expect(issuesOf(names, { n1: "x", m: 1 })?.map(({ path }) => path)).toEqual([[], ["n1"]]);
    const list = { type: "array", items: [{ type: "string" }], additionalItems: { type: "string", pattern: "^b" } };
    expect(issuesOf(list, ["a", "c"]), "of an older dialect").toMatchObject([{ path: [1] }]);
    const costly = { type: "string", pattern: "^(a+)+$" };
    const endless = `${"a".repeat(60)}!`;
    spends(0);
    expect(payloadIssues(costly, endless)).toBeNull();
    expect(issuesOf(costly, "a"), "a check that got no processor says nothing of its schema").toEqual([]);
    spends(500);
    expect(payloadIssues(costly, endless)).toBeNull();
    expect(payloadIssues(costly, "a"), "known from then on").toBeNull();
  });

  // An earlier version ignored these keywords and therefore reported each of these payloads as valid.
  test.each<[string, { [name: string]: Json }, Json]>([
    ["a bound without a type", { minimum: 2 }, 1],
    ["what stands beside a reference", { $defs: { s: { type: "string" } }, $ref: "#/$defs/s", minLength: 3 }, "a"],
    ["what stands beside anyOf", { type: "object", required: ["a"], anyOf: [{ type: "object" }] }, {}],
    ["allOf", { allOf: [{ type: "string" }, { minLength: 3 }] }, "a"],
    ["a list's length", { type: "array", minItems: 2 }, [1]],
    ["not", { not: { type: "string" } }, "x"],
    ["a condition", { if: { type: "number" }, else: { minLength: 3 } }, "x"],
    ["dependentRequired", { dependentRequired: { a: ["b"] } }, { a: 1 }],
    ["a format", { type: "string", format: "date-time" }, "tomorrow"],
  ])("%s is checked", (_, given, payload) => {
    expect(issuesOf(given, payload)).not.toEqual([]);
    expect(issuesOf(given, payload)).not.toBeNull();
  });

  test.each<[string, { [name: string]: Json }]>([
    ["a word that it does not know", { type: "string", shape: "round" }],
    ["a format that it does not know", { type: "string", format: "idn-hostname" }],
    ["a schema elsewhere", { $ref: "https://elsewhere.example/schema.json" }],
    ["another dialect", { $schema: "http://json-schema.org/draft-04/schema#", type: "string" }],
    ["a pattern that is none", { type: "string", pattern: "(" }],
  ])("is reported as not checked with %s", (_, given) => {
    expect(payloadIssues(given, "x")).toBeNull();
  });

  test("is given up if it refers to itself or doubles at each step", () => {
    expect(payloadIssues({ anyOf: [{ $ref: "#" }, { $ref: "#" }] }, "x")).toBeNull();
    const twice = (at: number) => ({ anyOf: [{ $ref: `#/$defs/s${at}` }, { $ref: `#/$defs/s${at}` }] });
    const $defs: Record<string, Json> = { s40: { type: "number" } };
    for (let at = 0; at < 40; at++) $defs[`s${at}`] = twice(at + 1);
    const bomb = { $ref: "#/$defs/s0", $defs };
    const compile = vi.spyOn(Ajv2020.prototype, "compile");
    expect(issuesOf({ type: "number", title: "compiled" }, 1)).toEqual([]);
    expect(compile).toHaveBeenCalled();
    spends(500);
    expect(payloadIssues(bomb, "x")).toBeNull();
    compile.mockClear();
    for (let again = 0; again < 20; again++) expect(payloadIssues(bomb, "x")).toBeNull();
    expect(compile, "known from then on").not.toHaveBeenCalled();
  });
});
