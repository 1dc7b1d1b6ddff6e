import { describe, expect, test } from "vitest";
import { z } from "zod";
import { saidSchema } from "../library/payload.ts";
import { edited, reverted } from "./edits.ts";
import { payloadSchemaOf } from "./payload-schema.ts";
import { defineTask } from "./task.ts";
import { readWritten, writtenTask } from "./written.ts";

const schema = { type: "object", properties: { ledger: { type: "string" } }, required: ["ledger"] };

describe("the schema of a payload", () => {
  test("is derived from the schema in code if possible", () => {
    const said = saidSchema(z.object({ ledger: z.string(), dry: z.boolean().default(false) }));
    expect(said).toMatchObject({ type: "object", properties: { ledger: { type: "string" }, dry: { default: false } } });
    // A field with a default is not required.
    expect(said?.required).toEqual(["ledger"]);
    expect(saidSchema(z.object({ at: z.custom((value) => value instanceof Map) }))).toBeUndefined();
    const other = { "~standard": { version: 1 as const, vendor: "own", validate: (value: unknown) => ({ value }) } };
    expect([saidSchema(other), saidSchema(undefined)]).toEqual([undefined, undefined]);
  });

  test("is part of a task: stored, written, edited and reverted; if absent, it is not in the definition", () => {
    const plain = defineTask("settle", {});
    expect("payloadSchema" in plain).toBe(false);
    const task = defineTask("settle", { payloadSchema: schema });
    expect(readWritten("settle", writtenTask(task))).toEqual(task);
    const changed = edited(plain, { payloadSchema: schema });
    expect(changed).toMatchObject({ payloadSchema: schema, asDefined: { payloadSchema: null } });
    expect(reverted(changed, ["payloadSchema"])).toEqual(plain);
    expect(edited(task, { payloadSchema: null })).toMatchObject({ asDefined: { payloadSchema: schema } });
  });

  test.each([["text"], [[1]], [3], [{ long: "x".repeat(40_000) }]])("that is %j is refused", (given) => {
    expect(() => payloadSchemaOf("settle", given)).toThrow(expect.objectContaining({ code: "TASK_INVALID" }));
  });
});
