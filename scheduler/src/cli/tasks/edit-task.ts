import { formatDuration } from "../../base/duration.ts";
import { CarillonError } from "../../base/errors.ts";
import { readJson } from "../../base/json.ts";
import { meant } from "../../base/nearest.ts";
import { calendarPeriodOf } from "../../schedule/calendar-interval.ts";
import {
  at,
  compileSchedule,
  cron,
  every,
  manual,
  rrule,
  type ScheduleSpec,
  validateSchedule,
  zoneNameOf,
} from "../../schedule/schedule.ts";
import type { AfterSpec } from "../../task/after.ts";
import { editedParts, partCalled, type TaskPart } from "../../task/edits.ts";
import type { Shape } from "../../task/kinds/kinds.ts";
import { readSchedule } from "../../task/kinds/schedule.ts";
import {
  type OptionName,
  type OptionRow,
  optionNames,
  optionRows,
  type TaskDefinition,
  type TaskOptions,
  taskOptions,
} from "../../task/options.ts";
import type { TaskRecord } from "../../task/task-record.ts";
import { differences } from "../../task/versions.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Cluster, EditChange } from "../nodes/cluster.ts";
import { withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import type { CommonOptions } from "../store-choice.ts";
import { isWrittenAsJson, partsToSet } from "./parts-to-set.ts";
import { afterText } from "./policy-text.ts";

export interface EditOptions extends CommonOptions {
  set?: [string, string][];
  reason?: string;
  /** The change is refused if the task's version is not this one; default: the current version. */
  expectVersion?: number;
}

export function editTask(name: string, options: EditOptions, terminal: Terminal): Promise<ExitCode> {
  const { set = [] } = options;
  if (set.length === 0)
    throw new CarillonError("USAGE", "nothing to change was given", { hint: `Give --set PART=VALUE: ${partsToSet}.` });
  return withCluster(options, ({ cluster }) =>
    change(name, options, cluster, terminal, (record, given) =>
      cluster.tasks.edit(record, optionsOf(set, record.definition), given),
    ),
  );
}

/** Resets edited parts to the values defined by code (or by an import); resets all edited parts if `names` is empty. */
export function revertTask(name: string, names: string[], options: EditOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, ({ cluster }) =>
    change(name, options, cluster, terminal, (record, given) => {
      const { definition } = record;
      const there = editedParts(definition);
      const wanted = names.length === 0 ? there : names.map((one) => partCalled(one) ?? (one as TaskPart));
      const wrong = wanted.find((part) => !there.includes(part));
      if (wrong === undefined) return cluster.tasks.revert(record, wanted, given);
      throw new CarillonError("USAGE", `${JSON.stringify(wrong)} of task ${name} was not edited`, {
        hint: there.length === 0 ? "Nothing of it was." : `Edited are: ${there.join(", ")}.`,
      });
    }),
  );
}

async function change(
  name: string,
  options: EditOptions,
  cluster: Cluster,
  terminal: Terminal,
  make: (record: TaskRecord, given: EditChange) => Promise<{ record: TaskRecord; changed: boolean }>,
): Promise<ExitCode> {
  const { record: before } = await cluster.tasks.find(name);
  const expectedVersion = options.expectVersion ?? before.version;
  const { record, changed } = await make(before, { expectedVersion, reason: options.reason ?? "" });
  const parts = changed ? (differences(before.definition, record.definition) as (TaskPart | "asDefined")[]) : [];
  const [was, is] = [before.definition, record.definition];
  if (terminal.json) {
    const { version } = record;
    const changes = Object.fromEntries(parts.map((part) => [part, { was: was[part] ?? null, is: is[part] ?? null }]));
    terminal.object({ task: name, version, changed, changes, edited: editedParts(is) });
    return exitCodes.ok;
  }
  if (!changed) {
    terminal.line(`${plain(name)} is so already, at version ${record.version}`);
    return exitCodes.ok;
  }
  terminal.line(`${plain(name)} is at version ${record.version}`);
  terminal.table(
    [{ title: "PART" }, { title: "WAS", least: 12 }, { title: "IS", least: 12 }],
    parts.map((part) => [part, partText(was, part, is), partText(is, part, was)]),
    "  ",
  );
  const left = editedParts(is);
  if (left.length > 0)
    terminal.aside(
      `${left.join(", ")} ${left.length === 1 ? "stays" : "stay"} as edited, whatever the code says, until: carillon tasks revert ${plain(name)}`,
    );
  return exitCodes.ok;
}

/** Formats the value of one part on one line. For the retry, overlap and misfire policies, only fields that differ from `beside` appear. */
export function partText(
  definition: Partial<TaskDefinition>,
  part: TaskPart | "asDefined",
  beside: Partial<TaskDefinition>,
): string {
  const value = definition[part];
  if (part === "schedule" && definition.schedule) return plain(compileSchedule(definition.schedule).words());
  if (typeof value !== "object" || value === null || !/^(?:retry|overlap|misfire)$/.test(part))
    return valueText(part, value);
  const other = (beside[part] ?? {}) as Record<string, unknown>;
  const differing = Object.entries(value).filter(([name, one]) => one !== other[name]);
  return differing.map(([name, one]) => `${name.replace(/Ms$/, "")} ${valueText(name, one)}`).join(", ");
}

