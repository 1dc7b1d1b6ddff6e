/** Runs Vitest and looks at what failed a second time. */
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { root, say } from "../ready.mjs";
import { foreground, interruptedExit } from "../servers.mjs";
import { figuresOf } from "./figures.mjs";

const reporter = fileURLToPath(new URL("report.mjs", import.meta.url));
/** More failures than this have one cause, and a second look at each tells nothing. */
const secondLookMost = 20;

/**
 * @typedef {import("./figures.mjs").Figures} Figures
 * @typedef {{
 *   node: string, label: string, args: string[], env: Record<string, string>, whole: boolean, expected?: string[],
 *   folder?: string, output?: "inherit" | "ignore", leftMs: () => number,
 * }} Run node: path of the Node that runs it; label: names the report's file; whole: everything that Vitest chooses is to run,
 *   so that what did not is a failure; expected: files that are to be among them; folder: the project, default this one; output: of Vitest;
 *   leftMs: how long the run may take
 */

/** @param {Run} run @returns {Promise<Figures & { interrupted: boolean }>} */
async function once({ node, label, args, env, whole, expected, folder = root, output, leftMs }) {
  const report = join(root, `node_modules/.cache/test-report-${label}.ndjson`);
  mkdirSync(dirname(report), { recursive: true });
  rmSync(report, { force: true });
  const program = join(root, "node_modules/vitest/vitest.mjs");
  const reporters = ["--reporter=default", `--reporter=${reporter}`];
  const own = { ...env, CARILLON_TEST_REPORT: report };
  const exit = await foreground(node, [program, "run", "--root", folder, ...args, ...reporters], own, leftMs(), output);
  const text = existsSync(report) ? readFileSync(report, "utf8") : "";
  return { ...figuresOf(text, { exit, whole, ...(expected && { expected }) }), interrupted: exit === interruptedExit };
}

/**
 * Runs tests. What failed runs once more, alone: that tells an unsteady test from a broken one, and changes no figure.
 * @param {Run} run @returns {Promise<Figures & { interrupted: boolean }>}
 */
export async function vitest(run) {
  const first = await once(run);
  const { whole, folder = root } = run;
  const files = [...new Set(first.failures.filter(({ ran }) => ran).map(({ file }) => file))];
  if (!whole || first.interrupted || files.length === 0 || first.failures.length > secondLookMost) return first;
  say(`\n${first.failures.length} failed. A second look, alone, which changes no figure: ${files.length} files`);
  const { expected: _, ...again } = run;
  const second = await once({ ...again, label: `${run.label}-second`, args: ["--no-file-parallelism", ...files] });
  const still = new Set(second.failures.map(({ file, test }) => `${file} ${test}`));
  const failures = first.failures.map((failure) => {
    if (!failure.ran || second.interrupted) return failure;
    const told = still.has(`${failure.file} ${failure.test}`) ? "fails again, alone" : "UNSTEADY: passes alone";
    say(`${told}: ${relative(folder, failure.file)}: ${failure.test}`);
    return { ...failure, why: `${failure.why} (${told})` };
  });
  return { ...first, failures };
}
