/**
 * `npm run faults -- [ARGUMENT…]`: makes the clone ready, sees to it that PostgreSQL, Redis and ZooKeeper are there, and
 * becomes the harness, which reads the arguments and starts servers of its own.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { copyFile, linkPackages } from "./compiled.mjs";
import { fail, ready, root, Trouble } from "./ready.mjs";
import { kinds, obtain } from "./servers.mjs";

const wanted = ["postgres", "redis", "zookeeper"];

async function main() {
  ready();
  const compiled = join(root, "faults/dist");
  const program = join(compiled, "faults/src/main.js");
  if (!existsSync(program)) throw new Trouble("faults/src/main.ts was not compiled: the clone is incomplete.");
  linkPackages(join(compiled, "scheduler/node_modules"));
  copyFile("zookeeper/test/support/keeper.mjs", compiled);
  for (const name of wanted) {
    const kind = kinds[name];
    if (kind) Object.assign(process.env, obtain(kind).env);
  }
  process.argv[1] = program;
  await import(pathToFileURL(program).href);
}

await main().catch((error) => {
  fail(error);
  process.exit(); // whatever it had begun would keep it running
});
