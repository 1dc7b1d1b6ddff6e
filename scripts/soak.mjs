/**
 * `npm run soak -- [ARGUMENT…]`: makes the clone ready and becomes the soak, which reads the arguments and starts and
 * restarts a PostgreSQL of its own.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { linkPackages } from "./compiled.mjs";
import { fail, ready, root, Trouble } from "./ready.mjs";
import { showsUsage } from "./usage.mjs";

async function main() {
  if (showsUsage("simulation/src/soak/main.ts")) return;
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
