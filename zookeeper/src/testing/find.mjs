/** Finds Java and ZooKeeper's jars. Plain JavaScript, because scripts use it before anything is compiled. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";

const homebrew = ["/opt/homebrew", "/usr/local", "/home/linuxbrew/.linuxbrew"];

/** The environment variables that override the search. */
export const variables = /** @type {const} */ ({
  /** The folder with `java`. */
  java: "CARILLON_TEST_ZOOKEEPER_JAVA",
  /** The jars of the server and of the Java client, with an slf4j that writes to stderr. */
  jars: "CARILLON_TEST_ZOOKEEPER_CLASSPATH",
});

/**
 * The folder of a Java that has this program and runs: looks at the variable, JAVA_HOME, PATH, then the paths of Debian and
 * Homebrew.
 * @param {"java" | "javac"} program
 * @returns {string | undefined}
 */
export function findJava(program) {
  const { JAVA_HOME: home, PATH: path = "", [variables.java]: own } = process.env;
  const folders = [own, home && join(home, "bin"), ...path.split(delimiter), "/usr/lib/jvm/default-java/bin"];
  for (const parent of ["/usr/lib/jvm", ...homebrew.map((prefix) => `${prefix}/opt`)]) {
    for (const name of listed(parent).toReversed()) folders.push(join(parent, name, "bin"));
  }
  // The program is run once, because macOS has a `java` that only reports that no Java is installed.
  return folders.find(
    (bin) => bin && existsSync(join(bin, program)) && spawnSync(join(bin, program), ["-version"]).status === 0,
  );
}

/**
 * The jars of a ZooKeeper server as a class path: from the variable, ZOOKEEPER_HOME, or the packages of Debian and Homebrew.
 * @returns {string | undefined}
 */
export function findJars() {
  const { ZOOKEEPER_HOME: home, [variables.jars]: own } = process.env;
  if (own) return own;
  if (home && listed(join(home, "lib")).length > 0) return join(home, "lib", "*");
  // Their manifests name the jars that they need, except for three jars that only TLS needs.
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
