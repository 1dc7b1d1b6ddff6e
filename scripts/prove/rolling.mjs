/**
 * `npm run prove -- rolling [--from REF] [ARGUMENT…]`: prepares the clone, builds the version of an earlier commit beside it, and runs
 * the harness (faults/src/rolling/main.ts) in this process, which starts processes of both versions on one store. Default for REF: the
 * commit before the one that added the newest migration, which is the last version with an older schema. It needs the clone's history.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ready } from "../build.mjs";
import { linkPackages } from "../compiled.mjs";
import { fail, npm, root, say, stalePackage, Trouble } from "../ready.mjs";
import { kinds, obtain } from "../servers.mjs";
import { showsUsage } from "../usage.mjs";

const migrations = "scheduler/src/store/postgres/migrations";

/** @param {string[]} args @param {string} [cwd] */
function git(args, cwd = root) {
  const done = spawnSync("git", args, { cwd, encoding: "utf8", maxBuffer: 2 ** 28 });
  if (done.error || done.status !== 0)
    throw new Trouble(
      `git ${args[0]} failed: ${done.error?.message ?? done.stderr.trim()} (this needs a clone with its history)`,
    );
  return done.stdout.trim();
}

/** @returns the commit before the one that added the newest migration */
function before() {
  const files = readdirSync(join(root, migrations)).filter((name) => /^\d{4}-.*\.ts$/.test(name));
  const newest = files.sort().at(-1);
  const brought = git(["log", "-M", "--diff-filter=A", "-1", "--format=%H", "--", `*/migrations/${newest}`]);
  if (brought === "") throw new Trouble(`${newest} is in no commit yet: give --from REF`);
  return git(["rev-parse", `${brought}~1`]);
}

/**
 * Returns the folder with a commit's compiled code, and builds the code if that folder is missing. @param {string} commit
 * @returns {string}
 */
function buildOf(commit) {
  const folder = join(root, "node_modules/.cache", `rolling-${commit}`);
  const compiled = join(folder, "scheduler/dist");
  if (existsSync(compiled)) return compiled;
  say(`building ${commit.slice(0, 9)}`);
  const making = `${folder}.making`;
  rmSync(making, { recursive: true, force: true });
  mkdirSync(making, { recursive: true });
  const archive = join(making, "archive.tar");
  git(["archive", "-o", archive, commit]);
  const unpacked = spawnSync("tar", ["-xf", archive, "-C", making], { stdio: ["ignore", 2, 2] });
  if (unpacked.status !== 0) throw new Trouble("tar could not unpack the commit");
  rmSync(archive);
  linkDependencies(making);
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const built = spawnSync(process.execPath, [tsc, "--build", "scheduler"], { cwd: making, stdio: ["ignore", 2, 2] });
  if (built.status !== 0) throw new Trouble(`${commit} does not compile, see above`);
  renameSync(making, folder);
  return compiled;
}

/**
 * Links this clone's installed packages into the folder if they match the folder's lock file; otherwise installs the packages there.
 * @param {string} folder
 */
function linkDependencies(folder) {
  /** @param {string} path @returns {import("../ready.mjs").Lock} */
  const read = (path) => JSON.parse(readFileSync(path, "utf8"));
  const stale = stalePackage(
    read(join(folder, "package-lock.json")),
    read(join(root, "node_modules/.package-lock.json")),
  );
  if (stale !== undefined) {
    if (npm(["ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder)) return;
    throw new Trouble("its dependencies could not be installed, see above");
  }
  for (const part of ["", "scheduler", "zookeeper"]) {
    const packages = join(root, part, "node_modules");
    if (!existsSync(packages)) continue;
    const target = join(folder, part, "node_modules");
    mkdirSync(target, { recursive: true });
    for (const name of readdirSync(packages)) {
      // Carillon's own packages are not linked, because the folder has its own version of them.
      if (name !== "carillon" && name !== "@carillon" && name !== ".cache")
        symlinkSync(join(packages, name), join(target, name));
    }
  }
  const own = join(folder, "node_modules");
  symlinkSync("../scheduler", join(own, "carillon"));
  mkdirSync(join(own, "@carillon"));
  symlinkSync("../../zookeeper", join(own, "@carillon/zookeeper"));
}

async function main() {
  if (showsUsage("faults/src/rolling/main.ts")) return;
  const args = process.argv.slice(2);
  const at = args.indexOf("--from");
  const [, ref] = at < 0 ? [] : args.splice(at, 2);
  ready();
  const compiled = join(root, "faults/dist");
  const program = join(compiled, "faults/src/rolling/main.js");
  if (!existsSync(program)) throw new Trouble("faults/src/rolling/main.ts was not compiled: the clone is incomplete.");
  const commit = ref === undefined ? before() : git(["rev-parse", "--verify", `${ref}^{commit}`]);
  const old = buildOf(commit);
  linkPackages(join(compiled, "scheduler/node_modules"));
  const { postgres } = kinds;
  if (postgres) Object.assign(process.env, obtain(postgres).env);
  const own = join(root, "scheduler/dist");
  process.argv.splice(
    1,
    Number.POSITIVE_INFINITY,
    program,
    "--from",
    commit.slice(0, 9),
    "--old",
    old,
    "--new",
    own,
    ...args,
  );
  await import(pathToFileURL(program).href);
}

await main().catch((error) => {
  fail(error);
  process.exit(); // otherwise open handles would keep this process running
});
