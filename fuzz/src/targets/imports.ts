import fc from "fast-check";
import { readYaml } from "../../../scheduler/src/apply/read.ts";
import { writeYaml } from "../../../scheduler/src/apply/write.ts";
import { importBullmq } from "../../../scheduler/src/importers/bullmq.ts";
import { importCrontab } from "../../../scheduler/src/importers/crontab/crontab.ts";
import type { Findings, ImportOptions, SourceFile } from "../../../scheduler/src/importers/findings.ts";
import { importKubernetes } from "../../../scheduler/src/importers/kubernetes.ts";
import { importPgBoss } from "../../../scheduler/src/importers/pg-boss.ts";
import { importQuartz } from "../../../scheduler/src/importers/quartz.ts";
import { fromXxl } from "../../../scheduler/src/importers/xxl-job.ts";
import { defineTask, definitionText } from "../../../scheduler/src/task/task.ts";
import { readWritten, writtenTask } from "../../../scheduler/src/task/written.ts";
import { crons, example, examplesBelow } from "../corpus.ts";
import { expect, hold, same } from "../expected.ts";
import { oddJson, spoiltTexts, spoiltValues } from "../mutation.ts";
import { target } from "../target.ts";

const crontabs = examplesBelow("crontabs/etc").map(({ text }) => text);
const crontabWords = [
  "SHELL=/bin/sh\n",
  "CRON_TZ=Europe/Berlin\n",
  "MAILTO=x\n",
  "PATH=/bin:/x\n",
  "RANDOM_DELAY=5\n",
  "@daily ",
  "@reboot ",
  "root ",
  "*/5 * * * * ",
  "%",
  "\\%",
  "%%",
  "~",
  "1~5",
  "|",
  "&&",
  "$(x)",
  "`",
  "'",
  '"',
  "\\",
  "{a,b}",
  "~user",
  ">",
  "# ",
  "\n",
  "\r\n",
  "-q ",
];

/** Checks that an import's result can be written as a task file, and that reading this file returns the same definitions. */
function applicable({ tasks, remarks }: Findings): void {
  for (const { message, source } of remarks)
    hold(
      message.length + source.length < 20_000,
      () => `a remark of ${message.length} characters: ${message.slice(0, 200)}`,
    );
  const names = new Set(tasks.map(({ name }) => name));
  hold(names.size === tasks.length, () => "two tasks have one name");
  const read = readYaml("tasks.yaml", writeYaml(tasks, null, "imported"));
  same(read.problems, [], "the file has problems");
  const definitions = new Map(read.tasks.map(({ definition }) => [definition.name, definition]));
  for (const { name, written } of tasks)
    same(definitions.get(name), readWritten(name, written), `${name} is read as another`);
}

/** The current time for importers, in epoch ms; they omit schedules that have ended by then. */
const nowMs = Date.UTC(2026, 10, 26);
type Importer = (files: readonly SourceFile[], options: ImportOptions) => Findings;

const importer = (from: Importer, path: string) => (text: string) => {
  const found = expect(() => from([{ path, text }], { zone: "Europe/Berlin", nowMs }));
  if (found) applicable(found.value);
};

interface TextImport {
  readonly name: string;
  readonly from: Importer;
  readonly path: string;
  readonly corpus: string[];
  /** Tokens with a meaning for this importer, in addition to those of all importers. */
  readonly words: string[];
  readonly share?: number;
}

const textTarget = ({ name, from, path, corpus, words, share = 0.3 }: TextImport) =>
  target({
    name: `import-${name}`,
    share,
    inputs: spoiltTexts(corpus, [...words, ...crons]),
    feed: importer(from, path),
    grown: { corpus, most: 64_000, feed: (text) => void expect(() => from([{ path, text }], { zone: "UTC", nowMs })) },
  });

/** Creates the target of an importer that reads an export of database rows; both the text and the rows are mutated. */
const rowsTarget = (name: string, from: Importer, file: string, names: string[]) => {
  const text = example(`imports/${file}`);
  const rows = JSON.parse(text) as unknown;
  return target({
    name: `import-${name}`,
    share: 0.3,
    feed: importer(from, file),
    inputs: fc.oneof(
      { weight: 1, arbitrary: spoiltTexts([text], [...names.map((one) => `"${one}":`), ...crons]) },
      { weight: 3, arbitrary: spoiltValues([rows], oddJson, names).map((value) => JSON.stringify(value) ?? "") },
    ),
  });
};

const xmlWords = [
  "<job>",
  "</job>",
  "<trigger>",
  "<cron>",
  "<cron-expression>",
  "<![CDATA[",
  "]]>",
  "<!DOCTYPE x [<!ENTITY a 'b'>]>",
  "&a;",
  "&#0;",
  "<!--",
  "xmlns:x='y'",
];
const yamlWords = [
  "---\n",
  "kind: CronJob\n",
  "spec:\n",
  "  schedule: ",
  "timeZone: ",
  "suspend: true\n",
  "&a",
  "*a",
  "- ",
  "[",
  "{",
];

export const importTargets = [
  target({
    name: "import-crontab",
    share: 0.4,
    inputs: fc.record({
      text: spoiltTexts(crontabs, [...crontabWords, ...crons]),
      path: fc.constantFrom("/etc/crontab", "/etc/cron.d/x", "/var/spool/cron/crontabs/anna", "a", "../x\0y", ""),
      shell: fc.boolean(),
    }),
    feed: ({ text, path, shell }) => {
      const { tasks, problems } = importCrontab({ path, text }, { zone: "Europe/Berlin", shell });
      const names = new Set(tasks.map(({ name }) => name));
      hold(names.size === tasks.length, () => "two tasks have one name");
      for (const { line } of problems) hold(line >= 1 && line <= text.split("\n").length, () => `line ${line}`);
      for (const { name, schedule, command, description } of tasks) {
        const made = expect(() => defineTask(name, { schedule, command, description }));
        if (!made) continue;
        const read = readWritten(name, writtenTask(made.value));
        same(definitionText(read), definitionText(made.value), "written and read again, it is another");
      }
    },
    grown: {
      corpus: crontabs,
      most: 200_000,
      feed: (text) => void expect(() => importCrontab({ path: "x", text }, { zone: "UTC" })),
    },
  }),
  textTarget({
    name: "quartz",
    from: importQuartz,
    path: "quartz_data.xml",
    corpus: [example("imports/quartz_data.xml")],
    words: xmlWords,
  }),
  textTarget({
    name: "quartz-properties",
    from: importQuartz,
    path: "quartz.properties",
    corpus: [example("imports/quartz.properties")],
    words: ["\\\n", "=", "org.quartz."],
  }),
  textTarget({
    name: "kubernetes",
    from: importKubernetes,
    path: "cronjobs.yaml",
    corpus: [example("imports/cronjobs.yaml")],
    words: yamlWords,
    share: 0.2,
  }),
  rowsTarget("xxl-job", fromXxl, "xxl_job_info.json", [
    "schedule_type",
    "schedule_conf",
    "executor_handler",
    "trigger_status",
    "glue_type",
  ]),
  rowsTarget("bullmq", importBullmq, "bullmq-schedulers.json", [
    "pattern",
    "every",
    "tz",
    "key",
    "next",
    "template",
    "limit",
  ]),
  rowsTarget("pg-boss", importPgBoss, "pg-boss-schedules.json", ["name", "cron", "timezone", "data", "options", "key"]),
];
