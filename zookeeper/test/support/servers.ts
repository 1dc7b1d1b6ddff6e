import { delimiter, join } from "node:path";

/** The environment variables that `npm test` sets for tests of ZooKeeper: see scripts/servers/zookeeper.mjs. */
const variables = {
  url: "CARILLON_TEST_ZOOKEEPER_URL",
  java: "CARILLON_TEST_ZOOKEEPER_JAVA",
  server: "CARILLON_TEST_ZOOKEEPER_CLASSPATH",
  curator: "CARILLON_TEST_ZOOKEEPER_CURATOR_CLASSPATH",
} as const;

/** Tests that need Curator check for it: Homebrew has none. */
export const required: readonly string[] = [variables.url, variables.java, variables.server];

/** @throws when it is not set: a test never skips itself for want of a server. */
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

/** `host:port` of one running standalone server that every test shares: each uses a path of its own. */
export function sharedServer(): string {
  return read(variables.url);
}

/** For test titles: "ZooKeeper 3.8.0". */
export function serverTitle(): string {
  return process.env.CARILLON_TEST_ZOOKEEPER_TITLE || "ZooKeeper";
}

let paths = 0;

/** A path on the shared server that no other test has; it does not exist yet. */
export function ownPath(name = "test"): string {
  return `/${name}-${process.pid.toString(36)}-${Math.random().toString(36).slice(2, 10)}-${paths++}`;
}

export function javaProgram(name: "java" | "javac"): string {
  return join(read(variables.java), name);
}

/** Curator's recipes and all they need, after these folders or jars. */
export function curatorClasspath(...before: readonly string[]): string {
  return [...before, read(variables.curator)].join(delimiter);
}
