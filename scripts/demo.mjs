/** `npm run demo`: prepares the clone, and runs the demo in this process; the demo reads the arguments. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ready } from "./build.mjs";
import { fail, root, Trouble } from "./ready.mjs";
import { showsUsage } from "./usage.mjs";

async function main() {
  if (showsUsage("examples/demo/main.ts")) return;
  ready();
  const program = join(root, "examples/dist/demo/main.js");
  if (!existsSync(program)) throw new Trouble("examples/demo/main.ts is missing: the clone is incomplete.");
  process.argv[1] = program;
  await import(pathToFileURL(program).href);
}

await main().catch((error) => {
  fail(error);
  process.exit(); // otherwise open handles would keep this process running
});
