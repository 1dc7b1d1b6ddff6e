import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";

const needServers = "scheduler/test/support/servers.setup.ts";
const needZooKeeper = "zookeeper/test/support/servers.setup.ts";

/** Which part of the whole this is, see scripts/test.mjs; "": all of it. */
const line = process.env.CARILLON_TEST_LINE ?? "";
const again = ["second", "core", "units"].includes(line);
/**
 * What is the same on both lines of Node, so that once is enough: what the command line's words do to the store, what Java's
 * clients find in ZooKeeper, how the embedded server is shared and survives. So are harnesses of virtual time, of hostile
 * input and of processes under faults, and a browser neither knows nor cares which Node serves it.
 */
const onceOf = (files: string[]): string[] => (again ? files : []);
const wordsOnly = ["alarms", "as-code", "coordination", "editing", "operations", "secrets", "users"];
const sameServer = ["crash", "owner", "sharing"];
/** What a line tests; one that is not here, all. */
const chosen: Readonly<Record<string, readonly string[]>> = {
  first: ["unit", "tidy", "conformance", "cluster"],
  programs: ["processes", "embedded", "console"],
  coordination: ["zookeeper"],
  harnesses: ["simulation", "faults"],
  second: ["unit", "tidy", "conformance", "processes", "zookeeper", "embedded", "cluster"],
  core: ["unit", "conformance"],
  units: ["unit"],
};

/** These tests wait for processes, sessions and deadlines more than they compute: twice as many as cores at a time. */
const waiting = { maxWorkers: 4, sequence: { groupOrder: 1 } } as const;

/**
 * `npm test` starts the servers and calls Vitest with this. Projects of one group run side by side; the next group
 * starts when they have ended. Cluster tests measure the lateness of real processes, so nothing runs beside them and
 * their files run one by one.
 *
 * Files of the projects that compute most share processes, and with them what is loaded (`isolate`): to load it anew for each
 * took a tenth of the time of all. What they load keeps no state of a file and hooks into none (`hooksHold` in tidy).
 */
const tests: TestProjectInlineConfiguration["test"][] = [
  {
    name: "unit",
    include: ["scheduler/src/**/*.test.ts", "zookeeper/src/**/*.test.ts", "console/src/**/*.test.ts"],
    testTimeout: 20_000,
    isolate: false,
    sequence: { groupOrder: 0 },
  },
  {
    name: "tidy",
    include: ["scheduler/test/tidy/**/*.test.ts", "scheduler/test/support/**/*.test.ts"],
    testTimeout: 20_000,
    sequence: { groupOrder: 0 },
  },
  {
    name: "conformance",
    include: ["scheduler/test/conformance/**/*.test.ts"],
    globalSetup: [needServers],
    testTimeout: 180_000,
    hookTimeout: 120_000,
    isolate: false,
    ...waiting,
  },
  {
    name: "processes",
    include: ["scheduler/test/cli/**/*.test.ts", "scheduler/test/processes/**/*.test.ts"],
    exclude: onceOf(wordsOnly.map((name) => `scheduler/test/cli/${name}.test.ts`)),
    globalSetup: [needServers],
    testTimeout: 120_000,
    hookTimeout: 60_000,
    ...waiting,
  },
  {
    name: "zookeeper",
    include: ["zookeeper/test/**/*.test.ts"],
    exclude: onceOf(["zookeeper/test/**/*java*.test.ts"]),
    globalSetup: [needZooKeeper],
    testTimeout: 90_000,
    hookTimeout: 90_000,
    isolate: false,
    ...waiting,
  },
  {
    name: "embedded",
    include: ["scheduler/test/embedded/**/*.test.ts"],
    exclude: onceOf(sameServer.map((name) => `scheduler/test/embedded/${name}.test.ts`)),
    testTimeout: 90_000,
    hookTimeout: 90_000,
    ...waiting,
  },
  {
    name: "simulation",
    include: ["simulation/test/**/*.test.ts", "fuzz/test/**/*.test.ts"],
    globalSetup: [needServers],
    testTimeout: 120_000,
    ...waiting,
  },
  { name: "faults", include: ["faults/test/**/*.test.ts"], testTimeout: 180_000, ...waiting },
  {
    name: "console",
    include: ["console/test/**/*.test.ts"],
    globalSetup: [needServers],
    testTimeout: 90_000,
    hookTimeout: 90_000,
    ...waiting,
  },
  {
    name: "cluster",
    include: ["scheduler/test/cluster/**/*.test.ts"],
    globalSetup: [needServers],
    testTimeout: 180_000,
    hookTimeout: 60_000,
    fileParallelism: false,
    maxWorkers: 1,
    sequence: { groupOrder: 2 },
  },
];

export default defineConfig({
  test: {
    pool: "forks",
    environment: "node",
    passWithNoTests: false,
    maxWorkers: 2,
    teardownTimeout: 10_000,
    projects: tests
      .filter((test) => chosen[line]?.includes(test?.name as string) ?? true)
      .map((test) => ({ extends: true as const, test })),
  },
});
