/**
 * The description of a kind of throw-away server. ../servers.mjs lists one object of type `ServerKind` for each kind.
 *
 * @typedef {{ bin: string, version: string, env?: Record<string, string> }} Place
 *   Where the server's programs are. bin: the folder of the programs, or the path of a single program; version: the version that
 *   the programs report; env: further environment variables for tests that start servers of their own
 * @typedef {{ user: { uid?: number, gid?: number }, durable: boolean, tickMs?: number, env?: Record<string, string> }} Conditions
 *   How to start the server. user: the user that runs the server; empty: the current user; durable: true if writes must reach the
 *   disk (for benches), false if they need not (for tests); tickMs: the tick of ZooKeeper, which ends sessions only at whole
 *   ticks; env: variables that are added to the environment of PostgreSQL
 * @typedef {{
 *   variable: string,
 *   title: string,
 *   find: () => Place | undefined,
 *   debian?: string[],
 *   unpacked?: string,
 *   advice: string,
 *   start: (place: Place, folder: string, conditions: Conditions) => Promise<Started>,
 * }} ServerKind
 *   variable: the environment variable with the server's URL (or a program's path). If the user has set the variable, that server
 *   is used and none is started; benches ignore the variable.
 *   title: the server's name in test titles, without the version.
 *   debian: the Debian packages that contain the server. They are installed with apt-get.
 *   unpacked: if given, the packages are not installed but unpacked into this folder, without their dependencies.
 *   advice: what the user can do if the server is not found and cannot be installed; part of the error message.
 *   start: starts the server on a free loopback port; `folder` is a new folder for this server only.
 * @typedef {{ url: string, children: import("node:child_process").ChildProcess[], signals: NodeJS.Signals[] }} Started
 *   A running server. children: its processes; signals: the signals that end the processes, sent one after another, the gentlest
 *   first
 */
import { spawn, spawnSync } from "node:child_process";
import { createWriteStream, existsSync, readdirSync } from "node:fs";
import { createServer } from "node:net";
import { delimiter } from "node:path";
import { Trouble } from "../ready.mjs";

/**
 * Returns folders with programs: first those in PATH, then those that match `places`. There `*` stands for any name; higher versions come
 * first.
 * @param {string[]} places
 */
export function programFolders(places) {
  const path = (process.env.PATH ?? "").split(delimiter).filter(Boolean);
  return [...path, ...places.flatMap(expand)];
}

/** @param {string} pattern @returns {string[]} */
function expand(pattern) {
  const star = /^(.*?)\/([^/]*)\*([^/]*)(\/.*|)$/.exec(pattern);
  if (!star) return existsSync(pattern) ? [pattern] : [];
  const [, before = "", head = "", tail = "", after = ""] = star;
  if (!existsSync(before)) return [];
  return readdirSync(before)
    .filter((name) => name.startsWith(head) && name.endsWith(tail))
    .sort((a, b) => b.localeCompare(a, "en", { numeric: true }))
    .map((name) => `${before}/${name}${after}`)
    .filter((folder) => existsSync(folder));
}

/**
 * @param {string} program @param {string[]} args @param {NodeJS.ProcessEnv} [env]
 * @returns {string | undefined} the program's output without surrounding spaces; undefined if it fails
 */
export function ask(program, args, env) {
  const asked = spawnSync(program, args, { encoding: "utf8", env: { ...process.env, ...env } });
  return asked.status === 0 ? asked.stdout.trim() : undefined;
}

/**
 * Runs a program that prepares a server, and waits for its end.
 * @throws Trouble if it ends with another exit code than 0; the system's error if it cannot be started
 * @param {string} program @param {string[]} args @param {Conditions["user"]} user @param {string} cwd
 */
export async function prepare(program, args, user, cwd) {
  const child = spawn(program, args, { ...user, cwd, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
  /** @type {number | null} */
  const code = await new Promise((resolve, reject) => child.on("error", reject).on("close", resolve));
  if (code !== 0) throw new Trouble(`${program} ended with ${code}:\n${output.trim()}`);
}

const seenMost = 10_000;

/**
 * Starts a server, and waits until it prints a line that matches `ready`. Its whole output is written to the file `log`.
 * @throws Trouble if it cannot be started, ends first, or is not ready after `patienceMs`
 * @param {string} program @param {string[]} args
 * @param {{ user: Conditions["user"], cwd: string, log: string, ready: RegExp, patienceMs?: number, env?: Record<string, string> }} options
 */
export async function launch(program, args, { user, cwd, log, ready, patienceMs = 60_000, env }) {
  const child = spawn(program, args, {
    ...user,
    cwd,
    stdio: ["ignore", "pipe", "pipe"],
    ...(env && { env: { ...process.env, ...env } }),
  });
  const file = createWriteStream(log);
  let seen = "";
  let isReady = false;
  await new Promise((resolve, reject) => {
    const late = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Trouble(`${program} was not ready after ${patienceMs} ms:\n${seen.slice(-2_000)}`));
    }, patienceMs);
    child.on("error", (error) => reject(new Trouble(`${program} could not be started: ${error.message}`)));
    child.on("exit", (code, signal) => {
      clearTimeout(late);
      reject(new Trouble(`${program} ended with ${code ?? signal} before it was ready:\n${seen.slice(-2_000)}`));
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => {
        file.write(text);
        if (isReady) return;
        // Only the end of the output is searched, because refused connections during a recovery may print any amount before that line.
        seen = (seen + text).slice(-seenMost);
        isReady = ready.test(seen);
        if (!isReady) return;
        clearTimeout(late);
        resolve(undefined);
      });
    }
  });
  return child;
}

/** Resolves with a loopback port that is free at the moment. @returns {Promise<number>} */
export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      const port = typeof address === "object" && address ? address.port : 0;
      probe.close(() => resolve(port));
    });
  });
}

/**
 * Calls `start` with a free port. Tries another port, up to five in all, if another process takes the port before the server listens on it.
 * @template T @param {(port: number) => Promise<T>} start @returns {Promise<T>}
 */
export async function onFreePort(start) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(await freePort());
    } catch (error) {
      if (attempt === 5 || !/address already in use/i.test(String(error))) throw error;
    }
  }
}

/**
 * Returns the user that servers run as: the current user, or, if that is root, an unprivileged one, because PostgreSQL refuses root.
 * @returns {Conditions["user"]}
 */
export function serverUser() {
  if (process.getuid?.() !== 0) return {};
  for (const name of ["postgres", "nobody"]) {
    const [uid, gid] = [ask("id", ["-u", name]), ask("id", ["-g", name])];
    if (uid && gid) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Trouble("the tests run as root, PostgreSQL will not, and there is no user `postgres` or `nobody`.");
}
