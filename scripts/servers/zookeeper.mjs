/** Finds and starts ZooKeeper: the jars of Debian or Homebrew, a JDK, and Curator for Java, with which tests compare. */
import { chownSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { findJars, findJava, variables as found } from "../../zookeeper/src/testing/find.mjs";
import { ask, freePort, launch, onFreePort } from "./server.mjs";

/** @typedef {import("./server.mjs").ServerKind} ServerKind */

/**
 * Variables that name the programs for tests that start their own servers, ensembles and Java programs. A variable that is already set
 * takes precedence over what is found.
 */
const variables = /** @type {const} */ ({
  java: found.java,
  server: found.jars,
  /** Class path with the server's jars, Curator's recipes and Curator's service discovery. */
  curator: "CARILLON_TEST_ZOOKEEPER_CURATOR_CLASSPATH",
});

/** @type {ServerKind} */
export const zookeeper = {
  variable: "CARILLON_TEST_ZOOKEEPER_URL",
  title: "ZooKeeper",
  debian: ["zookeeper", "libcurator-recipes-java", "libcurator-discovery-java", "default-jdk-headless"],
  advice:
    "Install ZooKeeper, Java Curator 5 and a JDK (Debian: apt-get install zookeeper libcurator-recipes-java " +
    `libcurator-discovery-java default-jdk-headless; macOS: brew install zookeeper openjdk, and Curator's jars named in ${variables.curator}).`,
  find() {
    const jars = findAllJars();
    const bin = jars && findJava("javac");
    if (!jars || !bin) return undefined;
    // Prints "3.8.0-COMMIT, built on …", which also shows that this Java can run these jars.
    const told = ask(join(bin, "java"), [...quick, "-cp", jars.server, "org.apache.zookeeper.Version"]);
    const version = /^(\d+[.\d]*)/.exec(told ?? "")?.[1];
    if (!version) return undefined;
    const env = { [variables.java]: bin, [variables.server]: jars.server, [variables.curator]: jars.curator };
    return { bin, version, env };
  },
  start,
};

/** Options for short-lived Java processes: no optimising compiler, and one thread for garbage collection. */
const quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];

/**
 * Returns the class paths of the server and of Curator. Debian's jars are used only if Curator is installed too, because tests compare with
 * it. Homebrew has no Curator; there, the tests that need it name the missing variable.
 * @returns {{ server: string, curator: string } | undefined}
 */
function findAllJars() {
  const server = findJars();
  const own = process.env[variables.curator];
  if (server === undefined) return undefined;
  if (own !== undefined || process.env[variables.server]) return { server, curator: own ?? "" };
  const debian = ["curator-recipes", "curator-x-discovery"].map((name) => `/usr/share/java/${name}.jar`);
  const isDebian = server.startsWith("/usr/share/java/");
  if (isDebian && !debian.every((jar) => existsSync(jar))) return undefined;
  const maven = join(homedir(), ".m2/repository/org/apache/curator");
  const names = ["curator-recipes", "curator-x-discovery", "curator-framework", "curator-client"];
  const parts = isDebian ? debian : names.map((name) => newestJar(maven, name));
  const curator = parts.every((jar) => jar !== undefined) ? [...parts, server].join(delimiter) : "";
  return { server, curator };
}

/** @param {string} maven @param {string} name @returns {string | undefined} */
function newestJar(maven, name) {
  const folder = join(maven, name);
  if (!existsSync(folder)) return undefined;
  const versions = readdirSync(folder).sort((a, b) => b.localeCompare(a, "en", { numeric: true }));
  return versions.map((version) => join(folder, version, `${name}-${version}.jar`)).find((jar) => existsSync(jar));
}

/**
 * An ensemble of three voting servers. Its ticks are shorter than a single server's, because servers end sessions only at a tick, so a
 * session may live longer than its timeout by one tick.
 * @type {ServerKind}
 */
