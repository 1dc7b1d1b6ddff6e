/** Imports the rows of PowerJob's table of scheduled entries from a dump of MySQL or PostgreSQL, or from JSON. */
import type { SourceTimes } from "../compare/source-times.ts";
import { fieldTable, saysNothing, tellFields, tellHandlers } from "../fields.ts";
import {
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
} from "../findings.ts";
import { quartzCron } from "../quartz-cron.ts";
import { rowsOfCopy } from "../sql-copy.ts";
import { isSql, rowsOfSql } from "../sql-rows.ts";

export const powerFields = fieldTable(`
id | carried | in the task's name, where it has no other |
job_name | carried | the task's name |
job_description | carried | description |
job_params | carried | slotPayload |
time_expression_type | carried | schedule: API as manual, CRON, FIXED_RATE and FIXED_DELAY as every |
time_expression | carried | schedule |
lifecycle | carried | from and until |
execute_type | carried | BROADCAST as a route; MAP and MAP_REDUCE are told |
processor_type | unused | |
processor_info | carried | in the remark above the task, whose handler takes its place |
max_instance_num | carried | overlap: skip of 1; more are told |
instance_time_limit | carried | timeout |
instance_retry_num | carried | retry |
status | carried | disabled: imported without its schedule; deleted: passed over |
app_id | unused | |
gmt_create | unused | |
gmt_modified | unused | |
next_trigger_time | unused | |
extra | lost | |
concurrency | lost | the threads of one run |
task_retry_num | lost | tries of a part of a run |
designated_workers | lost | the workers that may run it | Set labels, or route: { pin: NAME }.
dispatch_strategy | lost | how a worker is chosen | Set route.
dispatch_strategy_config | lost | how a worker is chosen | Set route.
min_cpu_cores | lost | what a worker must have | Set labels.
min_memory_space | lost | what a worker must have | Set labels.
min_disk_space | lost | what a worker must have | Set labels.
max_worker_count | lost | the workers of one run |
notify_user_ids | lost | who is written to | See docs/operate/alarms.md.
alarm_config | lost | who is written to | See docs/operate/alarms.md.
log_config | lost | how it logs |
advanced_runtime_config | lost | |
tag | lost | its label in the console |
`);

const timeTypes: Record<string, string> = {
  "1": "API",
  "2": "CRON",
  "3": "FIXED_RATE",
  "4": "FIXED_DELAY",
  "5": "WORKFLOW",
};
const runTypes: Record<string, string> = { "1": "STANDALONE", "2": "BROADCAST", "3": "MAP_REDUCE", "4": "MAP" };
const states: Record<string, string> = { "1": "ENABLE", "2": "DISABLE", "99": "DELETED" };
const tables = ["job_info", "pj_job_info"];

export function importPowerjob(files: readonly SourceFile[], options: ImportOptions): Findings {
  const findings = new Findings(options);
  let handlers = 0;
  for (const file of files) {
    const rows = rowsOfFile(file, findings);
    if (rows?.length === 0)
      findings.problem(
        "",
        `${file.path} has no rows of job_info`,
        "Dump that table with its columns, or export it as a JSON array.",
      );
    for (const row of rows ?? []) if (addRow(row, options, findings)) handlers++;
  }
  tellHandlers(handlers, "processors of PowerJob", findings);
  return findings;
}

function rowsOfFile(file: SourceFile, findings: Findings): Row[] | undefined {
  if (!isSql(file.text)) {
    const content = readJson(file, findings);
    const tables = isRow(content)
      ? (within(content, "job_info") ?? within(content, "data.data") ?? content.data ?? [content])
      : content;
    return content === undefined ? undefined : rowsOf(tables);
  }
  try {
    const { rows: copied, rest } = rowsOfCopy(file.text);
    const inserted = rowsOfSql(rest, new Map(tables.map((table) => [table, () => undefined])));
    return tables.flatMap((table) => [...(copied.get(table) ?? []), ...(inserted.get(table) ?? [])]);
  } catch (cause) {
    findings.problem("", `${file.path}: ${(cause as Error).message}`, "Give the dump with its columns named.");
    return undefined;
  }
}

