import fc from "fast-check";
import { readYaml } from "../../../scheduler/src/apply/read.ts";
import { writeYaml } from "../../../scheduler/src/apply/write.ts";
import { parseRedisUrl } from "../../../scheduler/src/coordination/redis/address.ts";
import { ClusterPath } from "../../../scheduler/src/coordination/zookeeper/path.ts";
import { checkEnqueueOptions, dueOfEnqueue } from "../../../scheduler/src/run/enqueue-options.ts";
import { calendarContent } from "../../../scheduler/src/schedule/calendar.ts";
import { parseAddress } from "../../../scheduler/src/settings/address.ts";
import { alarmSettings } from "../../../scheduler/src/settings/alarms/alarms.ts";
import { parseListen } from "../../../scheduler/src/settings/listen.ts";
import { workerSettingsOf } from "../../../scheduler/src/settings/remote-worker.ts";
import { settingsOf } from "../../../scheduler/src/settings/settings.ts";
import { defineTask, definitionText } from "../../../scheduler/src/task/task.ts";
import { fieldChanges, readWritten, writtenTask } from "../../../scheduler/src/task/written.ts";
import { checkOptions } from "../../../zookeeper/src/client/options.ts";
import { parseConnectString } from "../../../zookeeper/src/connection/connect-string.ts";
import { tasks, taskWords } from "../corpus.ts";
import { expect, hold, same } from "../expected.ts";
import { oddJson, oddValues, spoiltTexts, spoiltValues } from "../mutation.ts";
import { target } from "../target.ts";

const taskNames = fc.oneof(
  fc.constantFrom("settle", "a/b", "10", "é", "__proto__"),
  fc.string({ unit: "binary", maxLength: 12 }),
);

/** A YAML file that contains every task of the corpus. */
const wholeFile = writeYaml(
  tasks.map((written, at) => ({ name: `task-${at}`, written: written as never, comment: "as it was" })),
  "nightly",
);
const yamlFiles = [
  wholeFile,
  "tasks:\n  a: { schedule: '0 2 * * *' }\n  b: &b { timeout: 1h, retry: { attempts: 3 } }\n  c: *b\n",
  "bundle: x\ntasks:\n  a:\n    slotPayload: |\n      text\n       more\n    description: >-\n      folded\n      text\n",
];
const yamlWords = [
  "tasks:",
  "bundle:",
  "  ",
  "\n",
  "- ",
  ": ",
  "&a",
  "*a",
  "<<: ",
  "!!binary ",
  "!!set",
  "!!map",
  "!!timestamp",
  "? ",
  "| ",
  ">+",
  "---\n",
  "...\n",
  "%YAML 1.1\n",
  "{",
  "}",
  "[",
  "]",
  '"',
  "'",
  "#",
  "~",
  "yes",
  "0o7",
  "0x1F",
  "1e3",
  ".inf",
  ".nan",
  "2027-01-01",
  "null",
  "\t",
  "!<tag:yaml.org,2002:js/function>",
];

const options = {
  store: "postgres://u:p@127.0.0.1:5432/app",
  coordination: "zookeeper://zk1:2181,zk2:2181/x",
  schema: "carillon",
  name: "atlas",
  address: "10.0.0.7:7373",
  scheduler: true,
  observer: false,
  worker: true,
  groups: ["default"],
  labels: { zone: "eu-1" },
  concurrency: 10,
  retention: "30d",
  horizon: "15s",
  claimAhead: "1s",
  sessionTimeout: "6s",
  drain: "30s",
  handleSignals: false,
  failFast: true,
  commands: { allow: ["/usr/bin/true"], shell: false, rehearse: false },
  httpTasks: { allow: ["example.com"] },
  listen: "127.0.0.1:7373",
  behindProxy: false,
  metrics: true,
  alarms: {
    channels: {
      ops: { webhook: "https://example.com/x", secret: "s" },
      mail: { smtp: "smtp://mail.example", from: "a@b.c", to: ["d@e.f"] },
    },
  },
};
const workerOptions = {
  server: ["http://127.0.0.1:7373"],
  key: "ck_1_abc",
  groups: ["default"],
  name: "w",
  labels: { a: "b" },
  concurrency: 5,
  claimAhead: "1s",
  sessionTimeout: "6s",
  drain: "30s",
  handleSignals: false,
  failFast: true,
};
const zooKeeperOptions = {
  sessionTimeoutMs: 5_000,
  connectTimeoutMs: 100,
  auth: [{ scheme: "digest", credentials: "a:b" }],
  maxReplyBytes: 1e6,
};
const enqueueOptions = [
  { in: "5m", key: "k", limitKey: "l", priority: 3 },
  { at: 2_000_000_000_000 },
  { at: new Date(0) },
];
const addresses = [
  "redis://u:p@h:6379/3?prefix=x",
  "redis+sentinel://:p@h1,h2:26379/main/2",
  "rediss+cluster://h:1,h:2",
  "10.0.0.7:7373",
  "zookeeper://u:p@zk1:2181,zk2/x/y?auth=sasl",
  "zookeepers://zk",
  "zk1:2181,[::1]:2181/chroot",
  "[2001:db8::7]:80",
  "node-1.example:7373",
  "0.0.0.0:7373",
  "7373",
  "127.0.0.1:0",
];

