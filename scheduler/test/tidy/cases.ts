import { describe, expect, it } from "vitest";
import type { HouseFile, Rule } from "./tree.ts";

/** A small source tree: the texts of its files, by path. */
export type House = Record<string, string>;
const house = (files: House): HouseFile[] => Object.entries(files).map(([path, text]) => ({ path, text }));

/** A rule with examples: source trees of which each breaks the rule in one way, and a similar tree that keeps the rule. */
export interface Case {
  rule: Rule;
  name: string;
  broken: House[];
  kept: House;
}

/** Declares tests that each rule finds exactly one violation in each broken tree, and none in the tree that keeps the rule. */
export function holdsCases(cases: readonly Case[]): void {
  describe.each(cases)("$name", ({ rule, broken, kept }) => {
    it.each(broken)("finds the violation in %j", (files) => {
      expect(rule(house(files))).toHaveLength(1);
    });

    it("finds none where there is none", () => {
      expect(rule(house(kept))).toEqual([]);
    });
  });
}
