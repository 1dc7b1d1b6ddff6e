/** Finds and starts Prometheus with its promtool, from PATH, Debian or Homebrew. Each test starts its own. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { root } from "../ready.mjs";
import { ask, launch, onFreePort, programFolders } from "./server.mjs";

const variable = "CARILLON_TEST_PROMETHEUS";
const unpacked = join(root, "node_modules/.cache/prometheus");

/** @type {Omit<import("./server.mjs").ServerKind, "start">} */
export const prometheus = {
  variable,
  title: "Prometheus",
  debian: ["prometheus"],
  // The package is only unpacked, because an installation would also start a permanent service.
  unpacked,
  advice: "Install it (Debian: apt-get install prometheus; macOS: brew install prometheus).",
  find() {
    const own = process.env[variable];
    const folders = programFolders([join(unpacked, "usr/bin"), "/usr/bin", "/opt/homebrew/bin", "/usr/local/bin"]);
    for (const program of [...(own ? [own] : []), ...folders.map((folder) => join(folder, "prometheus"))]) {
      if (!existsSync(program) || !existsSync(promtoolOf(program))) continue;
      // The program prints, for example, "prometheus, version 2.42.0+ds (branch: …".
      const version = /version (\d[.\d]*)/.exec(ask(program, ["--version"]) ?? "")?.[1];
      if (version) return { bin: program, version, env: { [variable]: program } };
    }
    return undefined;
  },
};

/** Returns the path of promtool, which checks rules, in the folder of the given Prometheus. @param {string} program */
export const promtoolOf = (program) => join(program, "../promtool");

/**
 * Starts Prometheus in `folder`, with the configuration file prometheus.yml in it.
 * @param {string} program @param {string} folder
 * @returns {Promise<{ url: string, child: import("node:child_process").ChildProcess }>}
 */
export function startPrometheus(program, folder) {
  return onFreePort(async (port) => {
    const child = await launch(
      program,
      [
        `--config.file=${join(folder, "prometheus.yml")}`,
        `--storage.tsdb.path=${join(folder, "data")}`,
        `--web.listen-address=127.0.0.1:${port}`,
        "--enable-feature=exemplar-storage",
      ],
      { user: {}, cwd: folder, log: join(folder, "log"), ready: /Server is ready to receive web requests/ },
    );
    return { url: `http://127.0.0.1:${port}`, child };
  });
}
