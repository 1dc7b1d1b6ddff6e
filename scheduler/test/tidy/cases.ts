import { describe, expect, it } from "vitest";
import type { HouseFile, Rule } from "./tree.ts";

/** Files by path. */
export type House = Record<string, string>;
const house = (files: House): HouseFile[] => Object.entries(files).map(([path, text]) => ({ path, text }));

/** A rule, with examples of source trees that break it in one way each, and a similar one that keeps it. */
export interface Case {
  rule: Rule;
  name: string;
  broken: House[];
  kept: House;
}

/** Tests that each rule finds exactly the violations. */
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
