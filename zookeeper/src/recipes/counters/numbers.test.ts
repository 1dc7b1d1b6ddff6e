import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeCount, encodeCount } from "../base/count.ts";
import { decodeLong, encodeLong } from "./atomic-long.ts";

describe("numbers in Java's format", () => {
  it("have 4 bytes, the high byte first", () => {
    expect(encodeCount(1, "/a")).toEqual(Buffer.from([0, 0, 0, 1]));
    expect(encodeCount(-2, "/a")).toEqual(Buffer.from([255, 255, 255, 254]));
    fc.assert(fc.property(fc.integer(), (count) => decodeCount(encodeCount(count, "/a"), "/a") === count));
    for (const wrong of [0.5, 2 ** 31, -(2 ** 31) - 1, Number.NaN]) {
      expect(() => encodeCount(wrong, "/a")).toThrow(expect.objectContaining({ code: "OPTION_INVALID", path: "/a" }));
    }
    for (const length of [0, 3, 8]) {
      expect(() => decodeCount(Buffer.alloc(length), "/a")).toThrow(expect.objectContaining({ code: "DATA_INVALID" }));
    }
  });

  it("or 8 bytes, and empty data means 0", () => {
    expect(encodeLong(-2n, "/a").toString("hex")).toBe("fffffffffffffffe");
    expect(decodeLong(Buffer.alloc(0), "/a")).toBe(0n);
    const long = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    fc.assert(fc.property(long, (value) => decodeLong(encodeLong(value, "/a"), "/a") === value));
    for (const wrong of [2n ** 63n, -(2n ** 63n) - 1n]) {
      expect(() => encodeLong(wrong, "/a")).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
    }
    expect(() => decodeLong(Buffer.alloc(4), "/a")).toThrow(expect.objectContaining({ code: "DATA_INVALID" }));
  });
});
