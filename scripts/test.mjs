/**
 * `npm test`: types, lint and format, then every test against real servers, on both lines of Node.
 *
 *   npm test                                  all of it
 *   npm test -- scheduler/src/cron.test.ts    these tests, on the Node that runs this; arguments go to Vitest
 *   npm test -- --node 20|24|both …           choose the Node
 *
 * With both lines, the first tests the store on the newest PostgreSQL, the second on the machine's. The second repeats the
 * rest with fewer rounds, without what cannot differ between lines, which vitest.config.ts names (CARILLON_TEST_LINE). On a
 * slow machine it repeats no more than there is time for. One that is too slow even for that leaves out what the first line
 * has after units, conformance and cluster, a piece at a time and each by name in the closing line.
 * When all of it runs and a few tests fail, their files run once more, alone: one that fails again has failed, one that
 * passes is told as unsteady, with what it failed of the first time above. An unsteady test is a fault to look into, but
 * no reason to throw away what the other thousands say.
 *
 * Ends with what failed and why, a line each, and one line: N passed, N failed.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { delimiter, dirname, join, relative } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { buildConsole } from "./console.mjs";
import { lines, nodeForEveryone, nodeOfLine, ownLine } from "./node-line.mjs";
import { compile, fail, installDependencies, requireNode, root, say, Trouble } from "./ready.mjs";
import { chromium } from "./servers/chromium.mjs";
import { foreground, interruptedExit, obtain, startServers, testServers } from "./servers.mjs";
import { showsUsage } from "./usage.mjs";

/** @param {string[]} args @returns {{ nodes: readonly string[], rest: string[] }} */
function read(args) {
  const rest = [...args];
  const at = rest.indexOf("--node");
  if (at < 0) return { nodes: rest.length > 0 ? [ownLine] : lines, rest };
  const [, chosen = ""] = rest.splice(at, 2);
  if (chosen === "both") return { nodes: lines, rest };
  const line = lines.find((known) => known === chosen);
  if (!line) throw new Trouble(`--node is 20, 24 or both, not ${JSON.stringify(chosen)}.`);
  return { nodes: [line], rest };
}

function lint() {
  const biome = join(root, "node_modules/@biomejs/biome/bin/biome");
  const args = ["check", "--error-on-warnings", "--max-diagnostics=50", "--colors=off"];
  return spawnSync(process.execPath, [biome, ...args], { cwd: root, stdio: ["ignore", 2, 2] }).status === 0;
}

/**
 * @typedef {{ status: string, fullName: string, failureMessages: string[] }} TestResult
 * @typedef {{ name: string, status: string, message: string, assertionResults: TestResult[] }} TestFile
 * @typedef {{ passed: number, failed: number, skipped: number, files: TestFile[] }} Figures
 */

/**
 * Of Vitest's own report. What failed outside of a test (a file that does not load, a broken setup) counts as one failure,
 * so that the closing line never says less than the exit code.
 * @param {TestFile[]} files @returns {Figures}
 */
function figuresOf(files) {
  const statuses = files.flatMap(({ status, assertionResults }) => {
    const own = assertionResults.map((test) => test.status);
    return status === "failed" && !own.includes("failed") ? [...own, "failed"] : own;
  });
  const count = (/** @type {string} */ status) => statuses.filter((one) => one === status).length;
  const [passed, failed] = [count("passed"), count("failed")];
  const skipped = statuses.length - passed - failed;
  return { passed, failed, skipped, files: files.filter(({ status }) => status === "failed") };
}

/** More than this is no unsteadiness, not even of a machine that others take the processor from for half a minute. */
const unsteadyMost = 20;

const began = performance.now();
/** What hangs must end as a failure that is told, not by somebody's patience. */
const limitMs = 27 * 60_000;
/** After its first piece nothing begins that would not be done by then. */
const doneByMs = 25 * 60_000;
/**
 * What the first line goes on with after its first piece, what matters most first, and how long each takes: as shares of the
 * first piece's time. Then what the second line may repeat, the most first, in the same shares.
 */
const pieces = [
  { line: "programs", share: 1, told: " (command line, embedded, console)" },
  { line: "coordination", share: 0.25, told: " (ZooKeeper client)" },
  { line: "harnesses", share: 0.25, told: " (simulator, hostile input, faults)" },
];
const repeats = [
  { line: "second", share: 1.2, told: "" },
  { line: "core", share: 0.65, told: " (units and conformance: this machine is slow)" },
];
const leastRepeated = { line: "units", share: 0.2, told: " (units alone: this machine is very slow)" };
const total = { passed: 0, failed: 0 };
/** @type {string[]} */
const parts = [];
/** What failed and why: read again at the end, where the last lines are all that somebody sees. @type {string[]} */
const failures = [];
const failuresTold = 60;

/** @param {string} what @param {boolean} good */
function check(what, good) {
  parts.push(`${what} ${good ? "ok" : "FAILED"}`);
  if (!good) total.failed += 1;
  say(`${good ? "✓" : "✗"} ${what}`);
}

/**
 * @param {string} path @param {string} version @param {string[]} args @param {Record<string, string>} env
 * @param {boolean} bounded @returns {Promise<{ exit: number, figures: Figures }>}
 */
async function vitest(path, version, args, env, bounded) {
  const report = join(root, `node_modules/.cache/test-report-${version}.json`);
  mkdirSync(dirname(report), { recursive: true });
  rmSync(report, { force: true });
  const program = [join(root, "node_modules/vitest/vitest.mjs"), "run", "--root", root, ...args];
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const leftMs = Math.max(1_000, limitMs - (performance.now() - began));
  const exit = await foreground(path, [...program, ...reporters], env, bounded ? leftMs : undefined);
  if (exit === interruptedExit && performance.now() - began >= limitMs) {
    say(`✗ ended after ${limitMs / 60_000} minutes: the test that ran last hangs, or this machine is far too slow`);
  }
  const figures = figuresOf(existsSync(report) ? JSON.parse(readFileSync(report, "utf8")).testResults : []);
  // An error that nobody caught, or that Vitest could not even begin.
  if (exit !== 0 && figures.failed === 0) figures.failed = 1;
  return { exit, figures };
}

