import { describe, expect, it } from "vitest";
import { z } from "zod";
import { payloadText, validateKept, validatePayload } from "./payload.ts";

const schema = z.object({ ledger: z.string(), lines: z.array(z.object({ amount: z.number() })).default([]) });

describe("payloads against their schema", () => {
  it("are returned as the schema transforms them", async () => {
    expect(await validatePayload(schema, { ledger: "eu" }, "settle")).toEqual({ ledger: "eu", lines: [] });
    const later = z.string().transform(async (text) => text.length);
    expect(await validatePayload(later, "four", "t")).toBe(4);
  });

  it("are refused with every issue and its path", async () => {
    const wrong = validatePayload(schema, { lines: [{ amount: 1 }, { amount: "x" }] }, "settle");
    await expect(wrong).rejects.toMatchObject({
      code: "PAYLOAD_INVALID",
      message: expect.stringMatching(/task settle.*ledger: .*; lines\.1\.amount: /),
    });
  });

  it("are refused with a hint if there was none", async () => {
    await expect(validatePayload(schema, undefined, "t")).rejects.toMatchObject({
      hint: expect.stringContaining("slotPayload"),
    });
    await expect(validatePayload(schema, 7, "t")).rejects.toMatchObject({ hint: "" });
  });

  it("are checked when enqueued, in the JSON form that a worker receives", async () => {
    const date = z.object({ when: z.date() });
    await expect(payloadText(date, { when: new Date(0) }, "t")).rejects.toMatchObject({
      code: "PAYLOAD_INVALID",
      hint: expect.stringContaining("Date"),
    });
    expect(await payloadText(z.object({ when: z.coerce.date() }), { when: new Date(0) }, "t")).toBe(
      '{"when":"1970-01-01T00:00:00.000Z"}',
    );
    await expect(payloadText(z.string().nullable(), undefined, "t")).rejects.toMatchObject({ code: "PAYLOAD_INVALID" });
    expect(await payloadText(z.string().nullable(), null, "t")).toBe("null");
  });

  it("that are null in the store count as missing, or as null if the schema accepts null", async () => {
    expect(await validateKept(z.string().nullable(), null, "t")).toBeNull();
    expect(await validateKept(z.string().nullable().default("x"), null, "t")).toBe("x");
    expect(await validateKept(z.string().nullish(), null, "t")).toBeUndefined();
    await expect(validateKept(z.string(), null, "t")).rejects.toMatchObject({
      message: expect.stringContaining("received undefined"),
    });
  });
});
