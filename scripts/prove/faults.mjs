/**
 * `npm run prove -- faults [ARGUMENT…]`: prepares the clone, finds or installs PostgreSQL, Redis and ZooKeeper, and runs the
 * harness in this process, which reads the arguments and starts its own servers. With --peers, the harness is
 * faults/src/peers/main.ts, which needs no ZooKeeper and for which the peers of the benches are installed; two of them need a
 * newer Node.js, which then runs the whole harness.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { ready } from "../build.mjs";
import { linkPackages } from "../compiled.mjs";
import { nodeOfLine } from "../node-line.mjs";
import { fail, installDependencies, requireNode, root, Trouble } from "../ready.mjs";
import { foreground, kinds, obtain } from "../servers.mjs";
import { showsUsage } from "../usage.mjs";

const peersNeedNode = 22;

async function main() {
  const peers = process.argv.includes("--peers");
  if (showsUsage(peers ? "faults/src/peers/main.ts" : "faults/src/main.ts")) return;
  if (peers && Number(process.versions.node.split(".")[0]) < peersNeedNode) {
    requireNode();
    installDependencies();
    const { path } = nodeOfLine("24");
    process.exitCode = await foreground(path, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {});
    return;
  }
  ready();
  const compiled = join(root, "faults/dist");
  const place = peers ? "faults/src/peers" : "faults/src";
  const program = join(compiled, place, "main.js");
  if (!existsSync(program)) throw new Trouble(`${place}/main.ts was not compiled: the clone is incomplete.`);
  linkPackages(join(compiled, "scheduler/node_modules"));
  if (peers) {
    installDependencies(join(root, "bench"));
    // Only the peers' folder can import the peers' packages; all other code uses Carillon's own packages.
    linkPackages(join(compiled, place, "node_modules"), join(root, "bench/node_modules"));
  }
  for (const name of peers ? ["postgres", "redis"] : ["postgres", "redis", "zookeeper"]) {
    const kind = kinds[name];
    if (kind) Object.assign(process.env, obtain(kind).env);
  }
  process.argv[1] = program;
  await import(pathToFileURL(program).href);
}

await main().catch((error) => {
  fail(error);
  process.exit(); // otherwise open handles would keep this process running
});
