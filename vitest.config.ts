import { defineConfig } from "vitest/config";

const needServers = "scheduler/test/support/servers.setup.ts";
const needZooKeeper = "zookeeper/test/support/servers.setup.ts";

/**
 * What is the same on both lines of Node, so that once is enough: what the command line's words do to the store, what Java's
 * clients find in ZooKeeper, how the embedded server is shared and survives, and harnesses of virtual time, of hostile input
 * and of processes under faults.
 */
const brief = process.env.CARILLON_TEST_BRIEF === "1";
const wordsOnly = ["alarms", "as-code", "coordination", "editing", "operations", "secrets", "users"];
const sameServer = ["crash", "owner", "sharing"];
const onceOf = (files: string[]): string[] => (brief ? files : []);

/** These tests wait for processes, sessions and deadlines more than they compute: twice as many as cores at a time. */
const waiting = 4;

/** A browser neither knows nor cares which Node serves it: the first line tests it, the second has enough to do. */
const consoleProject = brief
  ? []
  : [
      {
        extends: true as const,
        test: {
          name: "console",
          include: ["console/test/**/*.test.ts"],
          globalSetup: [needServers],
          testTimeout: 90_000,
          hookTimeout: 90_000,
          maxWorkers: waiting,
          sequence: { groupOrder: 1 },
        },
      },
    ];

/**
 * `npm test` starts the servers and calls Vitest with this. Projects of one group run side by side; the next group
 * starts when they have ended. Cluster tests measure the lateness of real processes, so nothing runs beside them and
 * their files run one by one.
 */
export default defineConfig({
  test: {
    pool: "forks",
    environment: "node",
    passWithNoTests: false,
    maxWorkers: 2,
    teardownTimeout: 10_000,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["scheduler/src/**/*.test.ts", "zookeeper/src/**/*.test.ts", "console/src/**/*.test.ts"],
          testTimeout: 20_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "tidy",
          include: ["scheduler/test/tidy/**/*.test.ts", "scheduler/test/support/**/*.test.ts"],
          testTimeout: 20_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "conformance",
          include: ["scheduler/test/conformance/**/*.test.ts"],
          globalSetup: [needServers],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          maxWorkers: waiting,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "processes",
          include: ["scheduler/test/cli/**/*.test.ts", "scheduler/test/processes/**/*.test.ts"],
          exclude: onceOf(wordsOnly.map((name) => `scheduler/test/cli/${name}.test.ts`)),
          globalSetup: [needServers],
          testTimeout: 120_000,
          hookTimeout: 60_000,
          maxWorkers: waiting,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "zookeeper",
          include: ["zookeeper/test/**/*.test.ts"],
          exclude: onceOf(["zookeeper/test/**/*java*.test.ts"]),
          globalSetup: [needZooKeeper],
          testTimeout: 90_000,
          hookTimeout: 90_000,
          maxWorkers: waiting,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "embedded",
          include: ["scheduler/test/embedded/**/*.test.ts"],
          exclude: onceOf(sameServer.map((name) => `scheduler/test/embedded/${name}.test.ts`)),
          testTimeout: 90_000,
          hookTimeout: 90_000,
          maxWorkers: waiting,
          sequence: { groupOrder: 1 },
        },
      },
      ...(brief
        ? []
        : [
            {
              extends: true as const,
              test: {
                name: "simulation",
                include: ["simulation/test/**/*.test.ts", "fuzz/test/**/*.test.ts"],
                globalSetup: [needServers],
                testTimeout: 120_000,
                maxWorkers: waiting,
                sequence: { groupOrder: 1 },
              },
            },
            {
              extends: true as const,
              test: {
                name: "faults",
                include: ["faults/test/**/*.test.ts"],
                testTimeout: 180_000,
                maxWorkers: waiting,
                sequence: { groupOrder: 1 },
              },
            },
          ]),
      ...consoleProject,
      {
        extends: true,
        test: {
          name: "cluster",
          include: ["scheduler/test/cluster/**/*.test.ts"],
          globalSetup: [needServers],
          testTimeout: 180_000,
          hookTimeout: 60_000,
          fileParallelism: false,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
