import { expect, test } from "vitest";
import { lineOf, wordsOf } from "./words-of.ts";

test.each([
  ["/usr/bin/backup --full", ["/usr/bin/backup", "--full"]],
  [`sh -c 'du -s /var | sort -n'`, ["sh", "-c", "du -s /var | sort -n"]],
  [`echo "a \\"b\\"" '' c\\ d`, ["echo", 'a "b"', "", "c d"]],
  ["  ", []],
])("%s is split into words", (line, words) => {
  expect(wordsOf(line)).toEqual(words);
  expect(wordsOf(lineOf(words))).toEqual(words);
});

test("a command line with an unclosed quote has no words", () => {
  expect(wordsOf("echo 'a b")).toBe(undefined);
});

test("quotes within a word survive writing and reading it", () => {
  const words = ["echo", "it's", "$HOME", "a\\b"];
  expect(wordsOf(lineOf(words))).toEqual(words);
});