/**
 * @param {string} path @param {string} version @param {string[]} rest @param {Record<string, string>} servers
 * @param {{ line: string, told: string }} part "": all of it
 */
async function testOn(path, version, rest, servers, { line, told }) {
  say(`\nNode ${version}${told}`);
  const whole = rest.length === 0;
  // Tests start processes of their own: a plain `node` among them must be this one too.
  const env = {
    ...servers,
    CARILLON_TEST_LINE: line,
    PATH: `${dirname(path)}${delimiter}${process.env.PATH ?? ""}`,
  };
  const first = await vitest(path, version, rest, env, whole);
  let { passed, failed, skipped, files } = first.figures;
  /** @type {string[]} */
  let unsteady = [];
  if (whole && files.length > 0 && failed <= unsteadyMost && first.exit !== interruptedExit) {
    say(`\n${failed} failed; once more, alone: ${files.map(({ name }) => relative(root, name)).join(", ")}`);
    const names = files.map(({ name }) => name);
    const again = (await vitest(path, version, ["--no-file-parallelism", ...names], env, whole)).figures;
    if (again.failed < failed) {
      const before = figuresOf(files);
      passed += again.passed - before.passed;
      skipped += again.skipped - before.skipped;
      failed = again.failed;
      const stillFailing = namesOfFailed(again.files);
      unsteady = namesOfFailed(files).filter((name) => !stillFailing.includes(name));
      files = again.files;
    }
  }
  total.passed += passed;
  total.failed += failed;
  let part = `Node ${version}${told}: ${passed} passed, ${failed} failed`;
  if (whole && skipped > 0) {
    total.failed += skipped;
    part += `, ${skipped} SKIPPED`;
  }
  for (const name of unsteady) say(`UNSTEADY on Node ${version}: ${name}`);
  if (unsteady.length > 0) part += `, ${unsteady.length} UNSTEADY`;
  parts.push(part);
  failures.push(...files.flatMap(failuresOf).map(({ test, why }) => `Node ${version}: ${test}: ${why}`));
  return first.exit;
}

/** @param {TestFile[]} files */
const namesOfFailed = (files) => files.flatMap(failuresOf).map(({ test }) => test);

/** @param {TestFile} file */
function failuresOf({ name, message, assertionResults }) {
  const tests = assertionResults.filter(({ status }) => status === "failed");
  const each = tests.map(({ fullName, failureMessages }) => [fullName, failureMessages[0] ?? ""]);
  return (each.length > 0 ? each : [["the file itself", message]]).map(([test, text = ""]) => {
    const line = stripVTControlCharacters(text).trim().split("\n", 1)[0] ?? "";
    return { test: `${relative(root, name)}: ${test}`, why: line.slice(0, 200) };
  });
}

/** @param {number} firstMs how long the first piece took @returns what else there is time for, as a share of that */
const shareLeft = (firstMs) => (doneByMs - (performance.now() - began)) / firstMs;

async function main() {
  const { nodes, rest } = read(process.argv.slice(2));
  requireNode();
  installDependencies();
  const runtimes = nodes.map(nodeOfLine);
  const typed = compile();
  if (rest.length === 0) {
    check("types", typed);
    check("lint and format", lint());
  }
  // Of all tests, only the console's need it and a browser.
  const browser = rest.length === 0 || rest.some((word) => word.includes("console")) ? obtain(chromium) : undefined;
  if (browser) buildConsole();
  const servers = await startServers(testServers);
  if (browser) {
    Object.assign(servers.env, browser.env);
    servers.titles.push(`${chromium.title} ${browser.version}`);
  }
  say(`✓ servers: ${servers.titles.join(", ")}`);
  try {
    const [first, second] = runtimes.map(({ path, version }) => {
      const node = nodeForEveryone(path, servers.folder);
      /** @param {{ line: string, told: string }} part @returns whether to go on */
      const test = async (part) => (await testOn(node, version, rest, servers.env, part)) !== interruptedExit;
      return { version, test };
    });
    if (!first || !second) {
      await first?.test({ line: "", told: "" });
      return;
    }
    const startedMs = performance.now();
    if (!(await first.test({ line: "first", told: "" }))) return;
    const firstMs = performance.now() - startedMs;
    for (const piece of pieces) {
      if (piece.share + leastRepeated.share > shareLeft(firstMs)) {
        parts.push(`Node ${first.version}${piece.told}: LEFT OUT, this machine is far too slow`);
      } else if (!(await first.test(piece))) return;
    }
    await second.test(repeats.find(({ share }) => share <= shareLeft(firstMs)) ?? leastRepeated);
  } finally {
    await servers.stop();
  }
}

if (showsUsage("scripts/test.mjs")) process.exit();
try {
  await main();
} catch (error) {
  fail(error);
  total.failed += 1;
}
if (failures.length > 0) say(`\nFailed:\n${failures.slice(0, failuresTold).join("\n")}`);
if (failures.length > failuresTold) say(`and ${failures.length - failuresTold} more, above`);
const seconds = Math.round((performance.now() - began) / 1_000);
console.log(`\n${[...parts, `${seconds} s`].join(" · ")}\n${total.passed} passed, ${total.failed} failed`);
if (total.failed > 0) process.exitCode = 1;