export const definitionTargets = [
  target({
    name: "tasks",
    share: 3,
    inputs: fc.record({ name: taskNames, written: spoiltValues(tasks, fc.oneof(oddJson, oddValues), taskWords) }),
    feed: ({ name, written }) => {
      const read = expect(() => readWritten(name, written))?.value;
      if (!read) return;
      const stored = JSON.parse(JSON.stringify(read)) as typeof read;
      same(stored, read, "in the store it is another");
      const again = readWritten(name, writtenTask(read));
      same(definitionText(again), definitionText(read), "written and read again, it is another");
      same(fieldChanges(read, again), [], "its fields differ from its own");
    },
  }),
  target({
    name: "task-options",
    share: 1,
    inputs: fc.record({
      name: fc.oneof(taskNames, oddValues) as fc.Arbitrary<string>,
      given: spoiltValues(tasks, oddValues, taskWords),
    }),
    feed: ({ name, given }) => {
      const made = expect(() => defineTask(name, given as object))?.value;
      if (made) hold(typeof definitionText(made) === "string", () => "it has no text");
    },
  }),
  target({
    name: "task-files",
    share: 0.4,
    inputs: spoiltTexts(yamlFiles, [...yamlWords, ...taskWords]),
    feed: (text) => {
      const read = expect(() => readYaml("tasks.yaml", text))?.value;
      if (!read) return;
      for (const { message, line } of read.problems) {
        hold(message.length < 4_000, () => `a problem of ${message.length} characters: ${message.slice(0, 200)}`);
        hold(
          line === null || (line >= 1 && line <= text.split("\n").length),
          () => `line ${line} of ${text.split("\n").length}`,
        );
      }
      const written = read.tasks.map(({ definition }) => ({ name: definition.name, written: writtenTask(definition) }));
      const again = readYaml("again.yaml", writeYaml(written, read.bundle));
      same(again.problems, [], "what was written has problems");
      same(
        Object.fromEntries(again.tasks.map(({ definition }) => [definition.name, definition])),
        Object.fromEntries(read.tasks.map(({ definition }) => [definition.name, definition])),
        "written and read again, the tasks are others",
      );
    },
    grown: { corpus: yamlFiles, most: 64_000, feed: (text) => void expect(() => readYaml("tasks.yaml", text)) },
  }),
  target({
    name: "options",
    share: 2,
    inputs: fc.oneof(
      fc.record({ of: fc.constant("node"), given: spoiltValues([options], oddValues, Object.keys(options)) }),
      fc.record({
        of: fc.constant("worker"),
        given: spoiltValues([workerOptions], oddValues, Object.keys(workerOptions)),
      }),
      fc.record({
        of: fc.constant("alarms"),
        given: spoiltValues([options.alarms], oddValues, ["webhook", "smtp", "to"]),
      }),
      fc.record({
        of: fc.constant("enqueue"),
        given: spoiltValues(enqueueOptions, oddValues, ["in", "at", "key", "tx"]),
      }),
      fc.record({
        of: fc.constant("zookeeper"),
        given: spoiltValues([zooKeeperOptions], oddValues, Object.keys(zooKeeperOptions)),
      }),
      fc.record({
        of: fc.constant("calendar"),
        given: spoiltValues([{ zone: "Europe/Berlin", weekend: [6, 0], holidays: ["2026-12-25"] }], oddValues, [
          "zone",
        ]),
      }),
    ),
    feed: ({ of, given }) => {
      // TypeScript does not allow a program to pass anything but an object, so other values are not tested.
      if (typeof given !== "object" || given === null) return;
      expect(() => {
        if (of === "node") settingsOf(given);
        else if (of === "worker") workerSettingsOf(given);
        else if (of === "alarms") alarmSettings(given as Parameters<typeof alarmSettings>[0]);
        else if (of === "zookeeper") checkOptions(given);
        else if (of === "calendar") calendarContent(given as Parameters<typeof calendarContent>[0]);
        else {
          checkEnqueueOptions(given);
          dueOfEnqueue(given, 1_000);
        }
      });
    },
  }),
  target({
    name: "addresses",
    share: 1,
    inputs: fc.oneof(
      spoiltTexts(addresses, ["://", "@", ":", "/", "?", "[", "]", "%zz", "%2f", ",", "#"]),
      fc.string({ maxLength: 40 }),
    ),
    feed: (text) => {
      expect(() => parseRedisUrl(text));
      expect(() => parseListen(text));
      expect(() => parseConnectString(text));
      if (/^zookeepers?:\/\//.test(text)) expect(() => new ClusterPath(text, "c"));
      const address = expect(() => parseAddress(text))?.value;
      if (address !== undefined) same(parseAddress(address), address, "read again, it is another");
    },
    grown: {
      corpus: addresses,
      most: 100_000,
      feed: (text) => {
        expect(() => parseRedisUrl(text));
        expect(() => parseAddress(text));
        expect(() => parseListen(text));
        expect(() => parseConnectString(text));
      },
    },
  }),
];