function valueText(name: string, value: unknown): string {
  if (name === "after" && value) return plain(afterText(value as AfterSpec));
  if (value === null || value === undefined) return "none";
  if (name.endsWith("Ms") && typeof value === "number") return formatDuration(value);
  return plain(typeof value === "string" ? value : JSON.stringify(value));
}

/** Parses `--set PART=VALUE` into task options. A new schedule keeps parts of the current one: see `scheduleOf`. */
export function optionsOf(set: [string, string][], { schedule }: Pick<TaskDefinition, "schedule">): TaskOptions {
  const options: Record<string, unknown> = {};
  for (const [name, text] of set) {
    if (name === "zone") continue;
    const option = optionCalled(name);
    if (option === "schedule") options.schedule = scheduleOf(text, schedule);
    else options[option] = valueGiven(option, text);
  }
  const zone = set.find(([name]) => name === "zone")?.[1];
  if (zone !== undefined) options.schedule = validateSchedule({ ...((options.schedule as object) ?? schedule), zone });
  return options as TaskOptions;
}

/**
 * Finds an option by its own name, or by its name in a task definition, which `tasks show --json` prints.
 * @throws USAGE if there is no such option
 */
function optionCalled(name: string): OptionName {
  const found = optionRows.find(([option, { part }]) => option === name || part === name);
  if (found) return found[0];
  const what = `a task has no ${JSON.stringify(name)}${meant(name, [...optionNames, "zone"])}`;
  throw new CarillonError("USAGE", what, { hint: `It has ${partsToSet}.`, path: name });
}

const takesNames = (shape: Shape): boolean =>
  shape.is === "either" && shape.of.some((one) => one.is === "list" && one.of.is === "text");

/**
 * Converts the text to a value of the option's type. Text that is not JSON where JSON is needed is refused here; any other wrong value is
 * refused later by the option's own validation.
 */
function valueGiven(option: OptionName, text: string): unknown {
  const row: OptionRow = taskOptions[option];
  const { shape } = row.kind;
  if (text === "none" && row.nullable) return null;
  if (shape.is === "text") return text;
  // A list of names is given as comma-separated text, so a single name becomes a list with one item.
  if (takesNames(shape) && !/^[{[]/.test(text)) return text.split(",").map((one) => one.trim());
  // For the remaining types, text that begins with { or consists of digits is parsed as JSON; other text is used unchanged.
  return isWrittenAsJson(shape) || /^(?:\{|\d+$)/.test(text) ? json(option, text) : text;
}

/**
 * Parses a new schedule. The zone and jitter of the present schedule stay, unless the new one is JSON, `at` or `manual`; an RRULE
 * with its own DTSTART keeps only the jitter. The policy for clock changes (DST) does not stay, because it belongs to the expression.
 */
function scheduleOf(text: string, present: ScheduleSpec): ScheduleSpec {
  const words = text.trim();
  const [, kind, rest = ""] = /^(every|rrule|at)\s+(.*)$/s.exec(words) ?? [];
  const jitter =
    "jitterMs" in present && present.jitterMs
      ? { jitter: present.jitterMs, ...(present.jitterBy && { jitterBy: present.jitterBy }) }
      : {};
  if (words === "manual") return manual;
  if (words.startsWith("{")) return readSchedule(json("schedule", words));
  // An RRULE without DTSTART keeps the start of a present RRULE; a calendar period keeps the days and times of a present period of
  // the same unit.
  const zone = zoneNameOf(present) ?? "UTC";
  const start = present.type === "rrule" ? { start: present.start } : {};
  if (kind === "at") return at(rest);
  if (kind === "every") {
    const period = calendarPeriodOf(rest);
    if (period === null) return every(rest, jitter);
    const { on, at: times, anchor } = present.type === "interval" && present.unit === period.unit ? present : {};
    const days = { ...(on ? { on } : {}), ...(times ? { at: times } : {}), ...(anchor ? { anchor } : {}) };
    return every(rest, { ...days, zone, ...jitter });
  }
  if (kind === "rrule") return rrule(rest, /DTSTART/i.test(rest) ? jitter : { ...start, zone, ...jitter });
  return cron(words, { zone, ...jitter });
}

function json(name: string, text: string): unknown {
  try {
    return readJson(text, `--set ${name}=…`);
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw new CarillonError("USAGE", `--set ${name}=… is not JSON: ${cause.message}`, {
      hint: `For example --set 'retry={"attempts":5,"delay":"2s"}' or --set 'slotPayload={"ledger":"eu"}'.`,
      cause,
    });
  }
}
