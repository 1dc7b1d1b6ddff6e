import { spawn } from "node:child_process";
import { policyMutants } from "../mutants/policies.ts";
import { plantedCopy, plantingsOf } from "../mutants.ts";

export interface PlantedPolicy {
  readonly name: string;
  readonly wanted: string;
  /** Name of the rule that the planted bug broke; undefined if no rule was broken. */
  readonly caughtBy: string | undefined;
  readonly what: string | undefined;
  readonly seed: number | undefined;
  readonly tried: number;
}

interface Told {
  readonly scenarios: number;
  readonly broken?: readonly { readonly seed: number; readonly invariant: string; readonly what: string }[];
}

/**
 * Plants one bug at a time in a copy of the compiled scheduler. The copy plays scenarios, `seeds` at most, until one of them breaks the
 * rule that the bug is meant to break.
 */
export async function plantAll(
  only: string | undefined,
  seeds: number,
  onResult: (planted: PlantedPolicy) => void,
): Promise<PlantedPolicy[]> {
  const chosen = policyMutants.filter(({ name }) => only === undefined || name === only);
  if (chosen.length === 0) throw new Error(`there is no mutant called ${JSON.stringify(only)}`);
  const planted: PlantedPolicy[] = [];
  for (const mutant of chosen) {
    const program = plantedCopy(mutant.name, plantingsOf(mutant), "planted-policies", "policies/main.js");
    const { scenarios, broken = [] } = await playIn(program, seeds, mutant.breaks);
    const [first] = broken;
    const one = {
      name: mutant.name,
      wanted: mutant.breaks,
      caughtBy: first?.invariant,
      what: first?.what,
      seed: first?.seed,
      tried: scenarios,
    };
    planted.push(one);
    onResult(one);
  }
  return planted;
}

/** Runs the copy's program and returns its last output line, parsed. */
async function playIn(program: string, seeds: number, rule: string): Promise<Told> {
  const child = spawn(process.execPath, [program, "--json", "--until", "--rule", rule, "--seeds", String(seeds)], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [text, errors] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (chunk) => {
    text += chunk;
  });
  child.stderr.setEncoding("utf8").on("data", (chunk) => {
    errors += chunk;
  });
  await new Promise((resolve) => child.once("close", resolve));
  const line = text.trim().split("\n").at(-1) ?? "";
  // Without a result line the program has crashed, so it did not show that a rule is broken.
  if (!line.startsWith("{")) throw new Error(`the copy ended without a result: ${errors.slice(-2_000)}`);
  return JSON.parse(line);
}
