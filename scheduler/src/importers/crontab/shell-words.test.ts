import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type SplitCommand, splitCommand } from "./shell-words.ts";

const argv = (text: string) => {
  const split = splitCommand(text);
  return "argv" in split ? split.argv : split.needsShell;
};

test.each([
  ["/usr/bin/a b  c\td", ["/usr/bin/a", "b", "c", "d"]],
  [`a 'b  c' "d \\" e" f\\ g`, ["a", "b  c", 'd " e', "f g"]],
  [`a '' ""`, ["a", "", ""]],
  [`a "x\\y" 'x\\y' x\\y`, ["a", "x\\y", "x\\y", "xy"]],
  [`a '$HOME' "\\$HOME" \\$HOME '*' "?" \\;`, ["a", "$HOME", "$HOME", "$HOME", "*", "?", ";"]],
  ["find . -exec rm {} \\;", ["find", ".", "-exec", "rm", "{}", ";"]],
  ["cp file~ a=b x#y", ["cp", "file~", "a=b", "x#y"]],
  ["a b\\", ["a", "b\\"]],
])("%s", (text, expected) => {
  expect(argv(text)).toEqual(expected);
});

test("assignments before the program become its environment, and a comment is separated", () => {
  expect(splitCommand(`LANG=C X="a b" A= prog x=1 # nightly`)).toEqual({
    argv: ["prog", "x=1"],
    env: { LANG: "C", X: "a b", A: "" },
    comment: "nightly",
  });
  expect(splitCommand("__proto__=x prog")).toMatchObject({
    argv: ["prog"],
    env: Object.fromEntries([["__proto__", "x"]]),
  });
  expect(argv(`"A"=b`)).toEqual(["A=b"]);
});

describe("syntax that needs a shell is named", () => {
  test.each([
    ["a | b", /pipe/],
    ["a && b", /chain/],
    ["a || b", /pipe or a chain/],
    ["a; b", /several/],
    ["a > /dev/null 2>&1", /redirection/],
    ["a < b", /redirection/],
    ["a $HOME", /expansion/],
    ['a "$HOME"', /expansion/],
    ["a `b`", /substitution/],
    ['a "`b`"', /substitution/],
    ["a *.log", /pattern/],
    ["a b?", /pattern/],
    ["a [ab]", /pattern/],
    ["a ~/b", /home/],
    ["A=~/b a", /home/],
    ["a {b,c}", /brace/],
    ["(a)", /subshell/],
    ["cd /x", /cd/],
    ["test -x /a", /test/],
    ["[ -x /a ]", /\[, which the shell/],
    ["if a; then b; fi", /if, which/],
    ["! a", /!, which/],
    ["X=1 exec a", /exec/],
    ["'cd' /x", /cd/],
    ["echo 'a\\nb'", /backslashes/],
  ])("%s", (text, reason) => {
    expect(argv(text)).toMatch(reason);
  });
});

test.each(["a 'b", 'a "b', "", "   ", "A=b", "# only a comment", "''"])("%j is refused", (text) => {
  expect(() => splitCommand(text)).toThrow(expect.objectContaining({ code: "CRONTAB_INVALID" }));
});

test("splits as /bin/sh does, for every text that it accepts", () => {
  const piece = fc.constantFrom(
    "a",
    "b c",
    "'",
    '"',
    "\\",
    " ",
    "#",
    "=",
    "$",
    "~",
    "{}",
    "é",
    "\t",
    "x=",
    "%",
    "!",
    ":",
    "]",
  );
  const seed = Math.floor(Math.random() * 2 ** 31);
  const texts = new Set<string>();
  for (const pieces of fc.sample(fc.array(piece, { maxLength: 10 }), { numRuns: 1500, seed })) {
    const text = `p ${pieces.join("")}`;
    try {
      if ("argv" in splitCommand(text)) texts.add(text);
    } catch (error) {
      // `splitCommand` throws because a quote is not closed, so there are no words to compare.
      expect(error).toMatchObject({ code: "CRONTAB_INVALID" });
    }
  }
  // Texts that end in a backslash are left out, because the shell would join them with the next line of the script.
  const list = [...texts].filter((text) => !text.endsWith("\\"));
  expect(list.length, `seed ${seed}`).toBeGreaterThan(100);
  expect(
    list.map((text) => wordsOf(splitCommand(text))),
    `seed ${seed}`,
  ).toEqual(shellsWords(list));
});

const wordsOf = (split: SplitCommand) =>
  ("argv" in split ? split.argv.slice(1) : []).map((word) => `<${word}>`).join("");

/** Runs one shell for all texts. For each text, the shell prints a line with every word in angle brackets. */
function shellsWords(texts: string[]): string[] {
  const script = `p() { for w; do printf '<%s>' "$w"; done; printf '\\n'; }\n${texts.join("\n")}\n`;
  return spawnSync("/bin/sh", ["-c", script], { encoding: "utf8" }).stdout.split("\n").slice(0, -1);
}
