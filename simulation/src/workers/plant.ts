import { spawnSync } from "node:child_process";
import type { Violation } from "../history.ts";
import { protocolMutants } from "../mutants/protocol.ts";
import { plantedCopy, plantingsOf } from "../mutants.ts";

export interface PlantedProtocol {
  readonly name: string;
  /** Name of the rule that the bug is meant to break, if it was broken; undefined if the bug was not found. */
  readonly caughtBy: string | undefined;
  readonly what: string | undefined;
}

/** Plants one bug at a time in a copy of the compiled scheduler, and lets random workers test that copy. */
export async function plantAll(
  only: string | undefined,
  polls: number,
  onResult: (planted: PlantedProtocol) => void,
): Promise<PlantedProtocol[]> {
  const chosen = protocolMutants.filter(({ name }) => only === undefined || name === only);
  if (chosen.length === 0) throw new Error(`there is no mutant called ${JSON.stringify(only)}`);
  return chosen.map((mutant) => {
    const program = plantedCopy(mutant.name, plantingsOf(mutant), "planted-protocol", "workers/main.js");
    const { stdout, stderr } = spawnSync(process.execPath, [program, "--json", "--polls", String(polls)], {
      encoding: "utf8",
    });
    const line = stdout.trim().split("\n").at(-1) ?? "";
    // Without a result line the copy has crashed, so it did not show that a rule is broken.
    if (!line.startsWith("{")) throw new Error(`the copy ended without a result: ${stderr.slice(-2_000)}`);
    const { broken = [] } = JSON.parse(line) as { broken?: Violation[] };
    const found = broken.find(({ invariant }) => invariant === mutant.breaks);
    const planted = { name: mutant.name, caughtBy: found?.invariant, what: found?.what };
    onResult(planted);
    return planted;
  });
}
