/** Imports Dkron's response to GET /v1/jobs, or one entry of it. */

import type { SourceTimes } from "../compare/source-times.ts";
import { splitCommand } from "../crontab/shell-words.ts";
import { eitherDay } from "../either-day.ts";
import { fieldTable, tellFields, tellZone } from "../fields.ts";
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
} from "../findings.ts";

export const dkronFields = fieldTable(`
name | carried | the task's name |
displayname | carried | description |
schedule | carried | schedule: cron, @every, @at, @manually |
timezone | carried | the schedule's zone |
disabled | carried | true: imported without its schedule |
concurrency | carried | forbid: overlap: skip |
retries | carried | retry |
parent_job | carried | after, where it has no schedule |
executor | carried | shell as command, http as http; others are told |
executor_config | carried | the command or the request |
tags | carried | labels, without their counts |
starts_at | carried | from |
expires_at | carried | until |
owner | lost | whom it belongs to |
owner_email | lost | who is written to | See docs/operate/alarms.md.
metadata | lost | its own notes |
processors | lost | what reads its output | A run logs its output.
ephemeral | lost | it is removed after its first success |
mounts | lost | |
dependent_jobs | unused | those after it name it themselves |
id | unused | |
status | unused | |
next | unused | |
last_success | unused | |
last_error | unused | |
success_count | unused | |
error_count | unused | |
`);

export function importDkron(files: readonly SourceFile[], options: ImportOptions): Findings {
  const findings = new Findings(options);
  let unzoned = 0;
  for (const file of files) {
    const content = readJson(file, findings);
    if (content === undefined) continue;
    const rows = rowsOf([content].flat()).filter((row) => "schedule" in row || "executor" in row);
    if (rows.length === 0) findings.problem("", `${file.path} has no entries`, "Write GET /v1/jobs to it.");
    for (const row of rows) if (addEntry(row, options, findings)) unzoned++;
  }
  tellZone(unzoned, options.zone, "It is the zone of the Dkron servers", findings);
  return findings;
}

/** @returns true if the entry was imported with a cron expression that names no zone */
function addEntry(row: Row, options: ImportOptions, findings: Findings): boolean {
  const source = textOf(row.name);
  const zone = textOf(row.timezone) || options.zone;
  const { schedule, times } = scheduleOf(textOf(row.schedule), zone);
  tellFields(row, dkronFields, source, findings);
  const parent = textOf(column(row, "parent_job"));
  const after = parent !== "" && schedule === "manual" ? parent : undefined;
  if (parent !== "" && after === undefined)
    findings.lost(source, `it also comes after ${parent}; here it has the schedule alone`, "Make it two tasks.");
  const labels = Object.fromEntries(
    Object.entries(isRow(row.tags) ? row.tags : {}).map(([name, value]) => [name, textOf(value).replace(/:\d+$/, "")]),
  );
  if (Object.keys(labels).length > 0)
    findings.note(source, "its tags became labels, without their counts", "Start its workers with --label NAME=TEXT.");
  const retries = numberOf(row.retries) ?? 0;
  const [fromMs, endMs] = [Date.parse(textOf(row.starts_at)), Date.parse(textOf(row.expires_at))];
  // In Carillon, one-time and manual schedules cannot have a start or an end.
  const isBounded = times?.dialect === "dkron" || times?.dialect === "@every";
  const added = findings.add(
    source,
    source,
    {
      description: textOf(row.displayname) || undefined,
      group: options.group,
      schedule: after ? undefined : schedule,
      after,
      overlap: textOf(row.concurrency) === "forbid" ? "skip" : undefined,
      labels: Object.keys(labels).length > 0 ? labels : undefined,
      retry: retries > 0 ? { attempts: retries + 1 } : undefined,
      misfire: schedule === "manual" ? undefined : { policy: "skip" },
      ...workOf(row, source, findings),
    },
    {
      suspended: row.disabled === true && after === undefined,
      fromMs: isBounded && !Number.isNaN(fromMs) ? fromMs : undefined,
      untilMs: isBounded && !Number.isNaN(endMs) ? endMs : undefined,
      times,
    },
  );
  return added !== undefined && times?.dialect === "dkron" && textOf(row.timezone) === "";
}

