/** Computes the figures of a test run from the lines that report.mjs wrote. Every failed test counts here; gate.mjs forgives some. */
import { stripVTControlCharacters } from "node:util";

/**
 * @typedef {import("./report.mjs").ReportLine} ReportLine
 * @typedef {{ file: string, test: string, why: string, ran: boolean }} Failure file: absolute path; "": the failure belongs to no file;
 *   ran: true if the test ran and failed, so that running it again can show whether it is unsteady
 * @typedef {{ file: string, ms: number }} FileTime ms: duration of the file's tests and hooks
 * @typedef {{ passed: number, failures: Failure[], tests: string[], times: FileTime[] }} Figures tests: the names (`nameOf`) of all
 *   tests that have a result
 */

const longest = 200;

/** @param {string} text */
const firstLine = (text) => (stripVTControlCharacters(text).trim().split("\n", 1)[0] ?? "").slice(0, longest);

/** Returns the name of a test that all reports use: its file, followed by its own name. @param {{ file: string, test: string }} test */
export const nameOf = ({ file, test }) => `${file} > ${test}`;

/**
 * Counts as failures: a test that failed; if `whole`, a test that was skipped or did not end; a file that does not load or whose hook
 * failed; a file that should have run and has no result; an error outside of tests; a run that ended early; and an exit code other than
 * 0 without any of these.
 * @param {string} text the report's lines
 * @param {{ exit: number, whole: boolean, expected?: readonly string[] }} run whole: all tests should have run; expected: files that should
 * have run at least once, even if Vitest has not selected them
 * @returns {Figures}
 */
export function figuresOf(text, { exit, whole, expected = [] }) {
  /** @type {ReportLine[]} */
  const lines = text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  /** @type {Failure[]} */
  const failures = [];
  /** @type {string[]} */
  const seen = [];
  /** @type {FileTime[]} */
  const times = [];
  let passed = 0;
  let ended = false;
  /** @type {Map<string, string>} by project and file: the file, which has no result yet */
  const awaited = new Map();
  const chosen = new Set();
  for (const line of lines) {
    if (line.event === "start") {
      for (const { project, file } of line.files) {
        awaited.set(`${project} ${file}`, file);
        chosen.add(file);
      }
    } else if (line.event === "end") {
      ended = true;
      failures.push(
        ...line.errors.map((why) => ({ file: "", test: "outside of any test", why: firstLine(why), ran: false })),
      );
    } else {
      const { file } = line;
      awaited.delete(`${line.project} ${file}`);
      times.push({ file, ms: line.ms });
      failures.push(...line.errors.map((why) => ({ file, test: "the file itself", why: firstLine(why), ran: true })));
      for (const { name, state, why } of line.tests) {
        seen.push(nameOf({ file, test: name }));
        if (state === "passed") passed += 1;
        else if (state === "failed") failures.push({ file, test: name, why: firstLine(why), ran: true });
        else if (whole)
          failures.push({ file, test: name, why: state === "skipped" ? "was skipped" : "did not end", ran: false });
      }
    }
  }
  failures.push(
    ...[...awaited.values()].map((file) => ({ file, test: "the whole file", why: "did not run", ran: false })),
  );
  const forgotten = expected.filter((file) => !chosen.has(file));
  failures.push(
    ...forgotten.map((file) => ({
      file,
      test: "the whole file",
      why: "is in no project of vitest.config.ts",
      ran: false,
    })),
  );
  if (!ended)
    failures.push({ file: "", test: "the run itself", why: `ended early, with exit code ${exit}`, ran: false });
  else if (exit !== 0 && failures.length === 0)
    failures.push({ file: "", test: "the run itself", why: `exit code ${exit}, though no test failed`, ran: false });
  return { passed, failures, tests: seen, times };
}
