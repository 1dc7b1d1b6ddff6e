/** Runs Vitest, and runs failed tests a second time. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { root, say } from "../ready.mjs";
import { foreground, interruptedExit } from "../servers.mjs";
import { figuresOf, nameOf } from "./figures.mjs";

const reporter = fileURLToPath(new URL("report.mjs", import.meta.url));
/**
 * If more tests fail than this, no test runs again: the failures probably have one common cause, so a second run would show
 * nothing.
 */
const secondLookMost = 20;

/**
 * @typedef {import("./figures.mjs").Figures} Figures
 * @typedef {import("./figures.mjs").Failure & { second?: "passed" | "failed" }} LookedAt second: the result of the second run; undefined:
 *   the test was not run again. "passed" is also used for a test that passed in the first run and failed in the second one.
 * @typedef {Omit<Figures, "failures"> & { failures: LookedAt[], interrupted: boolean }} Outcome
 * @typedef {{
 *   node: string, label: string, args: string[], env: Record<string, string>, whole: boolean, expected?: string[],
 *   folder?: string, output?: "inherit" | "ignore", leftMs: () => number,
 * }} Run node: path of the Node.js that runs Vitest; label: part of the name of the report's file; whole: true if a test that Vitest
 *   selects and does not run is a failure; expected: files that must be among the selected ones; folder: the project's folder, by default
 *   this repository; output: where Vitest's output goes, and "ignore" also silences this module; leftMs: returns the time in ms that is
 *   left for the run
 */

/**
 * Runs Vitest once. Its report is test-report-LABEL.ndjson (of a second run: test-report-LABEL-second.ndjson) in the folder that
 * CARILLON_TEST_REPORTS names, or in a temporary folder of this run, so that two runs in one clone do not write the same file.
 * @param {Run} run @returns {Promise<Outcome>}
 */
async function once({ node, label, args, env, whole, expected, folder = root, output, leftMs }) {
  const kept = process.env.CARILLON_TEST_REPORTS;
  if (kept) mkdirSync(kept, { recursive: true });
  const reports = kept || mkdtempSync(join(tmpdir(), "carillon-reports-"));
  const report = join(reports, `test-report-${label}.ndjson`);
  rmSync(report, { force: true });
  const program = join(root, "node_modules/vitest/vitest.mjs");
  const reporters = ["--reporter=default", `--reporter=${reporter}`];
  // The runner's own tests run Vitest within a test: their reports are not kept.
  const own = { ...env, CARILLON_TEST_REPORT: report, CARILLON_TEST_REPORTS: "" };
  try {
    const exit = await foreground(
      node,
      [program, "run", "--root", folder, ...args, ...reporters],
      own,
      leftMs(),
      output,
    );
    const text = existsSync(report) ? readFileSync(report, "utf8") : "";
    return {
      ...figuresOf(text, { exit, whole, ...(expected && { expected }) }),
      interrupted: exit === interruptedExit,
    };
  } finally {
    if (!kept) rmSync(reports, { recursive: true, force: true });
  }
}

/**
 * Runs tests. If all tests were to run and at most `secondLookMost` failed, the files of the failed tests run once more, without
 * other files, which distinguishes an unsteady test from a broken one. The failures then have the results of the second run; the
 * caller decides whether to forgive them.
 * @param {Run} run @returns {Promise<Outcome>}
 */
export async function vitest(run) {
  const first = await once(run);
  const { whole, folder = root } = run;
  const files = [...new Set(first.failures.filter(({ ran }) => ran).map(({ file }) => file))];
  if (!whole || first.interrupted || files.length === 0 || first.failures.length > secondLookMost) return first;
  const tell = run.output === "ignore" ? () => undefined : say;
  tell(`\n${first.failures.length} failed. A second look, alone: ${files.length} files`);
  const { expected: _, ...again } = run;
  const second = await once({ ...again, label: `${run.label}-second`, args: ["--no-file-parallelism", ...files] });
  if (second.interrupted) return first;
  const [before, now] = [first, second].map(({ failures }) => new Set(failures.map(nameOf)));
  // If a hook failed, the first run skipped the file's tests. Those that passed in the second run are left out; the failed hook
  // counts as a failure itself.
  const hookFailed = new Set(first.failures.filter(({ test }) => test === "the file itself").map(({ file }) => file));
  const seen = new Set(second.tests);
  const isRunNow = (/** @type {LookedAt} */ failure) =>
    !failure.ran && hookFailed.has(failure.file) && seen.has(nameOf(failure)) && !now?.has(nameOf(failure));
  const skipped = first.failures.filter(isRunNow);
  const looked = first.failures.filter((failure) => !isRunNow(failure));
  const failures = looked.map(
    /** @returns {LookedAt} */ (failure) => {
      if (!failure.ran) return failure;
      const still = now?.has(nameOf(failure));
      const told = still ? "fails again, alone" : "UNSTEADY: passes alone";
      tell(`${told}: ${relative(folder, failure.file)}: ${failure.test}`);
      return { ...failure, why: `${failure.why} (${told})`, second: still ? "failed" : "passed" };
    },
  );
  const fresh = second.failures
    .filter((failure) => failure.ran && !before?.has(nameOf(failure)))
    .map(
      /** @returns {LookedAt} */ (failure) => ({
        ...failure,
        why: `${failure.why} (UNSTEADY: passed first, fails alone)`,
        second: "passed",
      }),
    );
  return { ...first, passed: first.passed + skipped.length - fresh.length, failures: [...failures, ...fresh] };
}
