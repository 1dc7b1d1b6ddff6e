/** Finds PgBouncer from PATH, Debian or Homebrew. Tests start their own, each in front of a PostgreSQL that is already running. */
import { chownSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ask, launch, programFolders } from "./server.mjs";

const variable = "CARILLON_TEST_PGBOUNCER";

/** @type {Omit<import("./server.mjs").ServerKind, "start">} */
export const pgbouncer = {
  variable,
  title: "PgBouncer",
  debian: ["pgbouncer"],
  advice: "Install PgBouncer (Debian: apt-get install pgbouncer; macOS: brew install pgbouncer).",
  find() {
    const own = process.env[variable];
    const folders = programFolders(["/usr/sbin", "/opt/homebrew/bin", "/usr/local/bin", "/usr/local/sbin"]);
    for (const program of [...(own ? [own] : []), ...folders.map((folder) => join(folder, "pgbouncer"))]) {
      // The program prints, for example, "PgBouncer 1.18.0".
      const version = existsSync(program) && /^PgBouncer (\d[.\d]*)/m.exec(ask(program, ["--version"]) ?? "")?.[1];
      if (version) return { bin: program, version, env: { [variable]: program } };
    }
    return undefined;
  },
};

/**
 * Starts a PgBouncer in front of all databases of one PostgreSQL. It accepts every client, and connects as the user in `target`.
 * @param {string} program @param {string} folder that the user may write to @param {import("./server.mjs").Conditions["user"]} user
 * @param {{ target: string, port: number, mode: "transaction" | "session", poolSize: number }} options target: PostgreSQL's URL
 */
export function startPgbouncer(program, folder, user, { target, port, mode, poolSize }) {
  const { hostname, port: targetPort, username, password } = new URL(target);
  const lines = [
    "[databases]",
    `* = host=${hostname} port=${targetPort} user=${decodeURIComponent(username)} password=${decodeURIComponent(password)}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = any",
    `pool_mode = ${mode}`,
    `default_pool_size = ${poolSize}`,
    "max_client_conn = 1000",
    "server_login_retry = 1",
  ];
  const file = join(folder, `pgbouncer-${port}.ini`);
  writeFileSync(file, `${lines.join("\n")}\n`, { mode: 0o600 });
  if (user.uid !== undefined && user.gid !== undefined) chownSync(file, user.uid, user.gid);
  return launch(program, [file], {
    user,
    cwd: folder,
    log: join(folder, `pgbouncer-${port}.log`),
    ready: /process up: PgBouncer/,
  });
}
