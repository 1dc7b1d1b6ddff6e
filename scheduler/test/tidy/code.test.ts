import { describe, expect, it } from "vitest";
import { importsOf, partsOf } from "./code.ts";

describe("code and comments", () => {
  const blanked = (text: string) => {
    const { code, comments } = partsOf(text);
    expect(code).toHaveLength(text.length);
    expect(comments).toHaveLength(text.length);
    return code.replace(/\s+/g, " ").trim();
  };

  it.each([
    ["a / b / c; // d", "a / b / c;"],
    ["f(/[/]\"/g) + 'x'", "f(/ g) + ' '"],
    ["return /a'b/.test(x) ? 1 : 2", "return / /.test(x) ? 1 : 2"],
    ["`a ${b + `c ${{ d: 1 }.d} e`} f` + g", "` {b + ` {{ d: 1 }.d} `} ` + g"],
    ["'it\\'s' + \"a // b\"", "' ' + \" \""],
    ["a /* b\n c */ d", "a d"],
    ["`\\`${a}`", "` {a}`"],
    ["x = y as string[] / 2", "x = y as string[] / 2"],
    ["`open", "` n"],
  ])("%s", (text, expected) => {
    expect(blanked(text)).toBe(expected);
  });

  it("keeps the line breaks", () => {
    expect(partsOf("a\n/* b\n */\n`c\n`").code.split("\n")).toHaveLength(5);
  });

  it("finds imports only in code", () => {
    const text =
      "import a from 'a';\nexport { b } from \"b\"; // from 'c'\nconst d = \"import 'e'\"; await import('f');";
    expect(importsOf(text).map(({ specifier }) => specifier)).toEqual(["a", "b", "f"]);
  });
});
