import { expect, test } from "vitest";
import { isLabels, labelsOf, labelTexts } from "./labels.ts";

test.each([
  ["", {}, []],
  ["customer=42", { customer: "42" }, ["customer:42"]],
  [
    " customer = 42 ,, region=eu=west, empty=",
    { customer: "42", region: "eu=west", empty: "" },
    ["customer:42", "region:eu=west", "empty:"],
  ],
])("%j is labels", (text, labels, texts) => {
  expect(isLabels(text)).toBe(true);
  expect(labelsOf(text)).toEqual(labels);
  expect(labelTexts(text)).toEqual(texts);
});

test.each(["customer", "customer, region=eu", "=eu", " =eu", "a=1, a=2"])(
  "%j of an address becomes no filter for an empty value",
  (text) => {
    expect(isLabels(text)).toBe(false);
    expect(labelTexts(text)).toEqual([text]);
  },
);
