/** Fuzzes files and command-line words that users write, other than task files. */
import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { readSecretKeys } from "../../../scheduler/src/access/secrets/read-keys.ts";
import { Redactor } from "../../../scheduler/src/access/secrets/redactor.ts";
import { SecretKeys } from "../../../scheduler/src/access/secrets/secret-keys.ts";
import { planApply } from "../../../scheduler/src/apply/apply-plan.ts";
import { planId } from "../../../scheduler/src/apply/plan-json.ts";
import { completionOf } from "../../../scheduler/src/cli/completion.ts";
import { problemsIn, readRaw } from "../../../scheduler/src/cli/config/config-file.ts";
import { inEnvironment, optionsBeneath, settings } from "../../../scheduler/src/cli/config/config-settings.ts";
import { profileCalled, profilesPath, readProfiles, serverUrl } from "../../../scheduler/src/cli/config/profiles.ts";
import { filterOf } from "../../../scheduler/src/cli/runs/operations.ts";
import { settingsOf } from "../../../scheduler/src/settings/settings.ts";
import type { AppliedTask } from "../../../scheduler/src/task/applied-store.ts";
import { edited } from "../../../scheduler/src/task/edits.ts";
import { checkSecretName } from "../../../scheduler/src/task/names.ts";
import type { TaskDefinition } from "../../../scheduler/src/task/task.ts";
import { readWritten } from "../../../scheduler/src/task/written.ts";
import { tasks, taskWords } from "../corpus.ts";
import { expect, expectLater, hold, same } from "../expected.ts";
import { oddJson, oddTexts, spoiltTexts, spoiltValues } from "../mutation.ts";
import { target } from "../target.ts";
import { oddTimes } from "./api-words.ts";
import { quiet } from "./command-line.ts";

const configs = [
  "store: postgres://u:p@127.0.0.1/app\nschema: billing\nlisten: 127.0.0.1:7373\nbehindProxy: true\ngroups: [a, b]\n",
  "labels: { zone: eu-1 }\nconcurrency: 5\ncommands:\n  allow: [/usr/bin/true]\n  shell: false\nretention: 30d\ndrain: 500\n",
  "alarms:\n  channels:\n    ops: { webhook: https://x.example/y, secret: env:HOME }\n  rules: { failed: [ops] }\nlogLevel: debug\n",
  "provider: { issuer: https://l.example, clientId: c, clientSecret: s, url: https://c.example, rules: [{ claim: g, role: admin }] }\n",
  '{"store":"postgres://h/db","httpTasks":{"allow":["example.com"],"secret":"env:HOME"},"failFast":true,"migrate":false}',
];
const configWords = [
  ...settings.map(({ key }) => `${key}: `),
  "env:HOME",
  "env:NO_SUCH_VARIABLE",
  "- ",
  ": ",
  "{",
  "}",
  "[",
  "]",
  "&a ",
  "*a",
  "\n",
  "  ",
  "null",
  "true",
  "1e9",
  "__proto__: ",
];
const profiles = [
  '{"current":"prod","profiles":{"prod":{"server":"https://c.example","token":"ct_1_x","user":"a","tokenName":"t","expires":null}}}',
  '{"current":null,"profiles":{}}',
];
const secretKey = randomBytes(32).toString("base64");
const keyTexts = [secretKey, `${secretKey},${secretKey}`, "# a comment\n", "file:/no/such/file"];

/** A temporary folder for inputs that are read from a file by its path. */
let folder = "";
const withFolder = async () => {
  folder = mkdtempSync(join(tmpdir(), "carillon-fuzz-"));
  return async () => rmSync(folder, { recursive: true, force: true });
};

const values = [
  "hunter2-hunter2",
  "line one is long\nline two is longer",
  'a"b\\c/d e%f+g=h',
  "Grüße, Jürgen und 漢字",
  "12345678",
];
const bulk = { task: "settle", matching: "a*", since: "2h", until: "2027-01-01T00:00:00Z", state: ["failed"] };

interface Planned {
  readonly wanted: readonly { readonly name: string; readonly written: unknown }[];
  readonly present: readonly {
    readonly name: string;
    readonly written: unknown;
    readonly edit: unknown;
    readonly bundle: string | null;
    readonly removed: boolean;
  }[];
  readonly prune: boolean;
  readonly adopt: boolean;
  readonly overwriteEdits: boolean;
}

