import { existsSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const needServers = "scheduler/test/support/servers.setup.ts";
const cheapPasswords = "scheduler/test/support/cheap-passwords.ts";
const needZooKeeper = "zookeeper/test/support/servers.setup.ts";

/**
 * These tests wait for processes, sessions and deadlines more than they compute, so twice as many as cores run at a time. With
 * three on two cores the gate left them idle for a tenth to a third of its first minutes.
 */
const waiting = { maxWorkers: 4, sequence: { groupOrder: 1 } } as const;
/** A test's limit is there to end what hangs. How long a test may take is for the test to say. */
const hangsMs = 240_000;

/**
 * `npm test` starts the servers and calls Vitest with this. Projects of one group run side by side; the next group
 * starts when they have ended.
 *
 * Files of the projects that compute most share processes, and with them what is loaded (`isolate`): to load it anew for each
 * took a tenth of the time of all. What they load keeps no state of a file and hooks into none (`hooksHold` in tidy).
 */
const tests: TestProjectInlineConfiguration["test"][] = [
  {
    name: "unit",
    include: [
      "scheduler/src/**/*.test.ts",
      "scheduler/test/oracle/**/*.test.ts",
      "zookeeper/src/**/*.test.ts",
      "console/src/**/*.test.ts",
    ],
    testTimeout: hangsMs,
    isolate: false,
    sequence: { groupOrder: 0 },
  },
  {
    name: "tidy",
    include: ["scheduler/test/tidy/**/*.test.ts", "scheduler/test/support/**/*.test.ts"],
    testTimeout: hangsMs,
    sequence: { groupOrder: 0 },
  },
  {
    name: "conformance",
    include: ["scheduler/test/conformance/**/*.test.ts"],
    globalSetup: [needServers],
    setupFiles: [cheapPasswords],
    testTimeout: hangsMs,
    hookTimeout: hangsMs,
    isolate: false,
    ...waiting,
  },
  {
    name: "processes",
    include: ["scheduler/test/cli/**/*.test.ts", "scheduler/test/processes/**/*.test.ts"],
    globalSetup: [needServers],
    testTimeout: hangsMs,
    hookTimeout: hangsMs,
    ...waiting,
  },
  {
    name: "zookeeper",
    include: ["zookeeper/test/**/*.test.ts"],
    globalSetup: [needZooKeeper],
    testTimeout: hangsMs,
    hookTimeout: hangsMs,
    isolate: false,
    ...waiting,
  },
  {
    name: "embedded",
    include: ["scheduler/test/embedded/**/*.test.ts"],
    testTimeout: hangsMs,
    hookTimeout: hangsMs,
    ...waiting,
  },
  {
    name: "simulation",
    include: ["simulation/test/**/*.test.ts", "fuzz/test/**/*.test.ts"],
    globalSetup: [needServers],
    testTimeout: hangsMs,
    ...waiting,
  },
  {
    name: "faults",
    include: ["faults/test/**/*.test.ts"],
    testTimeout: hangsMs,
    ...waiting,
  },
  {
    name: "console",
    include: ["console/test/**/*.test.ts"],
    globalSetup: [needServers],
    setupFiles: [cheapPasswords],
    testTimeout: hangsMs,
    hookTimeout: hangsMs,
    ...waiting,
  },
  {
    name: "cluster",
    include: ["scheduler/test/cluster/**/*.test.ts"],
    globalSetup: [needServers],
    testTimeout: hangsMs,
    hookTimeout: hangsMs,
    ...waiting,
  },
  {
    // Measures, so nothing runs beside it: `npm run prove -- timing` alone runs it.
    name: "timing",
    include: ["scheduler/test/timing/**/*.test.ts"],
    globalSetup: [needServers],
    testTimeout: hangsMs,
    hookTimeout: hangsMs,
    fileParallelism: false,
    maxWorkers: 1,
    sequence: { groupOrder: 2 },
  },
];

/** Files of some minute and more, slowest first, as the gate lists them ("Slowest files"). */
const slowest = [
  "simulation/test/policies.test.ts",
  "console/test/console.test.ts",
  "scheduler/test/conformance/witness.test.ts",
  "scheduler/test/processes/lost-worker.test.ts",
  "scheduler/test/conformance/witnessed.test.ts",
  "scheduler/test/cluster/crash.test.ts",
  "scheduler/test/conformance/redis-witness.test.ts",
  "scheduler/test/cluster/standstill.test.ts",
  "scheduler/test/cli/coordination.test.ts",
  "scheduler/test/cli/commands.test.ts",
  "simulation/test/seeds.test.ts",
  "scheduler/test/cluster/patroni.test.ts",
];
const root = fileURLToPath(new URL(".", import.meta.url));

/** Vitest's order of files, but the slowest begin first: one that began last would run alone at the end. */
class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const gone = slowest.filter((path) => !existsSync(join(root, path)));
    if (gone.length > 0) throw new Error(`vitest.config.ts lists files that do not exist: ${gone.join(", ")}`);
    const placeOf = ({ moduleId }: TestSpecification) => {
      const place = slowest.indexOf(relative(root, moduleId));
      return place < 0 ? slowest.length : place;
    };
    // Vitest runs one group of projects after the other whatever the order, and the sort is stable.
    return (await super.sort(files)).sort((a, b) => placeOf(a) - placeOf(b));
  }
}

export default defineConfig({
  test: {
    pool: "forks",
    // The sources are transformed once, not for each project and each Node anew.
    experimental: { fsModuleCache: true },
    environment: "node",
    passWithNoTests: false,
    maxWorkers: 2,
    teardownTimeout: 10_000,
    sequence: { sequencer: SlowestFirst },
    // How long something may take is for the test to say: on a busy machine Vitest's own second is not enough for what takes 50 ms.
    expect: { poll: { timeout: 60_000 } },
    // The first line of a failure is all that the summary shows: it says what was found, not that something was.
    chaiConfig: { truncateThreshold: 400 },
    projects: tests.map((test) => ({ extends: true as const, test })),
  },
});
