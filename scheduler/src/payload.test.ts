import { describe, expect, it } from "vitest";
import { z } from "zod";
import { validatePayload } from "./payload.ts";

const schema = z.object({ ledger: z.string(), lines: z.array(z.object({ amount: z.number() })).default([]) });

describe("payloads against their schema", () => {
  it("come out as the schema makes them", async () => {
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

  it("say what to do when there was none", async () => {
    await expect(validatePayload(schema, undefined, "t")).rejects.toMatchObject({
      hint: expect.stringContaining("slotPayload"),
    });
    await expect(validatePayload(schema, 7, "t")).rejects.toMatchObject({ hint: "" });
  });
});
