import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { claimMutants } from "./mutants/claims.ts";
import { lockMutants } from "./mutants/locks.ts";
import { membershipMutants } from "./mutants/membership.ts";
import type { Mutant, Planting } from "./mutants/mutant.ts";
import { operationMutants } from "./mutants/operations.ts";
import { planningMutants } from "./mutants/planning.ts";
import { recoveryMutants } from "./mutants/recovery.ts";
import { workerMutants } from "./mutants/worker.ts";
import { isSmall, planOf, sortOf } from "./plan/plan.ts";
import { playSeeds } from "./play/campaign.ts";

export const allMutants: readonly Mutant[] = [
  ...claimMutants,
  ...workerMutants,
  ...membershipMutants,
  ...planningMutants,
  ...lockMutants,
  ...operationMutants,
  ...recoveryMutants,
];

/** The folder of this program's compiled files: the simulation and the scheduler. */
const compiled = fileURLToPath(new URL("../..", import.meta.url));

export interface Planted {
  readonly name: string;
  readonly wanted: string;
  /** The invariant that found the bug; undefined: the bug was not found. */
  readonly caughtBy: string | undefined;
  readonly seed: number | undefined;
  /** The text of the violation; undefined: the bug was not found. */
  readonly what: string | undefined;
  readonly tried: number;
}

/**
 * Plants one bug after another in a copy of the compiled scheduler, and plays seeds until one violates an invariant or `seeds` seeds have
 * been played. @throws if no mutant has the name `only`
 */
export async function plant(options: {
  url: string;
  only: string | undefined;
  seeds: number;
  lengthMs: number;
  /** If true, only full seeds are played, no small ones. */
  full: boolean;
  processes: number;
  onResult: (planted: Planted) => void;
}): Promise<Planted[]> {
  const { url, seeds, lengthMs, full, processes, onResult } = options;
  const results: Planted[] = [];
  const chosen = allMutants.filter(({ name }) => options.only === undefined || name === options.only);
  if (chosen.length === 0) throw new Error(`there is no mutant called ${JSON.stringify(options.only)}`);
  for (const mutant of chosen) {
    const program = plantedCopy(mutant.name, plantingsOf(mutant), "planted", "play/player.js");
    const order = {
      url,
      seeds: seedsFor(mutant, seeds, full),
      lengthMs,
      full,
      processes,
      program,
      untilBroken: true,
      mayFail: true,
    };
    const { broken, seeds: tried } = await playSeeds(order);
    const [first] = broken;
    const result = {
      name: mutant.name,
      wanted: mutant.breaks,
      tried,
      caughtBy: first?.violation.invariant,
      seed: first?.seed,
      what: first?.violation.what,
    };
    results.push(result);
    onResult(result);
  }
  return results;
}

/** Returns the first `count` seeds of the kind in which the mutant's bug shows. */
function seedsFor({ play, full }: Mutant, count: number, allFull: boolean): number[] {
  const planned = (seed: number) => planOf(seed, undefined, allFull);
  const isOne = (seed: number) => {
    if (full && !allFull && isSmall(seed)) return false;
    if (play === "operations") return planned(seed).acts.some(({ act }) => act.kind === "begin operation");
    if (play === "shown") return sortOf(seed) === "doubt" && planned(seed).coordination;
    if (play === "stalls") return planned(seed).acts.some(({ act }) => act.kind === "store stalls");
    if (play === "coordination") return planned(seed).coordination;
    return play === undefined || sortOf(seed) === play;
  };
  const seeds: number[] = [];
  for (let seed = 1; seeds.length < count; seed++) if (isOne(seed)) seeds.push(seed);
  return seeds;
}

export const plantingsOf = (mutant: Planting & { readonly also?: Planting }): Planting[] =>
  mutant.also ? [mutant, mutant.also] : [mutant];

/**
 * Replaces the text of `find` by the bug. Any white space matches any other, because the compiler breaks lines elsewhere.
 * @throws unless the text occurs exactly once
 */
export function planted(name: string, { file, find, put }: Planting, text: string): string {
  const words = find.split(/\s+/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const parts = text.split(new RegExp(words.join("\\s+")));
  if (parts.length !== 2) throw new Error(`${name}: ${file} has ${parts.length - 1} times ${JSON.stringify(find)}`);
  return parts.join(put);
}

/**
 * Copies the compiled simulation and scheduler, and plants the bugs in the copy of the scheduler.
 * @param name the mutant's name, for error messages
 * @param into the name of the folder of the copy
 * @param program the path of the program to run, relative to simulation/src
 * @returns the path of this program in the copy
 */
export function plantedCopy(name: string, plantings: readonly Planting[], into: string, program: string): string {
  const folder = join(compiled, "mutants", into);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const part of ["simulation", "scheduler"])
    cpSync(join(compiled, part), join(folder, part), {
      recursive: true,
      filter: (path) => !path.endsWith("node_modules"),
    });
  const packages = join(compiled, "scheduler/node_modules");
  if (existsSync(packages)) symlinkSync(realpathSync(packages), join(folder, "scheduler/node_modules"));
  for (const planting of plantings) {
    const path = join(folder, "scheduler/src", planting.file.replace(/\.ts$/, ".js"));
    writeFileSync(path, planted(name, planting, readFileSync(path, "utf8")));
  }
  return join(folder, "simulation/src", program);
}
