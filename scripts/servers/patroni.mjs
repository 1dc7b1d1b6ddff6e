/** Finds Patroni, which fails over to a standby by itself. Its tests start three members themselves. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ask, programFolders } from "./server.mjs";

const variable = "CARILLON_TEST_PATRONI";

/**
 * True if the Python modules that a member needs are installed; `patroni --version` works even without kazoo, ZooKeeper's client. Uses the
 * Python that the first line of the program names, because PATH may have another one.
 * @param {string} program
 */
function hasModules(program) {
  const [python = "", ...args] = /^#!\s*(.+)/.exec(readFileSync(program, "utf8"))?.[1]?.split(/\s+/) ?? [];
  return ask(python, [...args, "-c", "import kazoo, psycopg2"]) !== undefined;
}

/** @type {Omit<import("./server.mjs").ServerKind, "start">} */
export const patroni = {
  variable,
  title: "Patroni",
  debian: ["patroni", "python3-kazoo", "python3-psycopg2"],
  advice: "Install it with ZooKeeper's client (Debian: apt-get install patroni python3-kazoo python3-psycopg2).",
  find() {
    const own = process.env[variable];
    for (const program of [...(own ? [own] : []), ...programFolders(["/usr/bin"]).map((bin) => join(bin, "patroni"))]) {
      const version = existsSync(program) && /(\d+[.\d]*)/.exec(ask(program, ["--version"]) ?? "")?.[1];
      if (version && hasModules(program)) return { bin: program, version, env: { [variable]: program } };
    }
    return undefined;
  },
};
