import { readFileSync, statSync } from "node:fs";
import { basename } from "node:path";
import { CarillonError, messageOf } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import type { SourceTimes } from "../../importers/compare/source-times.ts";
import { type CrontabFormat, type ImportedTask, importCrontab, isOfCrontab } from "../../importers/crontab/crontab.ts";
import { compileSchedule } from "../../schedule/schedule.ts";
import { defineTask, type TaskDefinition } from "../../task/task.ts";
import { writtenTask } from "../../task/written.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { type Reached, withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { localZone } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";
import { compareImported } from "./compare-imported.ts";
import { writeImported } from "./import-report.ts";

export interface ImportOptions extends CommonOptions {
  system?: boolean;
  user?: boolean;
  zone?: string;
  shell?: boolean;
  prefix?: string;
  group?: string;
  dryRun?: boolean;
  output?: string;
  bundle?: string;
  compare?: boolean;
}

interface Found {
  file: string;
  task: ImportedTask;
  definition: TaskDefinition;
  /** The time fields of the crontab line, as written. */
  times: SourceTimes;
}

interface Remark {
  file: string;
  /** The line's number; null: the remark concerns the whole file. */
  line: number | null;
  code: string;
  message: string;
  hint: string;
}

/**
 * Converts crontabs to tasks. A line that cannot be converted is reported with file and line number and makes the exit code 1; the other
 * lines are still converted.
 */
export async function importCrontabs(files: string[], options: ImportOptions, terminal: Terminal): Promise<ExitCode> {
  const { found, problems: unread, notes } = read(files, options);
  if (options.output !== undefined || options.compare) {
    const tasks = found.map(({ definition, file, task, times }) => {
      const comment = `${file}:${task.line}${task.needsShell ? "; needs a shell" : ""}`;
      const told = { times, suspended: false, fromMs: undefined, untilMs: undefined };
      return { name: definition.name, written: writtenTask(definition), comment, told };
    });
    const remarks = [
      ...unread.map((problem) => ({ kind: "problem" as const, ...problem })),
      ...notes.map((note) => ({ kind: "note" as const, ...note })),
    ].map(({ kind, file, line, message, hint }) => ({ kind, source: placeOf(file, line), message, hint }));
    return options.compare
      ? compareImported("crontab", { tasks, remarks }, Date.now(), options, terminal)
      : writeImported("crontab", tasks, remarks, options, terminal);
  }
  const { saved, leftOver, exit, error }: Saved = options.dryRun
    ? { saved: found.map((one) => ({ ...one, outcome: "would be imported" })), leftOver: [], exit: exitCodes.ok }
    : await save(found, files, options);
  if (error !== undefined && saved.length === 0) throw error;
  const problems = [...unread, ...leftOver];
  const left = found.slice(saved.length).map((one) => ({ ...one, outcome: "not imported" as const }));
  if (terminal.json) {
    const tasks = [...saved, ...left].map(({ file, task, definition, outcome }) => ({
      name: definition.name,
      file,
      line: task.line,
      schedule: definition.schedule,
      words: wordsOf(definition),
      command: definition.command,
      needsShell: task.needsShell,
      outcome,
    }));
    terminal.object({ tasks, problems, notes });
  } else print([...saved, ...left], problems, notes, options, terminal);
  if (error !== undefined) throw error;
  if (left.length > 0) return exit;
  return problems.length > 0 ? exitCodes.failed : exitCodes.ok;
}

function read(files: string[], { system, user, zone, shell = false, prefix, group }: ImportOptions) {
  const format: CrontabFormat | undefined = system ? "system" : user ? "user" : undefined;
  const found: Found[] = [];
  const problems: Remark[] = [];
  const notes: Remark[] = [];
  const names = new Map<string, string>();
  for (const file of files) {
    const text = textOf(file);
    const imported = importCrontab({ path: file, text }, { zone: zone ?? localZone().name, format, shell, prefix });
    for (const { line, code, message, hint } of imported.problems) problems.push({ file, line, code, message, hint });
    for (const { line, message } of imported.notes) notes.push({ file, line, code: "", message, hint: "" });
    for (const task of imported.tasks) {
      const where = `${file}:${task.line}`;
      const taken = names.get(task.name);
      if (taken !== undefined) {
        const message = `the name ${task.name} is taken by ${taken}`;
        problems.push({
          file,
          line: task.line,
          code: "TASK_DUPLICATE",
          message,
          hint: "Import the files one by one, each with a --prefix of its own.",
        });
        continue;
      }
      names.set(task.name, where);
      const { name, schedule, command, description } = task;
      found.push({
        file,
        task,
        times: timesOfLine(text, task.line, zone ?? localZone().name),
        definition: defineTask(name, { schedule, command, description, ...(group === undefined ? {} : { group }) }),
      });
    }
  }
  return { found, problems, notes };
}

/**
 * Returns the time fields of one line, and the zone of the last CRON_TZ above it (`usual` if there is none). The comparison evaluates
 * these fields by cron's own rules, not by Carillon's.
 */
