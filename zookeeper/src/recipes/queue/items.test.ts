import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isZooKeeperError } from "../../base/errors.ts";
import { decodeItems, encodeItems } from "./items.ts";

const invalid = (hex: string) => {
  try {
    decodeItems(Buffer.from(hex.replaceAll(" ", ""), "hex"), "/q/queue-0000000001");
  } catch (error) {
    if (isZooKeeperError(error, "DATA_INVALID")) return `${error.path} ${error.message}`;
    throw error;
  }
  return "valid";
};

describe("queue items", () => {
  it("have the same layout as Curator's", () => {
    expect(encodeItems(["hello"]).toString("hex")).toBe("00010001010000000568656c6c6f02");
    expect(encodeItems(["a", "", Buffer.from([255])]).toString("hex")).toBe(
      "00010001010000000161010000000001" + "00000001ff02",
    );
    expect(encodeItems([]).toString("hex")).toBe("0001000102");
  });

  it("are decoded as they were encoded", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 })), (items) => {
        const back = decodeItems(encodeItems(items), "/q");
        expect(back.map((item) => [...item])).toEqual(items.map((item) => [...item]));
      }),
    );
  });

  it("may be followed by ignored bytes, as in Java", () => {
    const bytes = Buffer.concat([encodeItems(["x"]), Buffer.from("more")]);
    expect(decodeItems(bytes, "/q").map(String)).toEqual(["x"]);
  });

  it("report what is wrong with invalid bytes, and where", () => {
    expect(invalid("")).toMatch(/^\/q\/queue-0000000001 .*0 bytes are too few/);
    expect(invalid("0001000202")).toMatch(/begins with 00010002/);
    expect(invalid("00010001 03")).toMatch(/byte 4 is 3/);
    expect(invalid("00010001 01 00000001 61")).toMatch(/no end/);
    expect(invalid("00010001 01 00000002 61")).toMatch(/cut off/);
    expect(invalid("00010001 01 0000")).toMatch(/cut off/);
    expect(invalid("00010001 01 ffffffff 6102")).toMatch(/cut off/);
  });
});
