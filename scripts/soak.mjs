/**
 * `npm run soak -- [ARGUMENT…]`: makes the clone ready and becomes the soak, which reads the arguments and starts and
 * restarts a PostgreSQL of its own.
 */
import { existsSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { fail, ready, root, Trouble } from "./ready.mjs";

/** The scheduler's compiled copy finds the packages that are the scheduler's alone. @param {string} link */
function linkPackages(link) {
  const packages = join(root, "scheduler/node_modules");
  rmSync(link, { force: true });
  if (existsSync(packages)) symlinkSync(packages, link);
}

async function main() {
  ready();
  const program = join(root, "simulation/dist/simulation/src/soak/main.js");
  if (!existsSync(program)) throw new Trouble("simulation/src/soak/main.ts was not compiled: the clone is incomplete.");
  linkPackages(join(root, "simulation/dist/scheduler/node_modules"));
  process.argv[1] = program;
  await import(pathToFileURL(program).href);
}

await main().catch((error) => {
  fail(error);
  process.exit(); // whatever it had begun would keep it running
});
