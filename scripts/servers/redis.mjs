/**
 * Finds Redis (CARILLON_TEST_REDIS_SERVER, PATH, Debian, Homebrew) and starts a single server on loopback, which stores nothing on disk
 * unless a bench needs durability.
 */
import { chownSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { ask, launch, onFreePort, programFolders } from "./server.mjs";

/** @typedef {import("./server.mjs").ServerKind} ServerKind */

/** Names Redis's program for tests that start, stop and wipe their own servers. */
const variable = "CARILLON_TEST_REDIS_SERVER";

/** @type {ServerKind} */
export const redis = {
  variable: "CARILLON_TEST_REDIS_URL",
  title: "Redis",
  debian: ["redis-server"],
  advice: "Install Redis 6.2 or newer (Debian: apt-get install redis-server; macOS: brew install redis).",
  find() {
    const folders = programFolders([
      "/usr/bin",
      "/opt/homebrew/bin",
      "/usr/local/bin",
      "/home/linuxbrew/.linuxbrew/bin",
    ]);
    const own = process.env[variable];
    const programs = [...(own ? [own] : []), ...folders.map((folder) => join(folder, "redis-server"))];
    for (const program of programs) {
      // The program prints, for example, "Redis server v=7.0.15 sha=…"; Valkey prints the same.
      const version = existsSync(program) && /\bv=(\d[.\d]*)/.exec(ask(program, ["--version"]) ?? "")?.[1];
      if (version) return { bin: program, version, env: { [variable]: program } };
    }
    return undefined;
  },
  start({ bin }, folder, { user, durable }) {
    const data = join(folder, "data");
    mkdirSync(data, { mode: 0o700 });
    if (user.uid !== undefined && user.gid !== undefined) {
      for (const path of [folder, data]) chownSync(path, user.uid, user.gid);
    }
    const keep = durable ? ["--appendonly", "yes", "--appendfsync", "everysec"] : ["--appendonly", "no"];
    return onFreePort(async (port) => {
      const place = ["--port", String(port), "--bind", "127.0.0.1", "--dir", data];
      const child = await launch(bin, [...place, "--save", "", ...keep], {
        user,
        cwd: folder,
        log: join(folder, "log"),
        ready: /Ready to accept connections/,
      });
      return { url: `redis://127.0.0.1:${port}`, children: [child], signals: ["SIGTERM", "SIGKILL"] };
    });
  },
};
