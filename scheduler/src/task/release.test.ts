import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { edited } from "./edits.ts";
import { type Backer, codeOf, mayReplace, releaseOf } from "./release.ts";
import { defineTask } from "./task.ts";

const [a, b] = [defineTask("t", { priority: 1 }), defineTask("t", { priority: 2 })];

describe("a release", () => {
  it("is identified by its label and its definitions, in any order", () => {
    expect(releaseOf("1.4.0", [a]).name).toMatch(/^1\.4\.0\+[\w-]{8}$/);
    expect(releaseOf("1.4.0", [a]).name).not.toBe(releaseOf("1.4.0", [b]).name);
    const other = defineTask("u");
    expect(releaseOf("1", [a, other])).toEqual(releaseOf("1", [other, a]));
  });

  it("has a number if its label is a whole number", () => {
    const numbers = ["1842", "0", "1.2", "v7", "20261126093000123456", ""].map((label) => releaseOf(label, []).number);
    expect(numbers).toEqual([1842, 0, null, null, null, null]);
  });

  it("has the same definition whether or not it was edited since", () => {
    expect(codeOf(edited(a, { description: "by hand" }))).toBe(codeOf(a));
    expect(codeOf(b)).not.toBe(codeOf(a));
  });
});

describe("the definition that takes effect", () => {
  const standing = (isKnown: boolean, ...backers: Backer[]) => ({ code: "present", isKnown, backers });
  const present = (number: number | null = null): Backer => ({ code: "present", number });
  const mine = { number: null };

  it.each([
    ["new code replaces what others stand behind", mine, standing(false, present()), true],
    ["known code does not", mine, standing(true, present()), false],
    ["known code replaces what nobody stands behind", mine, standing(true), true],
    ["nor what others stand behind counts", mine, standing(true, { code: "another", number: 9 }), true],
    ["known code with the greater number replaces", { number: 3 }, standing(true, present(2)), true],
    ["new code with the lesser number does not", { number: 2 }, standing(false, present(3)), false],
    ["the same number decides nothing", { number: 2 }, standing(false, present(2)), true],
    ["nor of known code", { number: 2 }, standing(true, present(2)), false],
    ["a number is more than none", { number: 0 }, standing(true, present()), true],
    ["and none less than any", mine, standing(false, present(0)), false],
    ["the greatest number that stands behind it counts", { number: 4 }, standing(true, present(), present(5)), false],
  ])("%s", (_, release, known, may) => {
    expect(mayReplace(release, known)).toBe(may);
  });

  it("a definition from before releases is replaced by any release", () => {
    expect(mayReplace(mine, { code: null, isKnown: true, backers: [present()] })).toBe(true);
  });

  it("of two deployed and known releases, at most one replaces the other, so they cannot alternate", () => {
    const numbers = fc.option(fc.nat(3), { nil: null });
    fc.assert(
      fc.property(numbers, numbers, (one, two) => {
        const replaces = (number: number | null, other: number | null) =>
          mayReplace({ number }, standing(true, present(other)));
        expect(replaces(one, two) && replaces(two, one)).toBe(false);
      }),
    );
  });
});
