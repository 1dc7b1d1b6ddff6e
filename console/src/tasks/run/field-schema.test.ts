import { describe, expect, test } from "vitest";
import { fieldOf, firstValue, placed, type Schema } from "./field-schema.ts";

const root: Schema = {
  type: "object",
  properties: {
    ledger: { type: "string" },
    mode: { enum: ["full", "delta"], default: "delta" },
    version: { const: 2 },
    since: { anyOf: [{ type: "string", format: "date" }, { type: "null" }] },
    lines: { type: "array", items: { $ref: "#/$defs/line" } },
    dry: { type: ["boolean", "null"] },
    any: {},
    tree: { $ref: "#/$defs/tree" },
  },
  required: ["ledger", "version", "lines", "dry"],
  $defs: {
    line: { type: "object", properties: { sku: { type: "string" }, count: { type: "integer", default: 1 } } },
    tree: { type: "object", properties: { child: { $ref: "#/$defs/tree" } } },
  },
};
const kindOf = (schema: Schema) => fieldOf(schema, root).kind;

describe("a form's fields", () => {
  test("have the kinds that the schema defines, including references and nullable types", () => {
    const kinds = Object.entries(root.properties ?? {}).map(([name, schema]) => [name, kindOf(schema)]);
    expect(Object.fromEntries(kinds)).toEqual({
      ledger: "text",
      mode: "choice",
      version: "choice",
      since: "text",
      lines: "list",
      dry: "yes-no",
      any: "json",
      tree: "object",
    });
    expect(fieldOf(root.properties?.since as Schema, root)).toMatchObject({ format: "date" });
  });

  test("are ordered with required fields first, then by name", () => {
    const field = fieldOf(root, root);
    expect(field.kind === "object" && field.properties.map(([name]) => name)).toEqual([
      "ledger",
      "version",
      "lines",
      "dry",
      "any",
      "mode",
      "since",
      "tree",
    ]);
  });

  test("are JSON if no other field can show them, and recursive schemas end", () => {
    for (const schema of [
      { anyOf: [{ type: "string" }, { type: "number" }] },
      { type: "object" },
      { type: "array", items: [{ type: "string" }] },
      { $ref: "#/$defs/none" },
      { $ref: "#/$defs/%" },
      { $ref: "#/$defs/%ff" },
    ] as Schema[])
      expect(kindOf(schema)).toBe("json");
    const loop: Schema = { $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } }, $ref: "#/$defs/a" };
    expect(fieldOf(loop, loop).kind).toBe("json");
    const deep: Schema = { type: "object", properties: { next: { $ref: "#" } }, required: ["next"] };
    expect(JSON.stringify(firstValue(deep, deep)).length).toBeLessThan(200);
  });

  test("start with their defaults and with required values", () => {
    expect(firstValue(root, root)).toEqual({ mode: "delta", version: 2, lines: [], dry: false });
    expect(firstValue(root.$defs?.line as Schema, root)).toEqual({ count: 1 });
  });

  test("change only their own part of the value", () => {
    const before = { a: 1, lines: [{ sku: "x" }], z: 2 };
    expect(placed(before, ["lines", 1, "sku"], "y")).toEqual({ a: 1, lines: [{ sku: "x" }, { sku: "y" }], z: 2 });
    expect(placed(before, ["a"], undefined)).toEqual({ lines: [{ sku: "x" }], z: 2 });
    expect(Object.keys(placed(before, ["a"], 3) as object)).toEqual(["a", "lines", "z"]);
    expect([placed(undefined, ["a", "b"], 1), before.lines]).toEqual([{ a: { b: 1 } }, [{ sku: "x" }]]);
  });
});
