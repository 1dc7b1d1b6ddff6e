/** Finds Java and ZooKeeper's jars. This is plain JavaScript, because scripts use it before anything is compiled. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";

const homebrew = ["/opt/homebrew", "/usr/local", "/home/linuxbrew/.linuxbrew"];

/** Names of the environment variables that override the search. */
export const variables = /** @type {const} */ ({
  /** The folder that contains `java`. */
  java: "CARILLON_TEST_ZOOKEEPER_JAVA",
  /** The class path with the jars of the server and of the Java client, with an slf4j that writes to stderr. */
  jars: "CARILLON_TEST_ZOOKEEPER_CLASSPATH",
});

/**
 * Returns the first folder with this program of a Java installation that works; undefined if there is none. Searches the environment
 * variable, JAVA_HOME, PATH, and the paths of Debian and Homebrew.
 * @param {"java" | "javac"} program
 * @returns {string | undefined}
 */
export function findJava(program) {
  const { JAVA_HOME: home, PATH: path = "", [variables.java]: own } = process.env;
  const folders = [own, home && join(home, "bin"), ...path.split(delimiter), "/usr/lib/jvm/default-java/bin"];
  for (const parent of ["/usr/lib/jvm", ...homebrew.map((prefix) => `${prefix}/opt`)]) {
    for (const name of listed(parent).toReversed()) folders.push(join(parent, name, "bin"));
  }
  // The program is run once, because macOS has a `java` that only reports that Java is not installed.
  return folders.find(
    (bin) => bin && existsSync(join(bin, program)) && spawnSync(join(bin, program), ["-version"]).status === 0,
  );
}

/**
 * Returns the jars of a ZooKeeper server as a class path, from the environment variable, ZOOKEEPER_HOME, or the packages of Debian and
 * Homebrew.
 * @returns {string | undefined}
 */
export function findJars() {
  const { ZOOKEEPER_HOME: home, [variables.jars]: own } = process.env;
  if (own) return own;
  if (home && listed(join(home, "lib")).length > 0) return join(home, "lib", "*");
  // The manifests of Debian's jars name the jars that they need, except for three jars that only TLS needs.
  const netty = ["netty-codec", "netty-resolver", "netty-transport-native-unix-common"];
  const jars = ["zookeeper", "slf4j-simple", ...netty].map((name) => `/usr/share/java/${name}.jar`);
  if (jars.every((jar) => existsSync(jar))) return jars.join(delimiter);
  const brewed = homebrew.map((prefix) => `${prefix}/opt/zookeeper/libexec/lib`).find((folder) => existsSync(folder));
  return brewed && join(brewed, "*");
}

/** @param {string} folder @returns {string[]} */
function listed(folder) {
  return existsSync(folder) ? readdirSync(folder).sort((a, b) => a.localeCompare(b, "en", { numeric: true })) : [];
}