function scheduleOf(text: string, zone: string): { schedule: unknown; times: SourceTimes | undefined } {
  const [, kind = "", rest = ""] = /^@(every|at)\s+(\S+)$/.exec(text) ?? [];
  // Go's durations have no unit for days; Carillon supports Go's units from ms on.
  if (kind === "every") return { schedule: { every: rest }, times: { dialect: "@every", text: rest } };
  if (kind === "at") {
    const atMs = Date.parse(rest);
    return { schedule: { at: rest }, times: Number.isNaN(atMs) ? undefined : { dialect: "once", atMs } };
  }
  if (text === "" || text === "@manually") return { schedule: "manual", times: { dialect: "by hand" } };
  if (text === "@minutely") return { schedule: { cron: "* * * * *", zone }, times: undefined };
  return { schedule: { cron: eitherDay(text), zone }, times: { dialect: "dkron", text, zone } };
}

function workOf(row: Row, source: string, findings: Findings): Row {
  const given = isRow(row.executor_config) ? row.executor_config : {};
  const executor = textOf(row.executor);
  const text = textOf(given.command);
  if (executor === "http" && textOf(given.url) !== "") return { http: httpOf(given, source, findings) };
  if (executor !== "shell" || text === "") {
    findings.lost(
      source,
      `what its executor ${executor} runs`,
      "Give the task a command or http, or a worker a handler.",
    );
    return {};
  }
  const isShell = textOf(given.shell) === "true" || given.shell === true;
  const split = isShell ? { needsShell: "" } : splitCommand(text);
  const argv = "argv" in split ? split.argv : ["/bin/sh", "-c", text];
  findings.note(
    source,
    `runs ${argv[0]}`,
    `A worker must allow it: --allow ${argv[0]}${"argv" in split ? "" : " --shell"}.`,
  );
  const env = Object.fromEntries(
    textOf(given.env)
      .split(",")
      .filter((pair) => pair.includes("="))
      .map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]),
  );
  for (const name of Object.keys(given))
    if (!["command", "shell", "env", "cwd", "timeout"].includes(name))
      findings.lost(source, `its executor_config.${name}`);
  const cwd = textOf(given.cwd);
  return {
    command: { argv, ...(Object.keys(env).length > 0 ? { env } : {}), ...(cwd === "" ? {} : { cwd }) },
    timeout: textOf(given.timeout) || undefined,
  };
}

function httpOf(given: Row, source: string, findings: Findings): Row {
  for (const name of Object.keys(given))
    if (!["url", "method", "body", "headers", "timeout", "expectCode"].includes(name))
      findings.lost(source, `its executor_config.${name}`);
  const headers = Object.fromEntries(
    headerLines(given.headers, source, findings)
      .map((line) => /^([^:]+):\s*(.*)$/.exec(line))
      .flatMap((found) => (found ? [[found[1], found[2]]] : [])),
  );
  const codes = textOf(given.expectCode)
    .split(",")
    .filter((code) => /^\d{3}$/.test(code.trim()))
    .map(Number);
  const seconds = numberOf(given.timeout);
  return {
    url: textOf(given.url),
    method: textOf(given.method) || "GET",
    ...(Object.keys(headers).length > 0 ? { headers } : {}),
    ...(textOf(given.body) === "" ? {} : { body: textOf(given.body) }),
    ...(codes.length > 0 ? { okStatuses: codes } : {}),
    ...(seconds === undefined ? {} : { timeout: seconds * 1_000 }),
  };
}

/** Converts a JSON list of texts such as "name: value" to header lines. */
function headerLines(value: unknown, source: string, findings: Findings): string[] {
  const text = textOf(value);
  if (text === "") return [];
  try {
    return [JSON.parse(text) as unknown].flat().filter((line) => typeof line === "string");
  } catch {
    findings.lost(source, `its headers ${text}, which are no list in JSON`, "Write them as http.headers.");
    return [];
  }
}
