import { describe, expect, test } from "vitest";
import { causesOf, type FamilyRun, familyGraph } from "./family-nodes.ts";

const run = (given: Partial<FamilyRun> & { run: number }): FamilyRun =>
  ({ task: "part", state: "succeeded", source: "child", parent: null, inputs: [], ...given }) as FamilyRun;
const children = (n: number, first = 2, given: Partial<FamilyRun> = {}) =>
  Array.from({ length: n }, (_, at) => run({ run: first + at, parent: 1, ...given }));
const none: ReadonlySet<string> = new Set();

describe("the causes of runs", () => {
  test("are the children of its parent for a join, the inputs for a run after several, else the parent", () => {
    const runs = [
      run({ run: 1, source: "manual" }),
      ...children(2),
      run({ run: 4, parent: 1, inputs: [3] }),
      run({ run: 5, source: "join", parent: 1 }),
      run({ run: 6, source: "after", inputs: [4, 5] }),
    ];
    expect([...causesOf(runs)]).toEqual([
      [1, []],
      [2, [1]],
      [3, [1]],
      [4, [3]],
      [5, [2, 4]],
      [6, [4, 5]],
    ]);
  });

  test("are only runs that are known, and a join's parent if no child is", () => {
    expect([...causesOf([run({ run: 5, source: "join", parent: 1 }), run({ run: 1, parent: 99 })])]).toEqual([
      [5, [1]],
      [1, []],
    ]);
  });
});

describe("the graph of a family", () => {
  test("has a node for each of a few runs", () => {
    const { nodes, lines, canFold } = familyGraph([run({ run: 1 }), ...children(6)], 1, none);
    expect(nodes.map(({ id }) => id)).toEqual(["1", "2", "3", "4", "5", "6", "7"]);
    expect(lines).toHaveLength(6);
    expect(canFold).toBe(false);
  });

  test("has one node for many that are alike, but the run itself and those in another state", () => {
    const runs = [
      run({ run: 1 }),
      ...children(200),
      ...children(3, 300, { state: "failed" }),
      run({ run: 400, source: "join", parent: 1 }),
    ];
    const { nodes, lines } = familyGraph(runs, 50, none);
    expect(nodes.map(({ runs }) => runs.length).sort((a, b) => b - a)).toEqual([199, 1, 1, 1, 1, 1, 1]);
    // Lines lead from the parent to the five nodes of its children, and from these to the join.
    expect(lines).toHaveLength(10);
    const many = nodes.find(({ runs }) => runs.length > 1)?.id as string;
    const opened = familyGraph(runs, 50, new Set([many]));
    expect(opened.nodes).toHaveLength(runs.length);
    expect(opened.canFold).toBe(true);
  });
});
