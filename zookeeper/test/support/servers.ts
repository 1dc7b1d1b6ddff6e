import { delimiter, join } from "node:path";

/** Names of the environment variables that `npm test` sets for tests of ZooKeeper; see scripts/servers/zookeeper.mjs. */
const variables = {
  url: "CARILLON_TEST_ZOOKEEPER_URL",
  java: "CARILLON_TEST_ZOOKEEPER_JAVA",
  server: "CARILLON_TEST_ZOOKEEPER_CLASSPATH",
  curator: "CARILLON_TEST_ZOOKEEPER_CURATOR_CLASSPATH",
} as const;

/**
 * Variables without which no test can run. The variable for Curator is not among them, because Homebrew has no Curator; tests with Curator
 * check for it.
 */
export const required: readonly string[] = [variables.url, variables.java, variables.server];

/** Returns a variable's value. @throws if it is not set, because tests must not be skipped only because a server is missing */
function read(variable: string): string {
  const value = process.env[variable];
  if (!value) throw new Error(missing([variable]));
  return value;
}

export function missing(names: readonly string[]): string {
  return (
    `${names.join(", ")} not set: these tests need ZooKeeper, Java and Curator. Run them as \`npm test -- FILE…\`, ` +
    "which finds or installs them and starts a server, or set the variable by hand."
  );
}

/** `host:port` of a running standalone server that all tests share; each test uses its own path. */
export function sharedServer(): string {
  return read(variables.url);
}

/** The server's name and version for test titles, such as "ZooKeeper 3.8.0"; "ZooKeeper" if its variable is not set. */
export function serverTitle(): string {
  return process.env.CARILLON_TEST_ZOOKEEPER_TITLE || "ZooKeeper";
}

let paths = 0;

/** Returns a path on the shared server that no other test uses; its node does not exist yet. */
export function ownPath(name = "test"): string {
  return `/${name}-${process.pid.toString(36)}-${Math.random().toString(36).slice(2, 10)}-${paths++}`;
}

export function javaProgram(name: "java" | "javac"): string {
  return join(read(variables.java), name);
}

/** Returns the class path with Curator's recipes and their dependencies, after the given folders or jars. */
export function curatorClasspath(...before: readonly string[]): string {
  return [...before, read(variables.curator)].join(delimiter);
}
