import { expect, test } from "vitest";
import { bare, pieces } from "./ansi.ts";

const texts = (text: string) => pieces(text).map((piece) => piece.text);

test("applies the colour codes of a terminal, and drops all other escape sequences", () => {
  expect(pieces("a\u001b[31;1mred\u001b[0m b")).toEqual([
    { text: "a", colour: null, bold: false, faint: false, underlined: false },
    { text: "red", colour: 1, bold: true, faint: false, underlined: false },
    { text: " b", colour: null, bold: false, faint: false, underlined: false },
  ]);
  expect(pieces("\u001b[38;5;12mx\u001b[38;2;1;2;3my\u001b[92mz").map(({ colour }) => colour)).toEqual([12, 12, 10]);
  expect(texts("\u001b[2J\u001b]0;title\u0007one\u001b[4Atwo\u0000\u0008three")).toEqual(["one", "two", "three"]);
  expect(texts("\u001b]8;;javascript:alert(1)\u001b\\click\u001b]8;;\u001b\\")).toEqual(["click"]);
});

test("replaces characters that reverse the text direction", () => {
  expect(texts("user\u202egnp.exe")).toEqual(["user\ufffdgnp.exe"]);
});

test("gives the text without escape codes for searching", () => {
  expect(bare("a\u001b[31mb\u001b[0mc")).toBe("abc");
});

test("accepts any text", () => {
  for (const text of [
    "",
    "\u001b",
    "\u001b[",
    "\u001b[999999999m",
    "\u001b[38;5m",
    "\u001b]unended",
    "<img src=x onerror=alert(1)>",
  ])
    expect(texts(text).join("")).toBe(bare(text));
});
