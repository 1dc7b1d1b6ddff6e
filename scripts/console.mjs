/**
 * Builds the console into the server's own folder, scheduler/dist/console, when something that it is made of has changed: its
 * sources, the packages of the lock file, or the compiled contract. A stamp beside the files says what they were made of.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { fail, root, say, Trouble } from "./ready.mjs";

const out = join(root, "scheduler/dist/console");
const stamp = join(out, ".made-of");

/** The rooms of the scheduler that hold the contract and the pure code that the console computes with. */
const pureRooms = ["base", "schedule", "task", "run", "slots", "access", "api"];

/** @param {string} folder @returns {string[]} */
const filesIn = (folder) =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();

function madeOf() {
  const hash = createHash("sha256");
  const compiled = join(root, "scheduler/dist");
  const files = [
    ...filesIn(join(root, "console/src")),
    ...[
      "console/index.html",
      "console/vite.config.ts",
      "console/package.json",
      "scheduler/package.json",
      "package-lock.json",
    ].map((path) => join(root, path)),
    ...pureRooms.flatMap((room) => filesIn(join(compiled, room))).filter((path) => path.endsWith(".js")),
  ];
  for (const file of files) hash.update(file.slice(root.length)).update("\0").update(readFileSync(file)).update("\0");
  return hash.digest("hex");
}

/** After `compile()`. */
export function buildConsole() {
  const wanted = madeOf();
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  say("building the console");
  const vite = join(root, "node_modules/vite/bin/vite.js");
  const args = [vite, "build", "--logLevel", "warn", "--config", join(root, "console/vite.config.ts")];
  const done = spawnSync(process.execPath, args, { cwd: join(root, "console"), stdio: ["ignore", 2, 2] });
  if (done.status !== 0) throw new Trouble("the console could not be built, see above.");
  writeFileSync(stamp, wanted);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  try {
    buildConsole();
  } catch (error) {
    fail(error);
  }
}
