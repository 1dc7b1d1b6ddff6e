import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cutStyled, styledWidth } from "./styled-text.ts";
import { cut, pad, plain, plainLines, widthOf, wrap } from "./text.ts";

describe("text on a terminal", () => {
  it("makes control characters visible, and lets none through", () => {
    expect(plain("\u001b[2Jgone\u0007")).toBe("␛[2Jgone␇");
    expect(plain("a\tb\r\nc")).toBe("a b c");
    expect(plain("safe\u202egpj.exe")).toBe("safe�gpj.exe");
    expect(plain("\u009b31mred")).toBe("�31mred");
    expect(plainLines("one\r\ntwo\u001b")).toEqual(["one", "two␛"]);
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(plain(text)).not.toMatch(/[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/u);
      }),
    );
  });

  it("measures how wide characters are", () => {
    expect(widthOf("abc")).toBe(3);
    expect(widthOf("結算")).toBe(4);
    expect(widthOf("e\u0301")).toBe(1);
    expect(widthOf("🔔")).toBe(2);
  });

  it("cuts and pads by columns", () => {
    expect(cut("settle-accounts", 8)).toBe("settle-…");
    expect(cut("結算結算", 4)).toBe("結…");
    expect(cut("abc", 3)).toBe("abc");
    expect(cut("abc", 0)).toBe("");
    expect(pad("結", 4)).toBe("結  ");
    expect(pad("7", 3, "right")).toBe("  7");
  });

  it("wraps at words, and cuts a word that is longer than a line", () => {
    expect(wrap("no slots are planned", 9)).toEqual(["no slots", "are", "planned"]);
    expect(wrap("abcdefghij kl", 4)).toEqual(["abcd", "efgh", "ij", "kl"]);
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 2, max: 30 }), (text, width) => {
        const lines = wrap(plain(text), width);
        for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(width);
        expect(lines.join("").replaceAll(" ", "")).toBe(plain(text).replaceAll(" ", ""));
      }),
    );
  });

  it("cuts a coloured line by its visible width, and resets the colours", () => {
    const line = "\u001b[31mfailed\u001b[39m run";
    expect(styledWidth(line)).toBe(10);
    expect(cutStyled(line, 10)).toBe(line);
    expect(cutStyled(line, 5)).toBe("\u001b[31mfail…\u001b[0m");
    expect(cutStyled("plain text", 6)).toBe("plain…");
  });
});
