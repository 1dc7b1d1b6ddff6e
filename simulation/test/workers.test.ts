import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { protocolMutants } from "../src/mutants/protocol.ts";
import { planted, plantingsOf } from "../src/mutants.ts";

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** Runs the harness and returns its last output line, parsed. */
function workers(...args: string[]): Record<string, unknown> {
  const program = path("../../scripts/prove/workers.mjs");
  const { stdout, stderr } = spawnSync(process.execPath, [program, "--json", ...args], { encoding: "utf8" });
  const line = stdout.trim().split("\n").at(-1) ?? "";
  if (!line.startsWith("{")) throw new Error(stderr);
  return JSON.parse(line);
}

const long = process.env.CARILLON_TEST_LONG === "1";
const seed = Number(process.env.CARILLON_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

// The timeout is long, because a busy machine takes many times as long as an idle one.
it(`random workers break no rule of the protocol, seed ${seed}`, { timeout: 7_200_000 }, () => {
  const { violations, broken } = workers(
    "--polls",
    long ? "100000" : "250",
    "--seed",
    `${seed}`,
    ...(long ? ["--kill"] : []),
  );
  expect({ violations, broken }).toEqual({ violations: 0, broken: undefined });
});

it("finds a planted bug", { timeout: 600_000 }, () => {
  expect(workers("--mutant", "a second verdict in one poll is not refused", "--polls", "150")).toMatchObject({
    mutants: 1,
    caught_by: ["a refusal is said, with its reason"],
  });
});

it("has planted bugs with unique names, each with a place in the source", () => {
  const names = protocolMutants.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const mutant of protocolMutants)
    for (const planting of plantingsOf(mutant)) {
      const source = readFileSync(path(`../../scheduler/src/${planting.file}`), "utf8");
      expect([mutant.name, planted(mutant.name, planting, source) === source]).toEqual([mutant.name, false]);
    }
});