function addRow(row: Row, options: ImportOptions, findings: Findings): boolean {
  const text = (name: string) => textOf(column(row, name));
  const named = (name: string, names: Record<string, string>) => names[text(name)] ?? text(name);
  const source = text("job_name") || `powerjob-${text("id")}`;
  if (named("status", states) === "DELETED") return false;
  const made = scheduleOf(named("time_expression_type", timeTypes), text("time_expression"), options.zone);
  if (made === undefined) {
    findings.problem(
      source,
      `its schedule ${text("time_expression_type")} ${text("time_expression")} cannot be carried over`,
      "Write its schedule by hand.",
    );
    return false;
  }
  // The API names the columns in camel case, so the names are converted to those of the database.
  const byColumn = Object.entries(row).map(([name, value]) => [
    name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`),
    value,
  ]);
  tellFields(Object.fromEntries(byColumn), powerFields, source, findings);
  const runs = named("execute_type", runTypes);
  if (runs.startsWith("MAP"))
    findings.lost(source, `its ${runs} over several workers`, "See docs/tasks/flow.md for parts of a run.");
  const most = numberOf(column(row, "max_instance_num")) ?? 0;
  if (most > 1) findings.lost(source, `its ${most} runs at once`, "Set overlap: { allow: N }; the others wait then.");
  const isBroadcast = runs === "BROADCAST";
  if (isBroadcast && most === 1)
    findings.lost(source, "its limit of one run at once: the parts of several slots may overlap");
  const retries = numberOf(column(row, "instance_retry_num")) ?? 0;
  const limitMs = numberOf(column(row, "instance_time_limit")) ?? 0;
  const [fromMs, endMs] = lifeOf(column(row, "lifecycle"));
  // In Carillon, manual schedules and fixed delays cannot have a start or an end.
  const isBounded = made.times.dialect === "quartz" || made.times.dialect === "interval";
  const isOver = endMs !== undefined && endMs <= options.nowMs;
  if (!isBounded && !isOver && (fromMs !== undefined || endMs !== undefined))
    findings.lost(
      source,
      "its life cycle: it begins at once, and does not end",
      "Pause the task until then, and remove it.",
    );
  const added = findings.add(
    source,
    source.replace(/\s+/g, "-"),
    {
      description: text("job_description") || undefined,
      group: options.group,
      schedule: made.schedule,
      slotPayload: saysNothing(column(row, "job_params")) ? undefined : column(row, "job_params"),
      overlap: most === 1 && !isBroadcast ? "skip" : undefined,
      route: isBroadcast ? "broadcast" : undefined,
      timeout: limitMs > 0 ? limitMs : undefined,
      retry: retries > 0 ? { attempts: retries + 1 } : undefined,
      misfire: made.schedule === "manual" ? undefined : { policy: "skip" },
    },
    {
      comment: `ran the processor ${text("processor_info")}`,
      suspended: named("status", states) === "DISABLE" || (!isBounded && isOver),
      fromMs: isBounded ? fromMs : undefined,
      untilMs: isBounded ? endMs : undefined,
      times: made.times,
    },
  );
  return added !== undefined;
}

/** Reads `{"start":…,"end":…}` in epoch milliseconds, from a text or an object. An absent value is undefined. */
function lifeOf(value: unknown): (number | undefined)[] {
  const said = typeof value === "string" ? value : JSON.stringify(value ?? null);
  return ["start", "end"].map((name) => numberOf(new RegExp(`"${name}"\\s*:\\s*(\\d+)`).exec(said)?.[1]));
}

function scheduleOf(type: string, text: string, zone: string): { schedule: unknown; times: SourceTimes } | undefined {
  const everyMs = numberOf(text) ?? 0;
  switch (type) {
    case "CRON":
      return { schedule: { cron: quartzCron(text), zone }, times: { dialect: "quartz", text, zone } };
    case "FIXED_RATE":
      return { schedule: { every: everyMs }, times: { dialect: "interval", everyMs } };
    case "FIXED_DELAY":
      return { schedule: { every: everyMs, mode: "delay" }, times: { dialect: "delay", everyMs } };
    case "API":
    case "WORKFLOW":
      return { schedule: "manual", times: { dialect: "by hand" } };
    default:
      return undefined;
  }
}
