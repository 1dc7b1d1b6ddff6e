/** Imports Rundeck's exports of its definitions in YAML, JSON or XML. */
import { yamlDocuments } from "../../apply/yaml-documents.ts";
import { fieldTable, tellFields, tellZone } from "../fields.ts";
import {
  Findings,
  type ImportOptions,
  isRow,
  numberOf,
  type Row,
  rowsOf,
  type SourceFile,
  textOf,
  within,
} from "../findings.ts";
import { quartzCron } from "../quartz-cron.ts";
import { childrenOf, type Element, everywhere, readXml } from "../xml.ts";

export const rundeckFields = fieldTable(`
name | carried | the task's name |
group | carried | before the name |
description | carried | description |
schedule | carried | schedule: its crontab, or time, weekday, month and year |
timeZone | carried | the schedule's zone |
scheduleEnabled | carried | false: imported without its schedule |
executionEnabled | carried | false: imported without its schedule |
multipleExecutions | carried | true: overlap: allow; else skip |
timeout | carried | timeout |
retry | carried | retry |
sequence | carried | command, of a single exec or script; else told |
options | lost | the values that are asked for | Write them as slotPayload.
nodefilters | lost | the machines that it runs on | Set labels.
dispatch | lost | the machines that it runs on | See route: broadcast.
notification | lost | who is told | See docs/operate/alarms.md.
notifyAvgDurationThreshold | lost | when a run is too long | See docs/operate/alarms.md.
maxMultipleExecutions | lost | how many runs at once | Set overlap: { allow: N }.
orchestrator | lost | the order of machines |
plugins | lost | |
logging | lost | how much it logs |
uuid | unused | |
id | unused | |
loglevel | unused | |
defaultTab | unused | |
nodeFilterEditable | unused | |
nodesSelectedByDefault | unused | |
context | unused | |
`);

export function importRundeck(files: readonly SourceFile[], options: ImportOptions): Findings {
  const findings = new Findings(options);
  let unzoned = 0;
  for (const file of files) {
    const rows = rowsOfFile(file, findings);
    if (rows?.length === 0) findings.problem("", `${file.path} has no entries`, "Export them as YAML.");
    for (const row of rows ?? []) if (addEntry(row, options, findings)) unzoned++;
  }
  tellZone(unzoned, options.zone, "It is the zone of the Rundeck server", findings);
  return findings;
}

function rowsOfFile({ path, text }: SourceFile, findings: Findings): Row[] | undefined {
  if (/^\s*</.test(text)) {
    try {
      return everywhere(readXml(text), "job").map((one) => valueOfXml(one) as Row);
    } catch (cause) {
      findings.problem("", `${path} is not XML: ${(cause as Error).message}`, "Export the entries as YAML.");
      return undefined;
    }
  }
  const [read] = yamlDocuments(text);
  if (read && "content" in read) return rowsOf([read.content].flat());
  findings.problem("", `${path} is not YAML: ${read?.problem ?? "it is empty"}`, "Export the entries as YAML.");
  return undefined;
}

/**
 * Converts an XML element to the value that the YAML export has. Attributes and child elements become fields; the commands of a sequence
 * become a list; an element without attributes and children becomes its text.
 */
function valueOfXml(element: Element): unknown {
  if (element.name === "sequence")
    return { ...element.attributes, commands: childrenOf(element, "command").map(valueOfXml) };
  const own = Object.fromEntries(element.children.map((child) => [child.name, valueOfXml(child)]));
  const all = { ...element.attributes, ...own };
  return Object.keys(all).length === 0 ? element.text.trim() : all;
}

const isOff = (value: unknown): boolean => value === false || value === "false";
const isOn = (value: unknown): boolean => value === true || value === "true";

/** @returns true if the entry was imported with a cron expression that names no zone */
function addEntry(row: Row, options: ImportOptions, findings: Findings): boolean {
  const [own, folder] = [textOf(row.name), textOf(row.group)];
  const source = folder === "" ? own : `${folder}/${own}`;
  tellFields(row, rundeckFields, source, findings);
  const text = cronOf(row.schedule);
  const zone = textOf(row.timeZone) || options.zone;
  const retries = numberOf(isRow(row.retry) ? (row.retry.retry ?? row.retry.count) : row.retry) ?? 0;
  const pause = textOf(within(row.retry, "delay"));
  const timeout = textOf(row.timeout);
  const isTimeout = /^\d+\s*[smhd]?$/.test(timeout);
  if (timeout !== "" && !isTimeout) findings.lost(source, `its timeout ${timeout}`, "Set timeout by hand.");
  const added = findings.add(
    source,
    source.replace(/\s+/g, "-"),
    {
      description: textOf(row.description) || undefined,
      group: options.group,
      schedule: text === "" ? "manual" : { cron: quartzCron(text), zone },
      overlap: isOn(row.multipleExecutions) ? undefined : "skip",
      timeout: isTimeout ? timeout.replace(/^(\d+)$/, "$1s") : undefined,
      retry:
        retries > 0
          ? { attempts: retries + 1, ...(pause === "" ? {} : { delay: pause.replace(/^(\d+)$/, "$1s") }) }
          : undefined,
      misfire: text === "" ? undefined : { policy: "skip" },
      command: commandOf(row.sequence, source, findings),
    },
    {
      suspended: text !== "" && (isOff(row.scheduleEnabled) || isOff(row.executionEnabled)),
      times: text === "" ? { dialect: "by hand" } : { dialect: "quartz", text, zone },
    },
  );
  return added !== undefined && text !== "" && textOf(row.timeZone) === "";
}

/** Returns the cron expression of a schedule; "" if the entry has no schedule. */
function cronOf(schedule: unknown): string {
  if (!isRow(schedule)) return "";
  const at = (path: string, usual: string) => textOf(within(schedule, path)) || usual;
  const crontab = at("crontab", "");
  if (crontab !== "") return crontab;
  const weekday = at("weekday.day", "*");
  const day = at("dayofmonth.day", at("month.day", weekday === "*" ? "*" : "?"));
  const month = at("month.month", at("month", "*"));
  const times = [at("time.seconds", "0"), at("time.minute", "0"), at("time.hour", "0")];
  return [...times, day, month, weekday === "*" ? "?" : weekday, at("year.year", at("year", "*"))].join(" ");
}

function commandOf(sequence: unknown, source: string, findings: Findings): unknown {
  const steps = rowsOf(within(sequence, "commands"));
  const [step] = steps;
  const text = textOf(step?.exec ?? step?.script);
  if (steps.length !== 1 || text === "") {
    findings.lost(source, `its ${steps.length} steps`, "Give the task a command, or a worker a handler.");
    return undefined;
  }
  if (/\$\{(?:option|node|job)\.|@option\./.test(text))
    findings.lost(source, "options in its step are not replaced here", "Write their values.");
  findings.note(source, "runs /bin/sh", "A worker must allow it: --allow /bin/sh --shell.");
  return { argv: ["/bin/sh", "-c", text] };
}
