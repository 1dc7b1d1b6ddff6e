/** Takes some minutes: random scenarios run in simulated time, and each is checked against the rules of the documentation. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { policyMutants } from "../src/mutants/policies.ts";
import { planted, plantingsOf } from "../src/mutants.ts";
import { scenarioOf } from "../src/policies/draw.ts";
import { rules } from "../src/policies/rules/rules.ts";

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** Runs the harness and returns its last output line, parsed. */
function policies(...args: string[]): Record<string, unknown> {
  const program = path("../../scripts/prove/policies.mjs");
  const { stdout, stderr } = spawnSync(process.execPath, [program, "--json", ...args], { encoding: "utf8" });
  const line = stdout.trim().split("\n").at(-1) ?? "";
  if (!line.startsWith("{")) throw new Error(stderr);
  return JSON.parse(line);
}

const nothingBroken = (scenarios: number) => ({ scenarios, violations: 0, broken: undefined });
const resultOf = ({ scenarios, violations, broken }: Record<string, unknown>) => ({ scenarios, violations, broken });

const scenarios = process.env.CARILLON_TEST_LONG === "1" ? 600 : 120;

// The timeout is long, because a busy machine takes many times as long as an idle one.
it(`breaks no rule in ${scenarios} random scenarios`, { timeout: 3_600_000 }, () => {
  expect(resultOf(policies("--seeds", `${scenarios}`))).toEqual(nothingBroken(scenarios));
});

/** Saved scenarios that once broke a rule, because of a fault of the scheduler or of the rule's check. */
const kept = [
  "keys-and-reruns",
  "retry-and-pause",
  "edit-while-claimed",
  "edit-before-the-try",
  "lost-in-its-worker",
  "lost-and-decided",
  "jitter-out-of-a-blackout",
  "due-behind-a-short-queue",
];
it.each(kept)("breaks no rule in a saved scenario: %s", (name) => {
  expect(resultOf(policies("--play", path(`scenarios/${name}.json`)))).toEqual(nothingBroken(1));
});

/** Scenarios in real time. In scenario 57 the worker is killed while it has started and waiting runs of a task with three shards. */
const onProcesses = process.env.CARILLON_TEST_LONG === "1" ? ["--seeds", "120"] : ["--seed", "57"];
it("breaks no rule on processes that are killed with -9", { timeout: 3_600_000 }, () => {
  // Reactions may take up to 600 s, because a busy machine may be slow and no rule of this test is about speed.
  const { kills, violations, broken } = policies("--processes", "--react", "600000", ...onProcesses);
  expect({ violations, broken }).toEqual({ violations: 0, broken: undefined });
  expect(kills).toBeGreaterThan(0);
});

it("finds a planted bug", { timeout: 600_000 }, () => {
  expect(policies("--mutant", "pauses between tries are half as long", "--seeds", "40")).toMatchObject({
    mutants: 1,
    caught_by: ["tries and the pauses between them"],
  });
});

it("generates the same scenario for the same seed, and another for another seed", () => {
  expect(scenarioOf(7)).toEqual(scenarioOf(7));
  expect(scenarioOf(8)).not.toEqual({ ...scenarioOf(7), seed: 8 });
});

it("has a planted bug for every rule, each with a unique name and a place in the source", () => {
  const names = policyMutants.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  const broken = new Set(policyMutants.map(({ breaks }) => breaks));
  expect([...broken].sort()).toEqual(rules.map(({ name }) => name).sort());
  for (const mutant of policyMutants)
    for (const planting of plantingsOf(mutant)) {
      const source = readFileSync(path(`../../scheduler/src/${planting.file}`), "utf8");
      expect([mutant.name, planted(mutant.name, planting, source) === source]).toEqual([mutant.name, false]);
    }
});
