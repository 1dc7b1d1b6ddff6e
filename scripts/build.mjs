/** Compiles all packages, and bundles the library in its published form. Used by `npm run build` and by scripts that need compiled code. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { fail, installDependencies, requireNode, root, say, Trouble } from "./ready.mjs";

/** Compiles and checks the changed files of all packages, and bundles the library. @returns {boolean} whether there were no type errors */
export function compile() {
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  // More checkers for one project would finish sooner, but each would check the same types again.
  const done = spawnSync(process.execPath, [tsc, "--build", "--checkers", "1"], { cwd: root, stdio: ["ignore", 2, 2] });
  if (done.error) throw new Trouble(`the compiler could not be started: ${done.error.message}`);
  bundle();
  return done.status === 0;
}

/** Prepares the clone for scripts that run compiled code: installs the dependencies and compiles all packages. */
export function ready() {
  requireNode();
  installDependencies();
  if (!compile()) throw new Trouble("the code does not compile, see above.");
}

/** @param {string} folder @returns {string[]} the paths of all files below it, in the same order on every machine */
export const filesIn = (folder) =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();

/**
 * Runs a program that builds something, if its inputs have changed since its last run. A stamp file beside the output has a hash
 * of the inputs.
 * @param {{ what: string, out: string, of: string[], program: string, args: string[], cwd: string }} step of: paths of the input
 * files
 */
export function make({ what, out, of, program, args, cwd }) {
  const hash = createHash("sha256");
  for (const file of of) hash.update(file.slice(root.length)).update("\0").update(readFileSync(file)).update("\0");
  const wanted = hash.digest("hex");
  const stamp = join(out, ".made-of");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  say(`building ${what}`);
  const done = spawnSync(process.execPath, [program, ...args], {
    cwd,
    stdio: ["ignore", 2, 2],
  });
  if (done.status !== 0) throw new Trouble(`${what} could not be built, see above.`);
  writeFileSync(stamp, wanted);
}

/** Bundles the compiler's output into scheduler/lib. */
function bundle() {
  const scheduler = join(root, "scheduler");
  const isProgram = (/** @type {string} */ path) => path.endsWith(".js");
  make({
    what: "the library",
    out: join(scheduler, "lib"),
    of: [
      ...filesIn(join(scheduler, "dist")).filter(isProgram),
      ...["scheduler/bundle.mjs", "scripts/third-party.mjs", "scheduler/package.json", "package-lock.json"].map(
        (path) => join(root, path),
      ),
    ],
    program: join(root, "scheduler/bundle.mjs"),
    args: [],
    cwd: scheduler,
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  try {
    ready();
  } catch (error) {
    fail(error);
  }
}
