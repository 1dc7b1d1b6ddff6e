import { expect, test } from "vitest";
import { hasVerb, hasWords, nameIn, numberIn } from "./act-words.ts";

const verbs = "run pause resume drain create group now";
const chinese = "运行 暂停 恢复 排空 创建 组";

test.each<[string, string, string]>([
  ["pause send-inv", verbs, "send-inv"],
  ["Pause  group billing", verbs, "billing"],
  ["send-invoices", verbs, "send-invoices"],
  ["pause", verbs, "pause"],
  ["resume-mail", verbs, "resume-mail"],
  ["暂停send-inv", chinese, "send-inv"],
  ["暂停 send-inv", chinese, "send-inv"],
  ["暂停", chinese, "暂停"],
])("%j searches a name", (text, known, name) => {
  expect(nameIn(text, known)).toBe(name);
});

test("an entry is found by each of its words, in any order", () => {
  expect(hasWords("Pause send-invoices…", "pause inv")).toBe(true);
  expect(hasWords("Pause send-invoices…", "inv pau")).toBe(true);
  expect(hasWords("Pause send-invoices…", "drain inv")).toBe(false);
  expect(hasWords("暂停 send-invoices…", "暂停send")).toBe(true);
  expect(hasWords("暂停 send-invoices…", "恢复send")).toBe(false);
});

test.each<[string, string, boolean]>([
  ["pause", verbs, true],
  ["12 again", "run again", true],
  ["against", "run again", false],
  ["暂停12", chinese, true],
  ["时间线", chinese, false],
])("%j has the word of an act, or none", (text, known, expected) => {
  expect(hasVerb(text, known)).toBe(expected);
});

test.each([
  ["cancel 12", "12"],
  ["取消12", "12"],
  ["12 57", "12"],
  ["bench-00007", ""],
  ["sku7", ""],
  ["again", ""],
])("the number in %j is %j", (text, expected) => {
  expect(numberIn(text)).toBe(expected);
});
