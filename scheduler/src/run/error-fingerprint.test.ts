import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cutOffAfter } from "../base/cut-off.ts";
import { fingerprintOf, fingerprintOfText, normalised, reasonOf } from "./error-fingerprint.ts";

describe("the fingerprint of an error", () => {
  it.each([
    ["order 4711 was refused", "order # was refused"],
    ["connect ECONNREFUSED 127.0.0.1:5432", "connect ECONNREFUSED #"],
    [`no file "/var/lib/a b.csv"`, "no file …"],
    ["it's `x` that isn't 'y z'", "it's … that isn't …"],
    ["run 3f2504e0-4f89-11d3-9a0c-0305e82c3301 at 0xDEADBEEF", "run # at #"],
    ["hash deadbeef differs", "hash # differs"],
    ["ids 1, 2, 3 and 4", "ids # and #"],
    ["at 2026-11-21T10:00:00.000Z:\n  gone", "at #: gone"],
    ["„nichts“ zu tun", "„nichts“ zu tun"],
  ])("removes the data from %j", (message, words) => {
    expect(normalised(message)).toBe(words);
  });

  it("is equal for failures that differ only in data, and differs for other codes or other words", () => {
    const of = (message: string, code?: string) => fingerprintOf({ message, ...(code ? { code } : {}) });
    expect(of("order 1 refused")).toBe(of("order 22 refused"));
    expect(of("order 1 refused")).not.toBe(of("order 1 lost"));
    expect(of("order 1 refused", "A")).not.toBe(of("order 1 refused", "B"));
    expect(of("x")).toMatch(/^[0-9a-f]{12}$/);
    // Dead letters store this value for years, so it must not change.
    expect(of("order 1 refused", "E_ORDER")).toBe("c512e38ba994");
  });

  it("accepts any thrown value", () => {
    expect(reasonOf(null)).toEqual({ code: "", words: "" });
    expect(reasonOf("gone 7")).toEqual({ code: "", words: "gone #" });
    expect(reasonOf({ why: "x" })).toEqual({ code: "", words: "{…:…}" });
    expect(reasonOf([1, 2])).toEqual({ code: "", words: "[#]" });
    expect(fingerprintOfText(null)).toBe(fingerprintOf(null));
    expect(fingerprintOfText('{"message":"a 1"}')).toBe(fingerprintOf({ message: "a 2" }));
  });

  it("does not depend on the numbers in any message", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("disk", "of", "node", "is full"), { minLength: 1 }),
        fc.nat(),
        fc.nat(),
        (w, a, b) => {
          const text = (n: number) => w.join(` ${n} `) + n;
          return normalised(text(a)) === normalised(text(b));
        },
      ),
    );
  });

  it("reads only the beginning of a hostile message, so that its length does not matter", () => {
    for (const text of ['"', "'", "a1-", "#,", "`'\""]) {
      const long = text.repeat(1_000_000);
      expect(cutOffAfter(60_000, () => normalised(long))).toBe(normalised(long.slice(0, 1_000)));
    }
  });
});
