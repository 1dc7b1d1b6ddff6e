/**
 * `npm run prove -- steady [--runs N] [--busy]`: checks whether the gate has the same result every time. Runs `npm test -- --gate` N times
 * (default 5), and prints each test whose result was not always the same, with its results. --busy runs an endless loop on every core
 * meanwhile. The exit code is 1 if a run failed or a test was unsteady. A run takes some 20 minutes.
 */
import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { fail, root, say, Trouble } from "../ready.mjs";
import { nameOf } from "../test/figures.mjs";
import { reports } from "../test/vitest.mjs";
import { showsUsage } from "../usage.mjs";

/**
 * True for a report of the gate, whose name contains the version of Node.js; reports of the runner's own test have other names.
 */
const isReport = (/** @type {string} */ name) => /^test-report-\d.*\.ndjson$/.test(name);

/**
 * @typedef {{ state: string, why: string, run: number, look: "first" | "second" }} Seen
 * @typedef {Map<string, Seen[]>} Outcomes by the test's name
 */

/** Adds the results in a run's reports to `outcomes`. @param {number} run from 1 @param {Outcomes} outcomes */
function readReports(run, outcomes) {
  for (const name of readdirSync(reports).filter(isReport)) {
    const look = name.endsWith("-second.ndjson") ? "second" : "first";
    for (const text of readFileSync(join(reports, name), "utf8").split("\n").filter(Boolean)) {
      /** @type {import("../test/report.mjs").ReportLine} */
      const line = JSON.parse(text);
      if (line.event !== "file") continue;
      const file = relative(root, line.file);
      const failed = line.errors.map((why) => ({ name: "the file itself", state: "failed", why }));
      for (const { name: test, state, why } of [...line.tests, ...failed]) {
        const key = nameOf({ file, test });
        outcomes.set(key, [...(outcomes.get(key) ?? []), { state, why: why.split("\n", 1)[0] ?? "", run, look }]);
      }
    }
  }
}

/** Runs the gate. @returns {Promise<number>} the gate's exit code */
function gate() {
  mkdirSync(reports, { recursive: true });
  for (const name of readdirSync(reports).filter(isReport)) rmSync(join(reports, name));
  const child = spawn(process.execPath, [join(root, "scripts/test.mjs"), "--gate"], { cwd: root, stdio: "inherit" });
  return new Promise((resolve) => child.once("close", (code) => resolve(code ?? 1)));
}

async function main() {
  if (showsUsage("scripts/prove/steady.mjs")) return;
  const { values } = parseArgs({
    args: process.argv.slice(2),
    options: { runs: { type: "string", default: "5" }, busy: { type: "boolean", default: false } },
  });
  const runs = Number(values.runs);
  if (!Number.isInteger(runs) || runs < 1)
    throw new Trouble(`--runs is a whole number from 1 on, not ${JSON.stringify(values.runs)}.`);
  // The loops are threads, so they end with this process in any case.
  const loops = Array.from(
    { length: values.busy ? availableParallelism() : 0 },
    () => new Worker("for (;;) {}", { eval: true }),
  );
  /** @type {Outcomes} */
  const outcomes = new Map();
  /** @type {string[]} */
  const verdicts = [];
  let red = 0;
  for (let run = 1; run <= runs; run++) {
    say(`\nrun ${run} of ${runs}${values.busy ? ", both cores busy" : ""}`);
    const began = performance.now();
    const code = await gate();
    if (code !== 0) red += 1;
    verdicts.push(`run ${run}: exit code ${code}, ${Math.round((performance.now() - began) / 60_000)} min`);
    readReports(run, outcomes);
  }
  await Promise.all(loops.map((loop) => loop.terminate()));
  const unsteady = [...outcomes].filter(([, seen]) => new Set(seen.map(({ state }) => state)).size > 1);
  console.log(`\n${verdicts.join("\n")}`);
  for (const [name, seen] of unsteady) {
    console.log(`UNSTEADY: ${name}`);
    for (const { state, why, run, look } of seen)
      if (state !== "passed") console.log(`  run ${run}, ${look} look: ${state}: ${why}`);
    console.log(`  passed ${seen.filter(({ state }) => state === "passed").length} times`);
  }
  console.log(`${runs} runs, ${red} red, ${outcomes.size} tests, ${unsteady.length} unsteady`);
  if (red > 0 || unsteady.length > 0) process.exitCode = 1;
}

await main().catch(fail);
