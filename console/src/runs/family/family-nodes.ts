import type { Answer } from "../../api/call.ts";
import type { Line } from "../../parts/graph/layout.ts";

export type FamilyRun = Answer<"getRunFamily">["runs"][number];

/** A run of a family, or several runs that are alike. */
export interface FamilyNode {
  /** A run's number; for several runs, the properties that they have in common. */
  id: string;
  runs: [FamilyRun, ...FamilyRun[]];
}

/** Up to this many runs that are alike are shown one by one; more of them are shown as one node. */
const singlyMost = 6;

/**
 * The runs that each run comes from, among these runs: its inputs, else its parent. A join (the run that follows once all children of a run
 * have ended) comes from the last run of each child; if none of the children is among the runs, it comes from the parent.
 */
export function causesOf(runs: readonly FamilyRun[]): Map<number, number[]> {
  const known = new Set(runs.map(({ run }) => run));
  // A child that continues another one has that one as its input.
  const continued = new Set(runs.flatMap(({ source, inputs }) => (source === "child" ? inputs : [])));
  const ends = new Map<number, number[]>();
  for (const { run, parent, source } of runs)
    if (parent !== null && source === "child" && !continued.has(run))
      ends.set(parent, [...(ends.get(parent) ?? []), run]);
  const causes = ({ source, parent, inputs }: FamilyRun): number[] => {
    if (inputs.length > 0) return inputs;
    if (parent === null) return [];
    return source === "join" ? (ends.get(parent) ?? [parent]) : [parent];
  };
  return new Map(runs.map((one) => [one.run, causes(one).filter((cause) => known.has(cause))]));
}

/**
 * The graph of a family. Many runs of one task in one state with the same causes and effects become one node, unless it is opened.
 * @param own the number of the run that the page is about, which stays a node of its own
 * @param opened the ids of such nodes whose runs are shown one by one
 */
export function familyGraph(
  runs: readonly FamilyRun[],
  own: number,
  opened: ReadonlySet<string>,
): { nodes: FamilyNode[]; lines: Line[]; canFold: boolean } {
  const causes = causesOf(runs);
  const effects = new Map<number, number[]>();
  for (const [run, from] of causes) for (const one of from) effects.set(one, [...(effects.get(one) ?? []), run]);
  const alike = new Map<string, [FamilyRun, ...FamilyRun[]]>();
  for (const one of runs) {
    if (one.run === own) continue;
    const key = JSON.stringify([one.task, one.state, causes.get(one.run), effects.get(one.run)]);
    const others = alike.get(key);
    if (others) others.push(one);
    else alike.set(key, [one]);
  }
  const many = [...alike].filter(([, its]) => its.length > singlyMost);
  const folded = many.filter(([id]) => !opened.has(id));
  const nodeOf = new Map(folded.flatMap(([id, its]) => its.map(({ run }) => [run, id] as const)));
  const single = runs.filter(({ run }) => !nodeOf.has(run));
  const idOf = (run: number) => nodeOf.get(run) ?? String(run);
  const lines = new Map<string, Line>();
  for (const [run, from] of causes)
    for (const one of from) {
      const line = { from: idOf(one), to: idOf(run) };
      lines.set(JSON.stringify(line), line);
    }
  return {
    nodes: [
      ...single.map((one): FamilyNode => ({ id: String(one.run), runs: [one] })),
      ...folded.map(([id, its]): FamilyNode => ({ id, runs: its })),
    ],
    lines: [...lines.values()],
    canFold: folded.length < many.length,
  };
}
