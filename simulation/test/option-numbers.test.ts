import { expect, it } from "vitest";
import { positiveNumber, wholeNumber } from "../src/option-numbers.ts";

it("accepts a number", () => {
  expect(wholeNumber("seeds", "300")).toBe(300);
  expect(wholeNumber("from", "0", 0)).toBe(0);
  expect(positiveNumber("minutes", "2.5")).toBe(2.5);
});

it.each(["2403..4000", "", " ", "x", "1.5", "0", "-3", "1e99"])("refuses %j, which would give an empty run", (text) => {
  expect(() => wholeNumber("seeds", text)).toThrow(`--seeds is a whole number from 1 on, not ${JSON.stringify(text)}`);
});

it.each(["", "0", "-1", "Infinity", "soon"])("refuses %j as a duration", (text) => {
  expect(() => positiveNumber("minutes", text)).toThrow(`--minutes is a number above 0, not ${JSON.stringify(text)}`);
});