export const zookeeperEnsemble = { ...zookeeper, start: startEnsemble };

const servers = [1, 2, 3];
const ensembleTickMs = 250;

/** @param {string} data @param {number} port @param {boolean} durable */
const settingsOf = (data, port, durable) => ({
  dataDir: data,
  clientPort: port,
  clientPortAddress: "127.0.0.1",
  tickTime: durable ? 2_000 : 500,
  maxSessionTimeout: 60_000,
  maxClientCnxns: 0,
  extendedTypesEnabled: true,
  forceSync: durable ? "yes" : "no",
  "admin.enableServer": false,
  "4lw.commands.whitelist": "*",
});

/**
 * Starts one server.
 * @param {import("./server.mjs").Place} place @param {string} folder in which the data folder is created
 * @param {import("./server.mjs").Conditions} conditions
 * @param {{ program: string, port: number, ready: RegExp, settings?: Record<string, unknown>, id?: number }} plan
 */
async function launchOne(
  { bin, env = {} },
  folder,
  { user, durable },
  { program, port, ready, settings = {}, id = 1 },
) {
  const data = join(folder, "data");
  mkdirSync(data, { recursive: true, mode: 0o700 });
  writeFileSync(join(data, "myid"), `${id}\n`);
  if (user.uid !== undefined && user.gid !== undefined) {
    for (const path of [folder, data]) chownSync(path, user.uid, user.gid);
  }
  const file = join(folder, "zoo.cfg");
  const lines = Object.entries({ ...settingsOf(data, port, durable), ...settings }).map(
    (setting) => `${setting.join("=")}\n`,
  );
  writeFileSync(file, lines.join(""));
  const java = ["-Xmx1g", "-Dznode.container.checkIntervalMs=2000", ...(durable ? [] : quick)];
  const words = ["-cp", env[variables.server] ?? "", `org.apache.zookeeper.server.${program}`, file];
  return launch(join(bin, "java"), [...java, ...words], { user, cwd: folder, log: join(folder, "log"), ready });
}

/** @type {ServerKind["start"]} */
async function start(place, folder, conditions) {
  return onFreePort(async (port) => {
    const settings = conditions.tickMs === undefined ? {} : { tickTime: conditions.tickMs };
    const plan = { program: "ZooKeeperServerMain", port, ready: /PrepRequestProcessor .*started/, settings };
    const child = await launchOne(place, folder, conditions, plan);
    return { url: `127.0.0.1:${port}`, children: [child], signals: ["SIGTERM", "SIGKILL"] };
  });
}

/** @type {ServerKind["start"]} */
async function startEnsemble(place, folder, conditions) {
  const [ports, votes, elections] = await Promise.all([1, 2, 3].map(() => Promise.all(servers.map(freePort))));
  const members = servers.map((id, i) => [`server.${id}`, `127.0.0.1:${votes?.[i]}:${elections?.[i]}`]);
  const settings = { tickTime: ensembleTickMs, initLimit: 80, syncLimit: 40, ...Object.fromEntries(members) };
  // A server becomes ready only when others run, so all are started before the wait.
  const begun = await Promise.allSettled(
    servers.map((id, i) => {
      const home = join(folder, String(id));
      mkdirSync(home, { mode: 0o711 });
      const port = ports?.[i] ?? 0;
      const ready =
        /PrepRequestProcessor .*started|FollowerRequestProcessor .*started|Peer state changed: (?:leading|following) - broadcast/;
      return launchOne(place, home, conditions, { program: "quorum.QuorumPeerMain", port, ready, settings, id });
    }),
  );
  const children = begun.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
  for (const one of begun) {
    if (one.status === "fulfilled") continue;
    for (const child of children) child.kill("SIGKILL");
    throw one.reason;
  }
  const url = (ports ?? []).map((port) => `127.0.0.1:${port}`).join(",");
  return { url, children, signals: ["SIGTERM", "SIGKILL"] };
}
