/**
 * Imports Quartz schedules from the XML of its XMLSchedulingDataProcessorPlugin, from its JDBC tables as SQL, and from quartz.properties,
 * which gives the misfire threshold. The Java classes are not imported: a worker needs a handler for each task.
 */

import { isCarillonError } from "../base/errors.ts";
import { instantAt } from "../schedule/calendar.ts";
import { at } from "../schedule/schedule.ts";
import { endOfTime, zoneOf } from "../schedule/zone.ts";
import type { SourceTimes } from "./compare/source-times.ts";
import { type FieldTable, readFields, tellFields } from "./fields.ts";
import { type Beside, Findings, type ImportOptions, type SourceFile } from "./findings.ts";
import { quartzCron } from "./quartz-cron.ts";
import { isQuartzDump, readQuartzTables } from "./quartz-tables.ts";
import { childrenOf, childText, type Element, everywhere, readXml } from "./xml.ts";

interface Detail {
  name: string;
  className: string;
  description: string;
  data: Record<string, string>;
  recovers: boolean;
  /**
   * How runs that overlap are treated: "queue" if the Java class forbids concurrent execution, else "allow"; "" for XML, which
   * does not say it.
   */
  overlap: string;
  triggers: Element[];
}

interface Place {
  findings: Findings;
  options: ImportOptions;
  misfireAfterMs: number;
}

const defaultThresholdMs = 60_000;

const detailFields = readFields(
  "name group description job-class job-type job-data-map recover durable durability volatility overlap job-detail trigger",
);
const triggerFields = readFields(
  "name group description job-name job-group priority calendar-name misfire-instruction start-time end-time start-time-seconds-in-future job-data-map trigger-state volatility",
);
/** The fields of each kind of trigger beside those of every trigger. */
const ownFields: Readonly<Record<string, FieldTable>> = {
  cron: readFields("cron-expression time-zone"),
  simple: readFields("repeat-count repeat-interval"),
  "calendar-interval": readFields("repeat-interval repeat-interval-unit"),
};

/** Reports child elements that are not known. */
function tellElements(element: Element, known: FieldTable, source: string, findings: Findings, place: string): void {
  for (const child of element.children)
    tellFields({ [child.name]: child.children.length > 0 ? "…" : child.text }, known, source, findings, place);
}

export function importQuartz(files: readonly SourceFile[], options: ImportOptions): Findings {
  const findings = new Findings(options);
  const properties = new Map<string, string>();
  const details = new Map<string, Detail>();
  const triggers: Element[] = [];
  for (const file of files) {
    if (/\.properties$/i.test(file.path)) {
      for (const [key, value] of propertiesOf(file.text)) properties.set(key, value);
      continue;
    }
    const root = readFile(file, findings);
    if (root === undefined) continue;
    for (const element of everywhere(root, "job")) {
      // In the XML of Quartz 1, each `job` element contains a detail and its triggers.
      const detail = detailOf(childrenOf(element, "job-detail")[0] ?? element);
      details.set(detail.name, detail);
      tellElements(childrenOf(element, "job-detail")[0] ?? element, detailFields, detail.name, findings, "job");
    }
    for (const element of everywhere(root, "trigger")) triggers.push(...element.children);
    if (["schedule", "quartz"].every((name) => everywhere(root, name).length === 0))
      findings.problem("", `${file.path} has no <schedule>`, "It must be the XML of Quartz's scheduling data.");
  }
  const threshold = Number(properties.get("org.quartz.jobStore.misfireThreshold") ?? Number.NaN);
  const place = {
    findings,
    options,
    misfireAfterMs: Number.isFinite(threshold) && threshold >= 1_000 ? threshold : defaultThresholdMs,
  };
  tellProperties(properties, findings);
  for (const trigger of triggers) {
    const key = keyOf(childText(trigger, "job-name"), childText(trigger, "job-group"));
    const detail = details.get(key);
    if (detail) detail.triggers.push(trigger);
    else
      findings.problem(
        childText(trigger, "name") || `line ${trigger.line}`,
        `its job ${key} is not in these files`,
        "Give all files at once.",
      );
  }
  for (const detail of details.values()) addDetail(detail, place);
  const unzoned = triggers.filter((trigger) => trigger.name === "cron" && childText(trigger, "time-zone") === "");
  if (unzoned.length > 0)
    findings.note(
      "",
      `cron triggers without time-zone: ${unzoned.length}; they are taken to mean ${options.zone}`,
      "Quartz means the zone of its machine; say another with --zone.",
    );
  if ([...details.values()].some(({ overlap }) => overlap === ""))
    findings.note(
      "",
      "whether runs may overlap stands in the Java classes (@DisallowConcurrentExecution)",
      "Where it does, add overlap: queue.",
    );
  return findings;
}

