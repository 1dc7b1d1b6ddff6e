/**
 * Imports the rows of XXL-JOB's table xxl_job_info, optionally with those of xxl_job_group. The source is a dump of its database
 * (`mysqldump`), or JSON with the column names of the database or of its API: { "xxl_job_group": […], "xxl_job_info": […] }.
 */

import type { SourceTimes } from "./compare/source-times.ts";
import { readFields, tellFields } from "./fields.ts";
import {
  camelCase,
  column,
  Findings,
  type ImportOptions,
  isRow,
  numberOf,
  type Row,
  readJson,
  rowsOf,
  type SourceFile,
  textOf,
  within,
} from "./findings.ts";
import { quartzCron } from "./quartz-cron.ts";
import { isSql, rowsOfSql } from "./sql-rows.ts";

/** The columns, by the names of the database; the API writes them in camel case. */
const columnNames = [
  "id job_group job_cron job_desc name add_time update_time author alarm_email schedule_type schedule_conf misfire_strategy",
  "executor_route_strategy executor_handler executor_param executor_block_strategy executor_timeout executor_fail_retry_count",
  "glue_type glue_source glue_remark glue_updatetime child_jobid child_job_id trigger_status trigger_last_time trigger_next_time",
].join(" ");
const rowFields = readFields(`${columnNames} ${camelCase(columnNames)}`);

const misfireAfter = "5s";
const routes: Record<string, string | undefined> = {
  "": undefined,
  FAILOVER: undefined,
  ROUND: "round-robin",
  RANDOM: "random",
  CONSISTENT_HASH: "sticky",
  LEAST_RECENTLY_USED: "least-recently-used",
  LEAST_FREQUENTLY_USED: "round-robin",
  BUSYOVER: "least-loaded",
  SHARDING_BROADCAST: "broadcast",
};
const overlaps = new Map([
  ["SERIAL_EXECUTION", "queue"],
  ["DISCARD_LATER", "skip"],
  ["COVER_EARLY", "replace"],
]);
/** The program that runs each kind of script. */
const interpreters: Record<string, string> = { GLUE_SHELL: "/bin/bash", GLUE_PYTHON: "python3", GLUE_NODEJS: "node" };
/** The longest argument that Linux accepts, in bytes, including its terminating zero. */
const argumentBytes = 128 * 1024;

/**
 * Returns the order of the table's columns, for rows whose INSERT or CREATE TABLE does not name them. Three orders are known:
 * that of version 2.0, the same order with the three trigger columns that version 2.1 added, and that of version 2.3.
 */
function columnsOf(count: number): readonly string[] | undefined {
  const described = ["add_time", "update_time", "author", "alarm_email"];
  const executor = ["route_strategy", "handler", "param", "block_strategy", "timeout", "fail_retry_count"];
  const rest = [
    ...executor.map((name) => `executor_${name}`),
    "glue_type",
    "glue_source",
    "glue_remark",
    "glue_updatetime",
  ];
  const trigger = ["trigger_status", "trigger_last_time", "trigger_next_time"];
  const old = ["id", "job_group", "job_cron", "job_desc", ...described, ...rest, "child_jobid"];
  const schedule = ["schedule_type", "schedule_conf", "misfire_strategy"];
  const since = ["id", "job_group", "job_desc", ...described, ...schedule, ...rest, "child_jobid", ...trigger];
  return [old, [...old, ...trigger], since].find(({ length }) => length === count);
}

/** Names the first two columns, a group's number and name, which are the same in every version. The importer needs no other column. */
const groupColumns = (count: number) =>
  Array.from({ length: count }, (_, at) => ["id", "app_name"][at] ?? `column_${at}`);

const tableColumns = new Map<string, (count: number) => readonly string[] | undefined>([
  ["xxl_job_info", columnsOf],
  ["xxl_job_group", groupColumns],
]);

function readSql({ path, text }: SourceFile, findings: Findings): Row | undefined {
  try {
    return Object.fromEntries(rowsOfSql(text, tableColumns));
  } catch (error) {
    findings.problem(
      "",
      `${path}: ${(error as Error).message}`,
      "Give the dump as mysqldump writes it, with its columns named.",
    );
    return undefined;
  }
}

