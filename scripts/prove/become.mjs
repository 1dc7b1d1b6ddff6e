/** Prepares the clone, and runs a compiled harness in this process; the harness reads the arguments. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ready } from "../build.mjs";
import { linkPackages } from "../compiled.mjs";
import { fail, root, Trouble } from "../ready.mjs";
import { startServers } from "../servers.mjs";
import { showsUsage } from "../usage.mjs";

/**
 * @param {string} source the harness's source file, from the root; its package is compiled into `dist` beside `src`
 * @param {{ servers?: string[], before?: () => void }} [needs] servers: names of throw-away servers to start, unless the environment names
 * some
 */
export async function become(source, { servers = [], before } = {}) {
  try {
    if (showsUsage(source)) return;
    ready();
    const [part = ""] = source.split("/");
    const compiled = join(root, part, "dist");
    const program = join(compiled, source.replace(/\.ts$/, ".js"));
    if (!existsSync(program)) throw new Trouble(`${source} was not compiled: the clone is incomplete.`);
    linkPackages(join(compiled, "scheduler/node_modules"));
    before?.();
    if (servers.length > 0) {
      const started = await startServers(servers);
      Object.assign(process.env, started.env);
      // If the harness calls process.exit or is killed, the keeper process notices and stops the servers.
      process.once("beforeExit", () => void started.stop());
    }
    process.argv[1] = program;
    await import(pathToFileURL(program).href);
  } catch (error) {
    fail(error);
    process.exit(); // otherwise the started servers would keep this process running
  }
}