/** @returns undefined if the file cannot be read; a problem is then reported */
function readFile({ path, text }: SourceFile, findings: Findings): Element | undefined {
  try {
    if (!isQuartzDump(text)) return readXml(text);
    const { root, withData } = readQuartzTables(text);
    if (withData > 0)
      findings.lost(
        "",
        `JOB_DATA of ${withData}: it is serialised Java, also where it is empty`,
        "Where there is data, write it as slotPayload.",
      );
    return root;
  } catch (cause) {
    findings.problem(
      "",
      `${path} is ${isQuartzDump(text) ? "no SQL that can be read" : "not XML"}: ${(cause as Error).message}`,
      "Give the file that jobs and triggers are declared in, or a dump of the tables QRTZ_….",
    );
    return undefined;
  }
}

const keyOf = (name: string, group: string) => (group === "" || group === "DEFAULT" ? name : `${group}.${name}`);

const detailOf = (element: Element): Detail => ({
  name: keyOf(childText(element, "name"), childText(element, "group")),
  // Quartz.NET has the element job-type in place of job-class; it contains a type and its assembly.
  className: childText(element, "job-class") || childText(element, "job-type"),
  description: childText(element, "description"),
  data: dataOf(element),
  recovers: childText(element, "recover") === "true",
  overlap: childText(element, "overlap"),
  triggers: [],
});

const dataOf = (element: Element): Record<string, string> =>
  Object.fromEntries(
    childrenOf(element, "job-data-map").flatMap((map) =>
      childrenOf(map, "entry").map((entry) => [childText(entry, "key"), childText(entry, "value")]),
    ),
  );

function addDetail(detail: Detail, place: Place): void {
  const { name, className, triggers } = detail;
  const { findings, options } = place;
  const shared = {
    group: options.group,
    // After a crash Quartz repeats only the executions that requested recovery.
    onWorkerLost: detail.recovers ? "retry" : "fail",
    overlap: detail.overlap || undefined,
  };
  const comment = `runs ${className}: a worker needs a handler of this name`;
  findings.note(
    name,
    className.includes(",") ? `runs the .NET type ${className}` : `runs the Java class ${className}`,
    "Give a worker a handler of the task's name, or the task a command or http.",
  );
  if (triggers.length === 0) {
    const slotPayload = payloadOf(detail.data);
    findings.add(
      name,
      name,
      { ...shared, description: detail.description, slotPayload },
      { comment, times: { dialect: "by hand" } },
    );
    if (slotPayload)
      findings.lost(
        name,
        "a run by hand is given no data",
        "The data is the payload of slots; give it with --payload.",
      );
  }
  for (const trigger of triggers) {
    const own = childText(trigger, "name");
    const source = triggers.length === 1 ? name : `${name}:${own}`;
    const zone = childText(trigger, "time-zone") || options.zone;
    const [start, end] = ["start-time", "end-time"].map((name) => instantOf(trigger, name, zone, source, findings));
    if (start === undefined || end === undefined) continue;
    const [fromMs, endMs] = [start, end].map((time) => momentOf(time, source, findings));
    if (Number.isNaN(fromMs) || Number.isNaN(endMs)) continue;
    const schedule = scheduleOf(trigger, { zone, start }, source, findings);
    if (schedule === undefined) continue;
    tellRest(trigger, source, findings);
    const description = [detail.description, childText(trigger, "description")]
      .filter((text) => text !== "")
      .join(" · ");
    const slotPayload = payloadOf({ ...detail.data, ...dataOf(trigger) });
    const misfire = { policy: misfireOf(trigger, source, findings), after: place.misfireAfterMs };
    findings.add(
      source,
      source,
      { ...shared, description, schedule, slotPayload, priority: priorityOf(trigger, source, findings), misfire },
      {
        comment,
        suspended: stillStates.has(childText(trigger, "trigger-state")),
        times: timesOf(trigger, zone, fromMs),
        ...lifeOf(trigger, fromMs, endMs),
      },
    );
  }
}

/** The trigger states in the JDBC tables in which Quartz does not fire the trigger. */
const stillStates = new Set(["PAUSED", "PAUSED_BLOCKED", "COMPLETE", "ERROR", "DELETED"]);

