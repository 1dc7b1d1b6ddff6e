/**
 * `npm run fuzz -- [ARGUMENT…]`: makes the clone ready, starts a throw-away PostgreSQL for the target that needs one,
 * unless CARILLON_TEST_POSTGRES_URL names one, and becomes the fuzzer, which reads the arguments.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { linkPackages } from "./compiled.mjs";
import { fail, ready, root, Trouble } from "./ready.mjs";
import { startServers } from "./servers.mjs";
import { showsUsage } from "./usage.mjs";

async function main() {
  if (showsUsage("fuzz/src/main.ts")) return;
  ready();
  const program = join(root, "fuzz/dist/fuzz/src/main.js");
  if (!existsSync(program)) throw new Trouble("fuzz/src/main.ts was not compiled: the clone is incomplete.");
  linkPackages(join(root, "fuzz/dist/scheduler/node_modules"));
  const started = await startServers(["postgres"]);
  Object.assign(process.env, started.env);
  // Should the fuzzer call process.exit, or die, the server's keeper notices and stops it by itself.
  process.once("beforeExit", () => void started.stop());
  process.argv[1] = program;
  await import(pathToFileURL(program).href);
}

await main().catch((error) => {
  fail(error);
  process.exit(); // whatever it had begun would keep it running
});
