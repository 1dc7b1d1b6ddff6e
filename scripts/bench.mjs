/**
 * `npm run bench -- QUESTION [ARGUMENT…]`: prepares the clone, starts the servers that the question needs, with writes that reach the
 * disk as in production, and runs bench/QUESTION.ts in this process. The bench reads the arguments and CARILLON_BENCH_POSTGRES_URL,
 * CARILLON_BENCH_ZOOKEEPER_URL or CARILLON_BENCH_REDIS_URL; if such a variable is already set, its server is used. The variables of the
 * tests name the places of Java and ZooKeeper's jars, see servers/zookeeper.mjs.
 */
import { existsSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { ready } from "./build.mjs";
import { buildConsole } from "./console.mjs";
import { nodeOfLine } from "./node-line.mjs";
import { fail, installDependencies, npm, requireNode, root, say, Trouble } from "./ready.mjs";
import { chromium } from "./servers/chromium.mjs";
import { foreground, kinds, obtain, startServers } from "./servers.mjs";
import { showsUsage, usageOf } from "./usage.mjs";

/** The servers that each question needs; a question without an entry needs PostgreSQL, and Redis too if it measures peers. */
const servers = new Map([
  ["zookeeper", ["zookeeper"]],
  ["delay-queue", ["zookeeper"]],
  ["election", ["zookeeper-ensemble"]],
  ["idle", ["postgres", "zookeeper", "redis"]],
  ["herd", ["postgres", "zookeeper", "redis"]],
  ["locks", ["postgres", "zookeeper", "redis"]],
  ["completions", ["postgres", "redis"]],
  ["guard", ["postgres"]],
  ["pg-failover", []],
  ["chart", []],
]);

/**
 * Questions that are also put to other schedulers (peers), on PostgreSQL and Redis. Two peers need Node.js 22 or newer, so the
 * whole question, including Carillon, is measured on the newer of the two supported lines of Node.js.
 */
const contests = new Set([
  "burst",
  "crash",
  "crons",
  "drain",
  "enqueue",
  "enqueue-many",
  "latency",
  "growth",
  "history",
  "idle",
  "isolate",
  "limit",
  "memory",
  "million",
  "results",
  "timers",
]);
const peersNeedNode = 22;
/** All questions that need the newer Node.js: the contests, one that uses Lighthouse, and one that runs other questions. */
const newerNode = new Set([...contests, "console", "guard"]);

/** Questions that start, kill and restart coordination services themselves. They receive the places of the programs. */
const withServices = new Map([
  ["failover", ["zookeeper", "redis"]],
  ["outage", ["zookeeper", "redis"]],
]);

/** Questions whose peers are npm packages. Only these questions need the packages, so bench/package.json lists them separately. */
const withPackages = new Set(["zookeeper", "locks", "console", ...contests]);

/**
 * Installs the peers, and for the question `zookeeper` compiles the one that has to be compiled; install scripts of all other packages are
 * not run. Without a compiler, the bench reports that it continues without this peer.
 * @param {string} question
 */
function installPeers(question) {
  const folder = join(root, "bench");
  installDependencies(folder);
  if (question !== "zookeeper") return;
  const compiled = "zookeeper";
  const isBuilt = () => existsSync(join(folder, "node_modules", compiled, "build/zookeeper.node"));
  if (isBuilt()) return;
  say(`compiling the peer ${compiled}`);
  if (npm(["rebuild", compiled, "--ignore-scripts=false"], folder) && isBuilt()) return;
  process.env.CARILLON_BENCH_WITHOUT_ZOOKEEPER =
    "it could not be compiled here (it needs make, a C++ compiler and Python)";
}

/** @param {import("./servers/server.mjs").ServerKind} kind */
const benchVariable = ({ variable }) => variable.replace("_TEST_", "_BENCH_");

async function main() {
  const [question = "", ...args] = process.argv.slice(2);
  const questions = readdirSync(join(root, "bench"))
    .filter((name) => name.endsWith(".ts"))
    .map((name) => basename(name, ".ts"));
  if (!questions.includes(question)) {
    const asks = (/** @type {string} */ name) => usageOf(`bench/${name}.ts`).split("\n")[0];
    const text = [
      "npm run bench -- QUESTION [ARGUMENT…], of these questions; QUESTION --help tells its arguments and what it measures",
      "",
      ...questions.map((name) => `  ${name.padEnd(12)}  ${asks(name)}`),
    ].join("\n");
    if (question !== "" && !question.startsWith("-")) throw new Trouble(`There is no question ${question}. ${text}`);
    process.stdout.write(`${text}\n`);
    return;
  }
  if (showsUsage(`bench/${question}.ts`)) return;
  if (newerNode.has(question) && Number(process.versions.node.split(".")[0]) < peersNeedNode) {
    requireNode();
    installDependencies();
    const { path } = nodeOfLine("24");
    process.exitCode = await foreground(path, [fileURLToPath(import.meta.url), question, ...args], {});
    return;
  }
  ready();
  if (withPackages.has(question) && !args.includes("--no-peers")) installPeers(question);
  const program = join(root, "bench/dist", `${question}.js`);
  if (!existsSync(program)) throw new Trouble(`bench/${question}.ts was not compiled to ${program}.`);

  if (question === "console") {
    buildConsole();
    Object.assign(process.env, obtain(chromium).env);
  }
  for (const service of withServices.get(question) ?? []) {
    Object.assign(process.env, obtain(/** @type {import("./servers.mjs").ServerKind} */ (kinds[service])).env);
  }
  const wanted = [];
  const redis = contests.has(question) && !args.includes("--no-peers");
  for (const name of servers.get(question) ?? ["postgres", ...(redis ? ["redis"] : [])]) {
    const kind = kinds[name];
    if (!kind) throw new Trouble(`there is no server called ${name}`);
    if (process.env[benchVariable(kind)]) Object.assign(process.env, kind.find()?.env);
    else wanted.push({ name, kind });
  }
  if (wanted.length > 0) {
    const started = await startServers(
      wanted.map(({ name }) => name),
      { durable: true },
    );
    Object.assign(process.env, started.env);
    for (const { kind } of wanted) process.env[benchVariable(kind)] = started.env[kind.variable];
    say(`${started.titles.join(", ")}, fsync on`);
    // If the bench calls process.exit or is killed, the keeper process notices and stops the servers.
    process.once("beforeExit", () => void started.stop());
  }
  process.argv.splice(1, Number.POSITIVE_INFINITY, program, ...args);
  await import(pathToFileURL(program).href);
}

await main().catch((error) => {
  fail(error);
  process.exit(); // otherwise open handles would keep this process running
});