/** Returns the trigger's fire times in Quartz's own notation; undefined if the comparison does not support the trigger. */
function timesOf(trigger: Element, zone: string, startMs: number | undefined): SourceTimes | undefined {
  if (trigger.name === "cron") return { dialect: "quartz", text: childText(trigger, "cron-expression"), zone };
  const interval = Number(childText(trigger, "repeat-interval") || "0");
  if (trigger.name === "calendar-interval") {
    const unitMs = unitsMs[childText(trigger, "repeat-interval-unit")];
    if (unitMs === undefined) return undefined;
    return { dialect: "interval", everyMs: interval * unitMs, anchorMs: startMs };
  }
  if (repeatsOf(trigger) !== 0) return { dialect: "interval", everyMs: interval, anchorMs: startMs };
  return startMs === undefined ? { dialect: "by hand" } : { dialect: "once", atMs: startMs };
}

/**
 * Returns the start and the exclusive end of the trigger's fire times. A cron trigger may still fire exactly at its end time, so 1 ms is
 * added to its end; other triggers fire only before their end. A simple trigger with a repeat count ends 1 ms after its last repetition, if
 * that is earlier.
 */
function lifeOf(trigger: Element, fromMs?: number, endMs?: number): Pick<Beside, "fromMs" | "untilMs"> {
  const ends = [endMs === undefined ? undefined : endMs + (trigger.name === "cron" ? 1 : 0)];
  const count = repeatsOf(trigger);
  if (trigger.name === "simple" && count > 0 && fromMs !== undefined)
    ends.push(fromMs + count * Number(childText(trigger, "repeat-interval") || "0") + 1);
  const untilMs = Math.min(...ends.filter((ms) => ms !== undefined));
  const isOnce = trigger.name === "simple" && count === 0;
  return { fromMs: isOnce ? undefined : fromMs, untilMs: Number.isFinite(untilMs) ? untilMs : undefined };
}

/**
 * Converts a time to epoch milliseconds.
 * @returns undefined if no time is given; NaN if the text is not a time, after reporting a problem
 */
function momentOf(time: string, source: string, findings: Findings): number | undefined {
  if (time === "") return undefined;
  try {
    const spec = at(time);
    return spec.type === "at" ? spec.atMs : Number.NaN;
  } catch (error) {
    if (!isCarillonError(error)) throw error;
    findings.problem(source, error.message, error.hint);
    return Number.NaN;
  }
}

/** The number of times that a simple trigger fires after its first time; −1 means without end. */
const repeatsOf = (trigger: Element): number => Number(childText(trigger, "repeat-count") || "0");

const payloadOf = (data: Record<string, string>) => (Object.keys(data).length === 0 ? undefined : data);

const unitsMs: Record<string, number> = {
  SECOND: 1_000,
  MINUTE: 60_000,
  HOUR: 3_600_000,
  DAY: 86_400_000,
  WEEK: 604_800_000,
};

function scheduleOf(
  trigger: Element,
  { zone, start }: { zone: string; start: string },
  source: string,
  findings: Findings,
): unknown {
  switch (trigger.name) {
    case "cron":
      return { cron: quartzCron(childText(trigger, "cron-expression")), zone };
    case "simple": {
      const count = repeatsOf(trigger);
      const interval = Number(childText(trigger, "repeat-interval") || "0");
      if (count === 0) {
        if (start !== "") return { at: start };
        findings.lost(source, "it fires once, when the scheduler starts", "Run it by hand: carillon tasks run.");
        return "manual";
      }
      if (count > 0 && start === "")
        findings.lost(source, `it ends after ${count + 1} times; here it goes on`, "Remove the task when it is done.");
      return { every: interval, ...(start === "" ? {} : { anchor: start }) };
    }
    case "calendar-interval": {
      const unit = childText(trigger, "repeat-interval-unit");
      const unitMs = unitsMs[unit];
      if (unitMs === undefined) {
        findings.problem(
          source,
          `an interval in ${unit || "no unit"} has no fixed length`,
          "Write it as a cron, such as 0 0 1 * * for each month.",
        );
        return undefined;
      }
      if (unitMs >= 86_400_000)
        findings.note(
          source,
          "its days have 24 hours here, also where clocks change",
          "For a time of day write a cron.",
        );
      return {
        every: Number(childText(trigger, "repeat-interval")) * unitMs,
        ...(start === "" ? {} : { anchor: start }),
      };
    }
    default:
      findings.problem(source, `there is no equivalent of a <${trigger.name}> trigger`, "Write its schedule by hand.");
      return undefined;
  }
}

/**
 * Returns the time in a child element as ISO 8601. A time without an offset is in the zone of Quartz's machine, so `zone` is applied.
 * @returns "" if no time is given; undefined if a problem was reported
 */
