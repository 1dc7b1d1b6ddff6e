/**
 * `npm run simulate -- [ARGUMENT…]`: makes the clone ready, starts a throw-away PostgreSQL, unless
 * CARILLON_TEST_POSTGRES_URL names one, and becomes the simulation, which reads the arguments.
 */
import { existsSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { linkPackages } from "./compiled.mjs";
import { fail, ready, root, Trouble } from "./ready.mjs";
import { startServers } from "./servers.mjs";
import { showsUsage } from "./usage.mjs";

const memory = "/dev/shm";
const roomBytes = 4e9;

/** Half of what a seed costs the server goes into files that are gone with the next seed: they stay in memory where there is room. */
function stayInMemory() {
  if (!existsSync(memory) || process.env.TMPDIR !== undefined) return;
  const { bavail, bsize } = statfsSync(memory);
  if (bavail * bsize > roomBytes) process.env.TMPDIR = memory;
}

async function main() {
  if (showsUsage("simulation/src/main.ts")) return;
  ready();
  const program = join(root, "simulation/dist/simulation/src/main.js");
  if (!existsSync(program)) throw new Trouble("simulation/src/main.ts was not compiled: the clone is incomplete.");
  linkPackages(join(root, "simulation/dist/scheduler/node_modules"));
  stayInMemory();
  const started = await startServers(["postgres"]);
  Object.assign(process.env, started.env);
  // Should the simulation call process.exit, or die, the server's keeper notices and stops it by itself.
  process.once("beforeExit", () => void started.stop());
  process.argv[1] = program;
  await import(pathToFileURL(program).href);
}

await main().catch((error) => {
  fail(error);
  process.exit(); // whatever it had begun would keep it running
});
