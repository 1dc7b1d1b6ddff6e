import { expect, test } from "vitest";
import { makeSecret } from "./worker-key.ts";

test("a secret has 256 random bits", () => {
  const made = Array.from({ length: 2_000 }, () => Buffer.from(makeSecret(), "base64url"));
  expect(new Set(made.map(({ length }) => length))).toEqual(new Set([32]));
  expect(new Set(made.map((bytes) => bytes.toString("hex"))).size).toBe(2_000);
  for (let bit = 0; bit < 256; bit++) {
    const ones = made.filter((bytes) => ((bytes[bit >> 3] ?? 0) >> (bit & 7)) & 1).length;
    // 200 is nine standard deviations, so a random failure practically never occurs.
    expect([bit, Math.abs(ones - 1_000) < 200]).toEqual([bit, true]);
  }
});
