/** Some minutes of computing: random scenarios run on a test tower's time, and each is held to the documented rules. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { policyMutants } from "../src/mutants/policies.ts";
import { planted, plantingsOf } from "../src/mutants.ts";
import { scenarioOf } from "../src/policies/draw.ts";
import { rules } from "../src/policies/rules/rules.ts";

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** Runs the harness and returns its closing line, parsed. */
function policies(...args: string[]): Record<string, unknown> {
  const program = path("../../scripts/prove/policies.mjs");
  const { stdout, stderr } = spawnSync(process.execPath, [program, "--json", ...args], { encoding: "utf8" });
  const line = stdout.trim().split("\n").at(-1) ?? "";
  if (!line.startsWith("{")) throw new Error(stderr);
  return JSON.parse(line);
}

const nothingBroken = (scenarios: number) => ({ scenarios, violations: 0, broken: undefined });
const resultOf = ({ scenarios, violations, broken }: Record<string, unknown>) => ({ scenarios, violations, broken });

const scenarios = process.env.CARILLON_TEST_LONG === "1" ? 600 : 300;

// A busy machine takes many times as long as an idle one.
it(`breaks no rule in ${scenarios} random scenarios`, { timeout: 3_600_000 }, () => {
  expect(resultOf(policies("--seeds", `${scenarios}`))).toEqual(nothingBroken(scenarios));
});

/**
 * In the first one, the runs with one key never lived at the same time: run numbers are drawn in blocks, and a check that took them for the
 * order of time reported a fault. In the second one a run between two tries was skipped after a pause. The others were reported as faults,
 * and were faults of the model: an edit removes the timeout, or the tries, of a run that is claimed and keeps them; a claim is lost before
 * its worker begins it, or moves the due time of a run; jitter moves a slot out of a blackout. In the last one a run came due
 * behind a full queue, and was skipped late: the heartbeat reported a run in that queue as the next to judge.
 */
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
it.each(kept)("breaks no rule in a scenario that was kept: %s", (name) => {
  expect(resultOf(policies("--play", path(`scenarios/${name}.json`)))).toEqual(nothingBroken(1));
});

/** In real time. Scenario 57 kills the worker while it has runs of a task with three shards, begun and not begun. */
const onProcesses = process.env.CARILLON_TEST_LONG === "1" ? ["--seeds", "120"] : ["--seed", "57"];
it("breaks no rule on processes that are killed with -9", { timeout: 3_600_000 }, () => {
  // No rule is about how fast: a busy machine may take minutes.
  const { kills, violations, broken } = policies("--processes", "--react", "600000", ...onProcesses);
  expect({ violations, broken }).toEqual({ violations: 0, broken: undefined });
  expect(kills).toBeGreaterThan(0);
});

it("finds a bug that was planted", { timeout: 600_000 }, () => {
  expect(policies("--mutant", "pauses between tries are half as long", "--seeds", "40")).toMatchObject({
    mutants: 1,
    caught_by: ["tries and the pauses between them"],
  });
});

it("draws the same for the same seed, and something else for another", () => {
  expect(scenarioOf(7)).toEqual(scenarioOf(7));
  expect(scenarioOf(8)).not.toEqual({ ...scenarioOf(7), seed: 8 });
});

it("has a planted bug for every rule, each with a name of its own and its place in the source", () => {
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
