import { existsSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const needServers = "scheduler/test/support/servers.setup.ts";
const cheapPasswords = "scheduler/test/support/cheap-passwords.ts";
const needZooKeeper = "zookeeper/test/support/servers.setup.ts";

/**
 * Settings of projects whose tests mostly wait for processes, sessions and deadlines. Up to four files run at a time, which is two per
 * core on a machine with two cores. With three files on two cores, the cores were idle for 10 to 30 % of the first minutes.
 */
const waiting = { maxWorkers: 4, sequence: { groupOrder: 1 } } as const;
/** Time limit that only ends tests that hang. Tests with a real time limit check it themselves. */
const hangsMs = 240_000;

/**
 * `npm test` starts the servers and calls Vitest with this configuration. Projects with the same `groupOrder` run side by side; the next
 * group starts when they have ended.
 *
 * With `isolate: false`, the files of a project share processes and loaded modules, because loading them for each file took 10 % of the
 * total time. The shared modules must therefore keep no state of a file and no hooks of a file (`hooksHold` in tidy checks this).
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
    // This project measures times, so nothing may run beside it: only `npm run prove -- timing` runs it.
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

/** Files that take about a minute or more, slowest first, as `npm test` reports them ("Slowest files"). */
const slowest = [
  "simulation/test/policies.test.ts",
  "console/test/console.test.ts",
  "scheduler/test/conformance/membership-provider.test.ts",
  "scheduler/test/processes/lost-worker.test.ts",
  "scheduler/test/conformance/provider-members.test.ts",
  "scheduler/test/cluster/crash.test.ts",
  "scheduler/test/conformance/redis-provider.test.ts",
  "scheduler/test/cluster/standstill.test.ts",
  "scheduler/test/cli/coordination.test.ts",
  "scheduler/test/cli/commands.test.ts",
  "simulation/test/seeds.test.ts",
  "scheduler/test/cluster/patroni.test.ts",
];
const root = fileURLToPath(new URL(".", import.meta.url));

/** Sorts files like Vitest, but starts the slowest files first, because a slow file that starts last would run alone at the end. */
class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const gone = slowest.filter((path) => !existsSync(join(root, path)));
    if (gone.length > 0) throw new Error(`vitest.config.ts lists files that do not exist: ${gone.join(", ")}`);
    const placeOf = ({ moduleId }: TestSpecification) => {
      const place = slowest.indexOf(relative(root, moduleId));
      return place < 0 ? slowest.length : place;
    };
    // Vitest runs groups of projects one after the other, so sorting all files together is safe. The sort is stable.
    return (await super.sort(files)).sort((a, b) => placeOf(a) - placeOf(b));
  }
}

export default defineConfig({
  test: {
    pool: "forks",
    // Caches transformed sources on disk, so that a source is transformed once and not again for each project and Node version.
    experimental: { fsModuleCache: true },
    environment: "node",
    passWithNoTests: false,
    maxWorkers: 2,
    teardownTimeout: 10_000,
    sequence: { sequencer: SlowestFirst },
    // Vitest's default of one second is too short on a busy machine, even for a change that takes 50 ms. Tests limit durations themselves.
    expect: { poll: { timeout: 60_000 } },
    // The summary shows only the first line of a failure, so that line must contain the values and not be truncated.
    chaiConfig: { truncateThreshold: 400 },
    projects: tests.map((test) => ({ extends: true as const, test })),
  },
});
