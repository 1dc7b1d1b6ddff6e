/**
 * Checks Node.js, installs the dependencies of package-lock.json, and prints messages of scripts. Messages go to stderr, so that
 * they do not mix with a command's own output; there are none if nothing has to be installed.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("..", import.meta.url));

const oldestNode = [20, 19];

/** An error that the user can correct; it is shown as its message, without a stack. */
export class Trouble extends Error {
  /** @override */
  name = "Trouble";
}

/** @param {string} line */
export function say(line) {
  process.stderr.write(`${line}\n`);
}

/**
 * Prints a `Trouble` or an error in the options without a stack, and any other error with its stack; sets the exit code to 1.
 * @param {unknown} error
 */
export function fail(error) {
  const { code, message, stack } = error instanceof Error ? /** @type {NodeJS.ErrnoException} */ (error) : {};
  if (error instanceof Trouble) say(`✗ ${message}`);
  else if (code?.startsWith("ERR_PARSE_ARGS_")) say(`✗ ${message?.split(". ")[0]}. --help says what there is.`);
  else say(stack ?? String(error));
  process.exitCode = 1;
}

export function requireNode() {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const [needMajor = 0, needMinor = 0] = oldestNode;
  if (major < needMajor || (major === needMajor && minor < needMinor)) {
    throw new Trouble(`Node ${process.versions.node} is too old: Carillon needs ${needMajor}.${needMinor} or newer.`);
  }
}

/**
 * @typedef {{ version?: string, integrity?: string, link?: boolean, optional?: boolean, devOptional?: boolean }} Locked
 * @typedef {{ packages?: Record<string, Locked> }} Lock
 */

/**
 * Returns the path of the first package of the lock file that is not installed, or is installed in another version; optional
 * packages may be missing. Compares with the hidden lock file that npm writes at the end of an install, so it detects an
 * interrupted install.
 * @param {Lock} wanted @param {Lock | undefined} installed @returns {string | undefined}
 */
export function stalePackage(wanted, installed) {
  if (!installed) return "node_modules";
  for (const [path, entry] of Object.entries(wanted.packages ?? {})) {
    if (!path.startsWith("node_modules/") && !path.includes("/node_modules/")) continue;
    const present = installed.packages?.[path];
    if (!present) {
      if (entry.optional || entry.devOptional) continue; // a package for another platform
      return path;
    }
    if (present.version !== entry.version || present.integrity !== entry.integrity) return path;
  }
  return undefined;
}

/** @param {string} path @returns {Lock | undefined} */
function readLock(path) {
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined;
}

/**
 * Runs the npm that started this script with the Node.js of this process, or else the npm on PATH. Shows npm's errors even if the
 * npm that started the script is silent.
 * @param {string[]} args @param {string} cwd
 */
export function npm(args, cwd = root) {
  const script = process.env.npm_execpath;
  const [program, first] = script?.endsWith(".js") ? [process.execPath, [script]] : ["npm", []];
  const done = spawnSync(program, [...first, ...args, "--loglevel=error"], { cwd, stdio: ["ignore", 2, 2] });
  if (done.error) throw new Trouble(`npm could not be started: ${done.error.message}`);
  return done.status === 0;
}

/** Installs the packages of a folder's package-lock.json, if one is missing or has another version. @param {string} [folder] */
export function installDependencies(folder = root) {
  const wanted = readLock(join(folder, "package-lock.json"));
  if (!wanted) throw new Trouble("package-lock.json is missing: the clone is incomplete.");
  const stale = stalePackage(wanted, readLock(join(folder, "node_modules/.package-lock.json")));
  if (stale === undefined) return;
  say(`installing dependencies${folder === root ? "" : ` of ${basename(folder)}/`} (${stale} is missing or stale)`);
  if (!npm(["ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder)) {
    throw new Trouble(
      "`npm ci` failed, see above. Is the package registry reachable, and does package-lock.json agree with package.json?",
    );
  }
}
