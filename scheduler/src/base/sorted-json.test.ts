import fc from "fast-check";
import { expect, test } from "vitest";
import { sortedJson } from "./json.ts";

/** A slow and simple implementation with which the results are compared. */
const plain = (value: unknown): string =>
  JSON.stringify(value, (_key, part: unknown) =>
    part !== null && typeof part === "object" && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );

test("equal content gives equal text: JSON with sorted keys", () => {
  const key = fc.oneof(fc.string(), fc.constantFrom("10", "9", "09", "a", "toJSON", "__proto__"));
  const leaf = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.double(),
    fc.boolean(),
    fc.constantFrom(null, undefined),
    fc.date({ noInvalidDate: true }),
  );
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof({ maxDepth: 2 }, leaf, fc.array(tie("value")), fc.dictionary(key, tie("value"))),
  }));
  fc.assert(
    fc.property(value, (one) => {
      expect(sortedJson(one)).toBe(plain(one));
    }),
    { numRuns: 40 },
  );
});
