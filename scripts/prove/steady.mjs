/**
 * `npm run prove -- steady [--runs N] [--busy] [--continue] [FILE…]`: checks whether the gate has the same result every time. Runs
 * `npm test -- --gate`, or only the tests of the named files, until there are N results (default 5), and prints each test whose result was
 * not always the same, with its results. --busy runs an endless loop on every core meanwhile. The results are kept in
 * node_modules/.cache/steady; --continue counts those that are there, so that a series of runs can be broken off and continued later. The
 * exit code is 1 if a run failed or a test was unsteady. A run of the gate takes some 20 minutes.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { fail, root, say, Trouble } from "../ready.mjs";
import { foreground, interruptedExit } from "../servers.mjs";
import { nameOf } from "../test/figures.mjs";
import { showsUsage } from "../usage.mjs";

/**
 * @typedef {{ state: string, why: string, run: number, look: "first" | "second" }} Seen
 * @typedef {Map<string, Seen[]>} Outcomes by the test's name
 * @typedef {{ commit: string, edits: string, busy: boolean, files: string[] }} Series what is run; `--continue` refuses the results of
 *   another series; edits: a digest of the changes that are not committed
 * @typedef {{ code: number, minutes: number }} Verdict of one run
 */

/** The folder of the kept results: series.json, and for each run a folder with its reports and, once the run has ended, verdict.json. */
const kept = join(root, "node_modules/.cache/steady");
const seriesFile = join(kept, "series.json");
const folderOf = (/** @type {number} */ run) => join(kept, `run-${run}`);
const verdictFile = (/** @type {number} */ run) => join(folderOf(run), "verdict.json");

/** Adds the results in a run's reports to `outcomes`. @param {number} run from 1 @param {Outcomes} outcomes */
function readReports(run, outcomes) {
  for (const name of readdirSync(folderOf(run)).filter((file) => file.endsWith(".ndjson"))) {
    const look = name.endsWith("-second.ndjson") ? "second" : "first";
    for (const text of readFileSync(join(folderOf(run), name), "utf8")
      .split("\n")
      .filter(Boolean)) {
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

/** Begins the series, or continues the kept one. @param {Series} series @param {boolean} continues */
function begin(series, continues) {
  if (!continues || !existsSync(seriesFile)) {
    rmSync(kept, { recursive: true, force: true });
    mkdirSync(kept, { recursive: true });
    writeFileSync(seriesFile, JSON.stringify(series));
  }
  const found = readFileSync(seriesFile, "utf8");
  if (found !== JSON.stringify(series))
    throw new Trouble(`the kept results are of another series, ${found}. Leave --continue out to begin a new one.`);
}

/**
 * Runs the tests once, unless the run's result is kept. @param {number} run @param {Series} series
 * @returns {Promise<Verdict>}
 * @throws Trouble if the run was interrupted: its result does not count
 */
async function resultOf(run, { files }) {
  if (existsSync(verdictFile(run))) return JSON.parse(readFileSync(verdictFile(run), "utf8"));
  rmSync(folderOf(run), { recursive: true, force: true });
  mkdirSync(folderOf(run));
  const began = performance.now();
  const args = [join(root, "scripts/test.mjs"), ...(files.length > 0 ? files : ["--gate"])];
  const code = await foreground(process.execPath, args, { CARILLON_TEST_REPORTS: folderOf(run) });
  if (code === interruptedExit) throw new Trouble(`run ${run} was interrupted. --continue runs it again.`);
  const verdict = { code, minutes: Math.round((performance.now() - began) / 60_000) };
  writeFileSync(verdictFile(run), JSON.stringify(verdict));
  return verdict;
}

async function main() {
  if (showsUsage("scripts/prove/steady.mjs")) return;
  const { values, positionals: files } = parseArgs({
    args: process.argv.slice(2),
    options: {
      runs: { type: "string", default: "5" },
      busy: { type: "boolean", default: false },
      continue: { type: "boolean", default: false },
    },
    allowPositionals: true,
  });
  const runs = Number(values.runs);
  if (!Number.isInteger(runs) || runs < 1)
    throw new Trouble(`--runs is a whole number from 1 on, not ${JSON.stringify(values.runs)}.`);
  const git = (/** @type {string[]} */ ...args) =>
    execFileSync("git", args, { cwd: root, encoding: "utf8", maxBuffer: 1e9 });
  const commit = git("rev-parse", "HEAD").trim();
  const edits = createHash("sha256")
    .update(git("diff", "HEAD") + git("status", "--porcelain"))
    .digest("hex")
    .slice(0, 8);
  const series = { commit, edits, busy: values.busy, files };
  begin(series, values.continue);
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
  try {
    for (let run = 1; run <= runs; run++) {
      say(`\nrun ${run} of ${runs}${values.busy ? ", both cores busy" : ""}`);
      const { code, minutes } = await resultOf(run, series);
      if (code !== 0) red += 1;
      verdicts.push(`run ${run}: exit code ${code}, ${minutes} min`);
      readReports(run, outcomes);
    }
  } finally {
    await Promise.all(loops.map((loop) => loop.terminate()));
  }
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
