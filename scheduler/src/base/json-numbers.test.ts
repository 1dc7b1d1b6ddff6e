import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { inexactNumbers, isExact } from "./json-numbers.ts";

describe("numbers of a JSON text", () => {
  it.each([
    ["0", true],
    ["-0", true],
    ["0.000", true],
    ["0.1", true],
    ["1e3", true],
    ["100000000000000000000", true],
    ["9007199254740993", false],
    ["9007199254740992", true],
    ["12345678901234567890", false],
    ["0.10000000000000001", true],
    ["0.30000000000000004", true],
    ["12345678901234567.89", false],
    ["1e400", false],
    ["1e-400", false],
    ["5e-324", true],
    ["1.7976931348623157e308", true],
    [`1${"0".repeat(200)}1`, false],
    [`0.${"1".repeat(101)}`, false],
  ])("%s is exact: %s", (number, held) => {
    expect(isExact(number)).toBe(held);
  });

  it("every number is exact in the form that JavaScript writes, and with seventeen digits", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
        expect(isExact(JSON.stringify(number))).toBe(true);
        expect(isExact(number.toPrecision(17).replace(/e\+/, "e"))).toBe(true);
      }),
    );
  });

  it("every power of two is exact", () => {
    for (let power = -1_074; power < 1_024; power++) {
      expect(isExact(String(2 ** power))).toBe(true);
      expect(isExact((2 ** power).toPrecision(17))).toBe(true);
    }
  });

  it("an integer beyond 2^53 is exact only if a double can represent it", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 2n ** 53n, max: 2n ** 80n }), (integer) => {
        expect(isExact(String(integer))).toBe(BigInt(Number(integer)) === integer);
      }),
    );
  });

  it.each([
    ["12345678901234567890", ""],
    ['{"a":12345678901234567890}', "a"],
    ['{"a":1,"b" : {"c,]\\"}":[1,{},[ 0 ], -12345678901234567890]}}', 'b.c,]"}.3'],
    ['[{"x":"12345678901234567890"},{"x":{"y":1E999}}]', "1.x.y"],
    ['{"1e400":["1e400",1e400]}', "1e400.1"],
  ])("%s: the path of the inexact number is %j", (text, path) => {
    expect([...inexactNumbers(text)].map(({ path }) => path.join("."))).toEqual([path]);
  });

  it("finds every inexact number", () => {
    const found = [...inexactNumbers('{"a":[1e400,1,{"b":12345678901234567890}],"c":0.5,"d":-1e999}')];
    expect(found).toEqual([
      { number: "1e400", path: ["a", 0] },
      { number: "12345678901234567890", path: ["a", 2, "b"] },
      { number: "-1e999", path: ["d"] },
    ]);
  });

  it("finds nothing in a text that JSON writes unchanged", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const suspicious = `{"e":"12345678901234567890","in":${JSON.stringify(JSON.parse(text))}}`;
        expect([...inexactNumbers(suspicious)]).toEqual([]);
      }),
    );
  });
});