function timesOfLine(text: string, line: number, usual: string): SourceTimes {
  const lines = text.split(/\r?\n/);
  let zone = usual;
  for (const above of lines.slice(0, line - 1)) zone = /^\s*CRON_TZ\s*=\s*["']?([\w+\-/]+)/.exec(above)?.[1] ?? zone;
  const fields = (lines[line - 1] ?? "").trim().replace(/^-/, "").split(/\s+/);
  return { dialect: "vixie", text: fields.slice(0, fields[0]?.startsWith("@") ? 1 : 5).join(" "), zone };
}

function textOf(file: string): string {
  try {
    const { size } = statSync(file);
    if (size > limits.crontabBytes) throw new Error(`it has ${size} bytes, more than ${limits.crontabBytes}`);
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new CarillonError("FILE_INVALID", `${file} cannot be read: ${messageOf(cause)}`, {
      hint: "Give the path of a crontab.",
      cause,
    });
  }
}

type Outcome = "new" | "changed" | "unchanged" | "would be imported" | "not imported";

interface Saved {
  /** The tasks that were saved (with `dryRun`: that would be saved), in order, without the tasks after an error or Ctrl-C. */
  saved: (Found & { outcome: Outcome })[];
  leftOver: Remark[];
  exit: ExitCode;
  error?: unknown;
}

/**
 * Saves the tasks. Changes that users have made since the last import are kept. If a line was deleted, or now has another name, its former
 * task continues to fire and is only reported, because the operator must decide about it.
 */
async function save(found: Found[], files: string[], options: ImportOptions): Promise<Saved> {
  const saved: Saved["saved"] = [];
  const leftOver: Remark[] = [];
  const work = async ({ cluster, signal }: Reached) => {
    for (const one of found) {
      if (signal.aborted) return exitCodes.interrupted;
      const reason = `imported from ${basename(one.file)}:${one.task.line}`;
      const { version, changed } = await cluster.tasks.define(one.definition, reason);
      saved.push({ ...one, outcome: changed ? (version === 1 ? "new" : "changed") : "unchanged" });
    }
    const named = new Set(found.map(({ definition }) => definition.name));
    for (const { name, definition, paused } of await cluster.tasks.records()) {
      if (named.has(name) || paused !== null) continue;
      const file = files.find((path) => isOfCrontab(definition, path, options.prefix));
      if (file !== undefined) leftOver.push(leftOverOf(name, file));
    }
    return exitCodes.ok;
  };
  try {
    const exit = found.length > 0 ? await withCluster(options, work, { make: true }) : exitCodes.ok;
    return { saved, leftOver, exit };
  } catch (error) {
    return { saved, leftOver, exit: exitCodes.failed, error };
  }
}

const leftOverOf = (name: string, file: string): Remark => ({
  file,
  line: null,
  code: "TASK_DUPLICATE",
  message: `${name} is of an earlier import of this file, and no line makes it now: it goes on beside the others`,
  hint: `If it should not: carillon tasks pause ${name}.`,
});

const placeOf = (file: string, line: number | null) => (line === null ? file : `${file}:${line}`);

const wordsOf = ({ schedule }: TaskDefinition) => compileSchedule(schedule).words();

function print(
  tasks: Saved["saved"],
  problems: Remark[],
  notes: Remark[],
  { dryRun }: ImportOptions,
  terminal: Terminal,
): void {
  const { style } = terminal;
  const paints = {
    new: style.good,
    changed: style.warning,
    unchanged: style.dim,
    "would be imported": style.dim,
    "not imported": style.bad,
  };
  terminal.table(
    [
      { title: "TASK", least: 16 },
      { title: "SCHEDULE", least: 16 },
      { title: "COMMAND", least: 16, drop: 1 },
      { title: "" },
    ],
    tasks.map(({ definition, outcome }) => [
      plain(definition.name),
      plain(wordsOf(definition)),
      plain((definition.command?.argv ?? []).join(" ")),
      dryRun ? "" : { text: outcome, paint: paints[outcome] },
    ]),
  );
  for (const { file, line, message } of notes)
    terminal.line(`${style.dim(`${plain(placeOf(file, line))}: note:`)} ${plain(message)}`);
  for (const [at, { file, line, code, message, hint }] of problems.entries()) {
    terminal.line(`${style.bad(`${plain(placeOf(file, line))}: ${code}:`)} ${plain(message)}`);
    if (hint !== "" && hint !== problems[at + 1]?.hint) terminal.line(`  ${style.dim("hint:")} ${plain(hint)}`);
  }
  const count = (outcome: Outcome) => tasks.filter((one) => one.outcome === outcome).length;
  const told = (["changed", "unchanged", "not imported"] as const).flatMap((one) =>
    count(one) > 0 ? [`${count(one)} ${one}`] : [],
  );
  const first = dryRun ? `${tasks.length} would be imported` : `${count("new")} new`;
  terminal.line([first, ...told, `${problems.length} with problems`].join(", "));
  if (count("not imported") > 0) terminal.aside("Importing again goes on: what is there already is left as it is.");
  const programs = [...new Set(tasks.map(({ definition }) => definition.command?.argv[0] ?? ""))];
  if (programs.length === 0) return;
  const allowed = programs.slice(0, 3).map((program) => `--allow ${plain(program)}`);
  const shell = tasks.some(({ task }) => task.needsShell) ? " --shell" : "";
  const more = `${programs.length > 3 ? " …" : ""}${shell}`;
  terminal.aside(`They run where a worker allows their programs: carillon worker ${allowed.join(" ")}${more}`);
}
