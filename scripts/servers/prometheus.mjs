/** Prometheus with its promtool, from Debian or PATH. Each test starts one of its own. */
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
  // Installed, it would bring a service that runs from then on, and a dozen packages of its old pages.
  unpacked,
  advice: "Install it (Debian: apt-get install prometheus; macOS: brew install prometheus).",
  find() {
    const own = process.env[variable];
    const folders = programFolders([join(unpacked, "usr/bin"), "/usr/bin", "/opt/homebrew/bin", "/usr/local/bin"]);
    for (const program of [...(own ? [own] : []), ...folders.map((folder) => join(folder, "prometheus"))]) {
      if (!existsSync(program) || !existsSync(promtoolOf(program))) continue;
      // "prometheus, version 2.42.0+ds (branch: …"
      const version = /version (\d[.\d]*)/.exec(ask(program, ["--version"]) ?? "")?.[1];
      if (version) return { bin: program, version, env: { [variable]: program } };
    }
    return undefined;
  },
};

/** The program beside it that checks rules. @param {string} program */
export const promtoolOf = (program) => join(program, "../promtool");

/**
 * Starts it in `folder`, with the configuration that is there as prometheus.yml.
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