export function fromXxl(files: readonly SourceFile[], options: ImportOptions): Findings {
  const findings = new Findings(options);
  const rows: Row[] = [];
  const groups = new Map<string, string>();
  for (const file of files) {
    const content = isSql(file.text) ? readSql(file, findings) : readJson(file, findings);
    if (content === undefined) continue;
    const tables = isRow(content) ? content : { data: content };
    const found = rowsOf(within(tables, "xxl_job_info") ?? tables.data ?? tables.content);
    if (found.length === 0)
      findings.problem(
        "",
        `${file.path} has no rows of xxl_job_info`,
        "Dump that table (mysqldump DATABASE xxl_job_group xxl_job_info), or export it as a JSON array.",
      );
    rows.push(...found);
    for (const group of rowsOf(within(tables, "xxl_job_group")))
      groups.set(textOf(group.id), textOf(column(group, "app_name")));
  }
  const children = new Map<string, string[]>();
  for (const row of rows)
    for (const child of textOf(column(row, "child_jobid") ?? column(row, "child_job_id"))
      .split(",")
      .filter((id) => id.trim() !== ""))
      children.set(child.trim(), [...(children.get(child.trim()) ?? []), textOf(row.id)]);
  const handlers = new Map<string, number>();
  for (const row of rows) handlers.set(handlerOf(row), (handlers.get(handlerOf(row)) ?? 0) + 1);
  const nameOf = (row: Row) =>
    (handlers.get(handlerOf(row)) ?? 0) > 1 ? `${handlerOf(row)}.${textOf(row.id)}` : handlerOf(row);
  const names = new Map(rows.map((row) => [textOf(row.id), nameOf(row)]));
  // The names of all rows are collected before this loop, because a row may run after another row that comes later in the file.
  for (const row of rows) {
    const parents = (children.get(textOf(row.id)) ?? [])
      .map((id) => names.get(id))
      .filter((name) => name !== undefined);
    addRow(row, nameOf(row), parents, { findings, options, groups });
  }
  return findings;
}

const handlerOf = (row: Row): string => textOf(column(row, "executor_handler")) || `xxl-${textOf(row.id)}`;

interface Place {
  findings: Findings;
  options: ImportOptions;
  groups: ReadonlyMap<string, string>;
}

function addRow(row: Row, name: string, parents: string[], { findings, options, groups }: Place): void {
  const text = (name: string) => textOf(column(row, name));
  const number = (name: string) => numberOf(column(row, name));
  // Version 3.4 renamed the column job_desc to `name`.
  const description = text("job_desc") || text("name");
  const source = `${text("id")} ${description}`.trim();
  const lost = (what: string, hint?: string) => findings.lost(source, what, hint);
  tellFields(row, rowFields, source, findings);
  const { type, conf } = timesOf(text);
  const schedule = scheduleOf(type, conf, options.zone, source, findings);
  if (schedule === undefined) return;

  const strategy = text("executor_route_strategy");
  if (!Object.hasOwn(routes, strategy))
    lost(`route ${strategy}: whichever worker asks first runs it`, 'For one machine: route: { pin: "NAME" }.');
  if (strategy === "LEAST_FREQUENTLY_USED")
    findings.note(source, "LEAST_FREQUENTLY_USED becomes round-robin, which uses all alike");
  const route = Object.hasOwn(routes, strategy) ? routes[strategy] : undefined;
  let overlap: string | undefined = overlaps.get(text("executor_block_strategy"));
  if (route === "broadcast" && overlap !== undefined) {
    lost(`${text("executor_block_strategy")} with SHARDING_BROADCAST: the parts of several slots may overlap`);
    overlap = undefined;
  }
  const retries = number("executor_fail_retry_count") ?? 0;
  const timeout = number("executor_timeout") ?? 0;
  const parameter = text("executor_param");
  const glue = text("glue_type") || "BEAN";
  const interpreter = interpreters[glue];
  const written = column(row, "glue_source");
  const script = typeof written === "string" ? written : "";
  const isShell = glue === "GLUE_SHELL";
  if (isShell && Buffer.byteLength(script) >= argumentBytes) {
    findings.problem(
      source,
      `its GLUE_SHELL script has ${Buffer.byteLength(script)} bytes, and an argument less than ${argumentBytes}`,
      "Put the script into a file where the worker runs, and give the task a command that runs it.",
    );
    return;
  }
  if (glue === "BEAN")
    findings.note(source, `runs the handler ${text("executor_handler")}`, `Give a worker a handler called ${name}.`);
  else if (interpreter && script !== "")
    findings.note(
      source,
      `its ${glue} script is the command's ${isShell ? "argument" : "standard input"}`,
      `A worker must allow it: --allow ${interpreter}${isShell ? " --shell" : ""}.`,
    );
  else lost(`its ${glue} source cannot be run here`, `Give a worker a handler called ${name}, or the task a command.`);
  for (const [what, hint] of [
    ["alarm_email", "See docs/operate/alarms.md."],
    ["author", ""],
  ] as const)
    if (text(what) !== "") lost(`${what} ${text(what)}`, hint);
  const own = type !== "NONE" && type !== "";
  const running = (number("trigger_status") ?? 0) === 1;
  const after = parents.length > 0 && !(own && running) ? parents : undefined;
  if (parents.length > 0 && !after)
    lost(
      `it comes after ${parents.join(", ")} and has a schedule too; here it has the schedule alone`,
      "Make it two tasks.",
    );
  if (after && after.length > 1) lost(`it ran after each of ${parents.join(", ")}; here it runs once all of them have`);

  findings.add(
    source,
    name,
    {
      description,
      group: options.group ?? (groups.get(text("job_group")) || undefined),
      schedule: after ? undefined : schedule,
      after,
      slotPayload: parameter === "" || interpreter ? undefined : parameter,
      route,
      overlap,
      misfire: after || schedule === "manual" ? undefined : misfireOf(text("misfire_strategy"), overlap),
      timeout: timeout > 0 ? `${timeout}s` : undefined,
      retry: retries > 0 ? { attempts: retries + 1, backoff: "fixed", delay: "0s", jitter: 0 } : undefined,
      command: interpreter && script !== "" ? commandOf(interpreter, isShell, script, parameter) : undefined,
    },
    {
      suspended: !after && !running,
      times: after ? { dialect: "by hand" } : timesOfRow(type, conf, options.zone),
    },
  );
}

