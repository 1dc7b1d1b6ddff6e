/**
 * The description of each kind of throw-away server: one object of this shape per kind, listed in ../servers.mjs.
 *
 * @typedef {{ bin: string, version: string, env?: Record<string, string> }} Place
 *   bin: the folder of its programs; version: what they report; env: what tests are told besides the URL, so that they
 *   can start servers of their own
 * @typedef {{ user: { uid?: number, gid?: number }, durable: boolean, tickMs?: number, env?: Record<string, string> }} Conditions
 *   user: whom to run as, empty for ourselves; durable: writes must reach the disk (benches), or need not (tests);
 *   tickMs: of ZooKeeper, which ends sessions on whole ticks; env: added to the environment of PostgreSQL
 * @typedef {{
 *   variable: string,
 *   title: string,
 *   find: () => Place | undefined,
 *   debian?: string[],
 *   unpacked?: string,
 *   advice: string,
 *   start: (place: Place, folder: string, conditions: Conditions) => Promise<Started>,
 * }} ServerKind
 *   variable: the environment variable with its URL; set by hand, it is used and nothing is started.
 *   title: as in test titles, without the version. debian: the packages that apt-get installs.
 *   unpacked: the folder into which they are unpacked instead, without the packages that they need.
 *   advice: what a reader does when it cannot be had. start: in its own new `folder`, on a free loopback port.
 * @typedef {{ url: string, children: import("node:child_process").ChildProcess[], signals: NodeJS.Signals[] }} Started
 *   children: its processes; signals: what ends them, gentlest first
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
 * Runs a program that prepares a server, and waits for its end. @throws Trouble if it fails
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
