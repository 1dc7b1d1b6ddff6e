/**
 * The verdict of `npm test -- --gate`. A test that failed and passed at its second run is unsteady: it is named and counted, and up to five
 * such tests do not make the gate fail. The tests in scripts/set-aside.json run and are reported, but do not make the gate fail.
 */
import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { root } from "../ready.mjs";
import { nameOf } from "./figures.mjs";

const unsteadyMost = 5;
const setAsideMost = 5;
const setAsideDays = 10;
const dayMs = 86_400_000;

/**
 * @typedef {import("./vitest.mjs").LookedAt} LookedAt
 * @typedef {{ file: string, test: string, since: string, reason: string, tried: string }} SetAside file: path from the root; test: the
 *   test's full name, as in the list of failures; since: date as YYYY-MM-DD, UTC; tried: the attempts to fix the test so far
 */

/** @returns {SetAside[]} */
export const readSetAside = () => JSON.parse(readFileSync(join(root, "scripts/set-aside.json"), "utf8"));

/** @param {readonly SetAside[]} list @param {number} nowMs @returns {string[]} the reasons why the list is not accepted, one per line */
export function faultsOfSetAside(list, nowMs) {
  const faults = list.length > setAsideMost ? [`${list.length} tests are set aside: ${setAsideMost} at most`] : [];
  for (const { file = "", test = "", since = "", reason = "", tried = "" } of list) {
    const name = nameOf({ file, test });
    const sinceMs = Date.parse(`${since}T00:00:00Z`);
    if (file === "" || test === "") faults.push(`${name}: file and test are needed`);
    if (Number.isNaN(sinceMs)) faults.push(`${name}: since is a date, YYYY-MM-DD`);
    else if (nowMs - sinceMs > (setAsideDays + 1) * dayMs)
      faults.push(`${name}: set aside for more than ${setAsideDays} days`);
    if (reason === "" || tried === "") faults.push(`${name}: a reason and what was tried are needed`);
  }
  return faults;
}

/**
 * @param {readonly LookedAt[]} failures of all runs @param {readonly string[]} tests the names (`nameOf`) of all tests that have a result
 * @param {readonly SetAside[]} setAside
 * @returns {{ failed: LookedAt[], unsteady: LookedAt[], aside: LookedAt[] }} failed: the failures that make the gate fail; aside: failed
 * tests that are set aside
 */
export function verdictOf(failures, tests, setAside) {
  const absolute = setAside.map(({ file, test }) => nameOf({ file: join(root, file), test }));
  const isAside = new Set(absolute);
  const known = new Set(tests);
  const aside = failures.filter((failure) => isAside.has(nameOf(failure)));
  const judged = failures.filter((failure) => !isAside.has(nameOf(failure)));
  const stale = setAside
    .filter((_, at) => !known.has(absolute[at] ?? ""))
    .map(({ file, test }) => ({ file: join(root, file), test, why: "is set aside, but no such test ran", ran: false }));
  const unsteady = judged.filter(({ second }) => second === "passed");
  const failed = [...judged.filter(({ second }) => second !== "passed"), ...stale];
  // Names are counted, so a file with two failed hooks counts once.
  return new Set(unsteady.map(nameOf)).size > unsteadyMost
    ? { failed: [...failed, ...unsteady], unsteady: [], aside }
    : { failed, unsteady, aside };
}

/** @param {LookedAt} failure */
export const lineOf = ({ file, test, why }) => `${file === "" ? "" : `${relative(root, file)}: `}${test}: ${why}`;