function timesOfRow(type: string, conf: string, zone: string): SourceTimes {
  const everyMs = Number(conf) * 1_000;
  if (type === "CRON") return { dialect: "quartz", text: conf, zone };
  if (type === "FIX_RATE") return { dialect: "interval", everyMs };
  return type === "FIX_DELAY" ? { dialect: "delay", everyMs } : { dialect: "by hand" };
}

/**
 * Returns the command that runs a script. Python and Node read all of their standard input before they begin, so the script is
 * their standard input. A shell reads standard input line by line, so a command such as ssh or read would consume the rest of the
 * script, and the run would still succeed; a shell gets the script as an argument.
 */
function commandOf(interpreter: string, isShell: boolean, script: string, parameter: string) {
  const given = parameter === "" ? [] : [parameter];
  return isShell
    ? { argv: [interpreter, "-c", script, "bash", ...given] }
    : { argv: [interpreter, "-", ...given], stdin: script };
}

/**
 * Converts the misfire strategy, which XXL-JOB applies only to late triggers. With "do nothing", a run that waits behind an earlier run
 * still starts however late it is (`waiting: false`), as in an executor's queue.
 */
const misfireOf = (strategy: string, overlap: unknown) =>
  strategy === "FIRE_ONCE_NOW"
    ? { policy: "fire_once", after: misfireAfter }
    : { policy: "skip", after: misfireAfter, ...(overlap === "queue" ? { waiting: false } : {}) };

/** Returns the type of a row's schedule and its text. Before version 2.3, every row had a cron expression, in a column of its own. */
function timesOf(text: (name: string) => string): { type: string; conf: string } {
  const cron = text("job_cron");
  if (text("schedule_type") !== "" || cron === "") return { type: text("schedule_type"), conf: text("schedule_conf") };
  return { type: "CRON", conf: cron };
}

function scheduleOf(type: string, conf: string, zone: string, source: string, findings: Findings): unknown {
  switch (type) {
    case "":
    case "NONE":
      return "manual";
    case "CRON":
      return { cron: quartzCron(conf), zone };
    case "FIX_RATE":
      return { every: `${conf}s` };
    case "FIX_DELAY":
      return { every: `${conf}s`, mode: "delay" };
    default:
      findings.problem(source, `schedule_type ${type} is not known`, "NONE, CRON, FIX_RATE and FIX_DELAY are.");
      return undefined;
  }
}