function instantOf(
  trigger: Element,
  name: string,
  zone: string,
  source: string,
  findings: Findings,
): string | undefined {
  const time = childText(trigger, name);
  if (time === "" || /(?:Z|[+-]\d{2}:?\d{2})$/i.test(time)) return time;
  const local = Date.parse(`${time}Z`);
  const [day] = /^\d{4}-\d\d-\d\d(?=T)/.exec(time) ?? [];
  // For an invalid text, an impossible day, or a time beyond Carillon's range, the schedule's parser reports the error.
  const exists = local >= 0 && local < endOfTime && day !== undefined && new Date(local).toISOString().startsWith(day);
  if (!exists) return `${time}Z`;
  try {
    const instant = new Date(instantAt(zoneOf(zone), local)).toISOString();
    findings.note(
      source,
      `its ${name} ${time} has no offset, so it is taken to be in ${zone}`,
      "Quartz means the zone of its machine; say another with --zone.",
    );
    return instant;
  } catch (error) {
    if (!isCarillonError(error)) throw error;
    findings.problem(source, error.message, error.hint);
    return undefined;
  }
}

function misfireOf(trigger: Element, source: string, findings: Findings): "fire_once" | "skip" | "all" {
  // Quartz.NET writes DoNothing where Quartz writes DO_NOTHING.
  const said = childText(trigger, "misfire-instruction")
    .replace(/([a-z])([A-Z])/g, "$1_$2")
    .toUpperCase()
    .replace(/^MISFIRE_INSTRUCTION_/, "");
  const cron = trigger.name !== "simple";
  switch (said) {
    case "":
    case "0":
    case "SMART_POLICY":
      // Quartz's smart policy: a late trigger fires once immediately, except that an interval without end waits for its next time.
      return cron || repeatsOf(trigger) >= 0 ? "fire_once" : "skip";
    case "-1":
    case "IGNORE_MISFIRE_POLICY":
      findings.note(source, "all missed times are run, at most the newest 100", "misfire has cap and perSecond.");
      return "all";
    case "FIRE_ONCE_NOW":
    case "FIRE_NOW":
    case "RESCHEDULE_NOW_WITH_EXISTING_REPEAT_COUNT":
    case "RESCHEDULE_NOW_WITH_REMAINING_REPEAT_COUNT":
    case "1":
      return "fire_once";
    case "DO_NOTHING":
    case "RESCHEDULE_NEXT_WITH_EXISTING_COUNT":
    case "RESCHEDULE_NEXT_WITH_REMAINING_COUNT":
      return "skip";
    case "2":
      return cron ? "skip" : "fire_once";
    default:
      if (!cron && /^(?:4|5)$/.test(said)) return "skip";
      if (!cron && said === "3") return "fire_once";
      findings.lost(source, `misfire instruction ${said}: one run makes up for what was missed`);
      return "fire_once";
  }
}

function priorityOf(trigger: Element, source: string, findings: Findings): number | undefined {
  const text = childText(trigger, "priority");
  if (text === "") return undefined;
  const priority = Number(text);
  if (priority >= 0 && priority <= 9) return priority;
  findings.lost(source, `priority ${text}: 0 to 9 are possible`);
  return priority > 9 ? 9 : 0;
}

function tellRest(trigger: Element, source: string, findings: Findings): void {
  const delay = childText(trigger, "start-time-seconds-in-future");
  if (delay !== "") findings.lost(source, `its start ${delay} s after the scheduler's`);
  const known = new Map([...triggerFields, ...(ownFields[trigger.name] ?? [])]);
  tellElements(trigger, known, source, findings, trigger.name);
  const calendar = childText(trigger, "calendar-name");
  if (calendar !== "")
    findings.lost(
      source,
      `its calendar ${calendar}, which is Java`,
      "Store one with carillon calendars set, and name it: calendar: { name: … }.",
    );
}

function tellProperties(properties: ReadonlyMap<string, string>, findings: Findings): void {
  const threads = properties.get("org.quartz.threadPool.threadCount");
  if (threads) findings.note("", `Quartz ran ${threads} at once`, `A worker does so with --concurrency ${threads}.`);
  const named = properties.get("org.quartz.plugin.jobInitializer.fileNames");
  if (named) findings.note("", `quartz.properties names ${named}`, "Those files are read only when they are given.");
}

/** Parses the features of Java's properties format that Quartz uses: comments, = or :, and lines continued by a backslash. */
function propertiesOf(text: string): [string, string][] {
  const joined = text.replace(/\\\r?\n[ \t]*/g, "");
  return joined.split(/\r?\n/).flatMap((line) => {
    const [, key, value] = /^\s*([^#!\s=:][^\s=:]*)\s*[=:]?\s*(.*?)\s*$/.exec(line) ?? [];
    return key === undefined ? [] : [[key, value ?? ""] as [string, string]];
  });
}