const names = fc.constantFrom("a", "b", "c", "load", "clean");
const written = spoiltValues(tasks, oddJson, taskWords, 2);

export const fileTargets = [
  target({
    name: "config-files",
    share: 0.3,
    open: withFolder,
    inputs: fc.record({
      text: spoiltTexts(configs, configWords),
      end: fc.constantFrom("yaml", "yaml", "json"),
      variable: fc.constantFrom(...settings),
      value: fc.oneof(fc.constantFrom(...oddTexts), spoiltTexts(["a=b,c=d", "5", "true", "5m", "a,b", "127.0.0.1:1"])),
    }),
    feed: async ({ text, end, variable, value }) => {
      const environment = Object.fromEntries(variable.variables.map((name) => [name, value]));
      expect(() => inEnvironment(variable, environment));
      const path = join(folder, `carillon.config.${end}`);
      writeFileSync(path, text);
      const file = (await expectLater(() => readRaw(path)))?.value;
      if (!file) return;
      const problems = problemsIn(file);
      for (const { message } of problems)
        hold(message.length < 4_000, () => `a problem of ${message.length} characters`);
      const given = expect(() => optionsBeneath(file, environment, (options) => options));
      if (given) expect(() => settingsOf(given.value));
    },
  }),
  target({
    name: "profiles",
    share: 0.2,
    open: withFolder,
    inputs: fc.record({
      text: spoiltTexts(profiles, ['"current":', '"profiles":', "null", "{", "}", "__proto__", "[]"]),
      server: spoiltTexts(
        ["https://c.example/x", "http://127.0.0.1:1", "http://u:p@h"],
        ["://", "@", "[::1]", "%", "#"],
      ),
      name: fc.constantFrom("prod", ...oddTexts),
    }),
    feed: ({ text, server, name }) => {
      expect(() => serverUrl(server, "--server", {}));
      const environment = { XDG_CONFIG_HOME: folder };
      const path = profilesPath(environment);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text, { mode: 0o600 });
      chmodSync(path, 0o600);
      const read = expect(() => readProfiles(environment))?.value;
      if (read) expect(() => serverUrl(profileCalled(read, name).server, "the profile", {}));
    },
  }),
  target({
    name: "completions",
    share: 0.1,
    inputs: fc.array(
      fc.oneof(
        fc.constantFrom(
          "tasks",
          "runs",
          "list",
          "show",
          "--task",
          "--task=",
          "--",
          "-",
          "--store=x",
          "operations",
          "apply",
        ),
        fc.constantFrom(...oddTexts),
      ),
      { maxLength: 6 },
    ),
    feed: (words) => {
      const { candidates, beginning } = completionOf(program, words);
      for (const { value } of candidates) hold(value.startsWith(beginning), () => `${value} after ${beginning}`);
    },
  }),
  target({
    name: "command-filters",
    share: 0.5,
    inputs: fc
      .record({
        options: spoiltValues([bulk], fc.constantFrom(...oddTexts), Object.keys(bulk)),
        time: fc.oneof(
          fc.constantFrom(...oddTimes),
          spoiltTexts(["2h", "1.5d", "2027-01-01T00:00:00+01:00"], ["ms", ".", "e9", "-"]),
        ),
      })
      // The command line passes only strings, except for `state`.
      .map(({ options, time }) => ({ ...(typeof options === "object" ? options : {}), since: time })),
    feed: (options) => {
      const given = Object.fromEntries(
        Object.entries(options).filter(([name, one]) => name === "state" || typeof one === "string"),
      );
      const filter = expect(() =>
        filterOf(given as unknown as Parameters<typeof filterOf>[0], 1_900_000_000_000),
      )?.value;
      if (!filter) return;
      for (const ms of [filter.sinceMs, filter.untilMs])
        hold(ms === undefined || Number.isSafeInteger(ms), () => `the time is ${ms}`);
    },
  }),
  target<Planned>({
    name: "bundle-plans",
    share: 0.5,
    inputs: fc.record({
      wanted: fc.array(fc.record({ name: names, written }), { maxLength: 4 }),
      present: fc.array(
        fc.record({
          name: names,
          written,
          edit: written,
          bundle: fc.constantFrom("mine", "mine", "other", null),
          removed: fc.integer({ min: 0, max: 4 }).map((one) => one === 0),
        }),
        { maxLength: 4 },
      ),
      prune: fc.boolean(),
      adopt: fc.boolean(),
      overwriteEdits: fc.boolean(),
    }),
    feed: ({ wanted, present, ...options }) => {
      const defined = new Map<string, TaskDefinition>();
      for (const { name, written: one } of wanted) {
        const made = expect(() => readWritten(name, one));
        if (made) defined.set(name, made.value);
      }
      const there = new Map<string, AppliedTask>();
      for (const { name, written: one, edit, bundle, removed } of present) {
        const made = expect(() => readWritten(name, one))?.value;
        if (!made) continue;
        const changed = (isObject(edit) ? expect(() => edited(made, edit))?.value : undefined) ?? made;
        const by = { author: "fuzz", reason: "", changedMs: 1_000 };
        there.set(name, {
          name,
          version: 3,
          removed,
          definition: changed,
          bundle,
          applied: bundle === null ? null : made,
          waiting: 0,
          ...by,
        });
      }
      const how = { bundle: "mine", ...options };
      const plan = expect(() => planApply([...defined.values()], [...there.values()], how))?.value;
      if (!plan) return;
      same(
        planId(plan),
        planId(planApply([...defined.values()], [...there.values()], how)),
        "planned again, it is another",
      );
      for (const step of plan.steps) {
        if (step.kind === "refused") continue;
        if (step.kind === "remove") there.delete(step.task);
        else if (step.definition) there.set(step.task, applied(step.task, step.definition, there.get(step.task)));
      }
      const again = planApply([...defined.values()], [...there.values()], how);
      const left = again.steps
        .filter(({ kind }) => kind !== "none" && kind !== "refused")
        .map(({ task, kind }) => [task, kind]);
      same(left, [], "carried out, there is still something to do");
    },
  }),
  target({
    name: "secrets",
    share: 0.5,
    inputs: fc.record({
      keys: spoiltTexts(keyTexts, [",", "\n", "file:", "=", "#"]),
      name: spoiltTexts(["db-password", "a.b"], ["{{secret:x}}", "/", "__proto__"]),
      value: fc.oneof(fc.constantFrom(...values), spoiltTexts(values, ["%", "\\", "\r\n", '"'])),
      before: fc.constantFrom("", "the password is ", '{"a":"', "postgres://u:"),
      form: fc.constantFrom<(text: string) => string>(
        (text) => text,
        (text) => JSON.stringify(text).slice(1, -1),
        (text) => encodeURIComponent(text),
        (text) => Buffer.from(text).toString("base64"),
      ),
      given: oddJson,
    }),
    feed: ({ keys, name, value, before, form, given }) => {
      expect(() => checkSecretName(name));
      expect(() => new SecretKeys(keys.split(",")));
      expect(() => readSecretKeys(keys));
      // The store accepts only well-formed values of at least 8 characters.
      if (!value.isWellFormed() || value.trim().length < 8) return;
      const own = new SecretKeys([secretKey]);
      const place = { name: "s", version: 1 };
      same(own.open(own.seal(value, place), place), value, "sealed and opened, it is another");
      const redactor = new Redactor();
      redactor.add("s", value);
      const told = redactor.text(`${before}${form(value)} it was`);
      hold(!told.includes(form(value)), () => `${JSON.stringify(told)} still tells ${JSON.stringify(value)}`);
      const json = redactor.json(JSON.stringify({ a: [before + value], [value]: given }));
      hold(!json.includes(JSON.stringify(value).slice(1, -1)), () => `${json.slice(0, 500)} still tells it`);
      redactor.json(JSON.stringify(given) ?? "null");
    },
  }),
];

const program = quiet();
/** True for a plain object; request validation passes only objects on. */
const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the task as a store would hold it after the definition was applied. */
const applied = (name: string, definition: TaskDefinition, before: AppliedTask | undefined): AppliedTask => ({
  name,
  version: (before?.version ?? 0) + 1,
  waiting: 0,
  removed: false,
  definition,
  bundle: "mine",
  applied: definition,
  author: "fuzz",
  reason: "",
  changedMs: 2_000,
});
