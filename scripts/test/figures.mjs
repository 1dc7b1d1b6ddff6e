/** The figures of a run of tests, from the lines that report.mjs wrote. A run is as good as its worst test: nothing is forgiven here. */
import { stripVTControlCharacters } from "node:util";

/**
 * @typedef {import("./report.mjs").ReportLine} ReportLine
 * @typedef {{ file: string, test: string, why: string, ran: boolean }} Failure file: absolute, "": none; ran: it failed as it
 *   ran, so that a second look can tell something
 * @typedef {{ file: string, ms: number }} FileTime ms: how long its tests and hooks took
 * @typedef {{ passed: number, failures: Failure[], tests: string[], times: FileTime[] }} Figures tests: each that has a result, as
 *   `nameOf` names it
 */

const longest = 200;

/** @param {string} text */
const firstLine = (text) => (stripVTControlCharacters(text).trim().split("\n", 1)[0] ?? "").slice(0, longest);

/** One name for a test in every report: its file, then its own name. @param {{ file: string, test: string }} test */
export const nameOf = ({ file, test }) => `${file} > ${test}`;

/**
 * A failure is: a test that failed; a test that was skipped or did not end, if `whole`; a file that does not load or whose hook failed; a
 * file that should have run and has no result; an error that no test caught; an exit code other than 0 with none of these.
 * @param {string} text the report's lines
 * @param {{ exit: number, whole: boolean, expected?: readonly string[] }} run whole: everything was to run; expected: files that
 *   were to run at least once, whatever Vitest chose
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
  /** @type {Map<string, string>} project and file → file */
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
