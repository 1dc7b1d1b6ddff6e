import type { AfterSpec } from "../after.ts";
import { formatDuration } from "../duration.ts";
import { CarillonError } from "../errors.ts";
import { at, compileSchedule, cron, every, manual, type ScheduleSpec, validateSchedule } from "../schedule.ts";
import type { TaskRecord } from "../store.ts";
import type { TaskDefinition, TaskOptions } from "../task.ts";
import { editedParts, partCalled, type TaskPart } from "../task-edits.ts";
import { differences } from "../task-versions.ts";
import type { Cluster, EditChange } from "./cluster.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import { partsToSet } from "./parts-to-set.ts";
import { afterText } from "./policy-text.ts";
import { withCluster } from "./reach.ts";
import type { CommonOptions } from "./store-choice.ts";
import type { Terminal } from "./terminal.ts";
import { plain } from "./text.ts";

export interface EditOptions extends CommonOptions {
  set?: [string, string][];
  reason?: string;
  /** The version that the change was made from; default: the one that is there now. */
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

/** Puts back what the code (or an import) says of parts that were edited; of all, when none is named. */
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

/** What a definition says of one part, in a line; of a policy only that in which it is another than the one beside. */
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

function optionsOf(set: [string, string][], { schedule }: TaskDefinition): TaskOptions {
  const options: Record<string, unknown> = {};
  for (const [name, text] of set) {
    if (name === "schedule") options.schedule = scheduleOf(text, schedule);
    else if (name === "zone") continue;
    else if (name === "slotPayload" || name === "payloadSchema" || name === "command") options[name] = json(name, text);
    else if (/^(?:timeout|calendar|blackout|after|rate)$/.test(name) && text === "none") options[name] = null;
    else if (name === "after")
      options.after = /^[{[]/.test(text) ? json(name, text) : text.split(",").map((one) => one.trim());
    else if (name === "calendar" || name === "blackout") options[name] = json(name, text);
    else if (partCalled(name) === undefined)
      throw new CarillonError("USAGE", `a task has no ${JSON.stringify(name)}`, { hint: `It has ${partsToSet}.` });
    // A number or an object where one is possible, else the text as it is; what cannot be is told by its check.
    else options[name] = name !== "description" && /^(?:\{|\d+$)/.test(text) ? json(name, text) : text;
  }
  const zone = set.find(([name]) => name === "zone")?.[1];
  if (zone !== undefined) options.schedule = validateSchedule({ ...((options.schedule as object) ?? schedule), zone });
  return options as TaskOptions;
}

/** Zone and jitter of the present one stay; what happens at a change of clocks follows the new expression. */
function scheduleOf(text: string, present: ScheduleSpec): ScheduleSpec {
  const words = text.trim();
  const [, kind, rest = ""] = /^(every|at)\s+(.*)$/s.exec(words) ?? [];
  const jitter = "jitterMs" in present && present.jitterMs ? { jitter: present.jitterMs } : {};
  if (words === "manual") return manual;
  if (words.startsWith("{")) return validateSchedule(json("schedule", words));
  if (kind === "at") return at(rest);
  if (kind === "every") return every(rest, jitter);
  return cron(words, { zone: present.type === "cron" ? present.zone : "UTC", ...jitter });
}

function json(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CarillonError("USAGE", `--set ${name}=… is not JSON: ${(cause as Error).message}`, {
      hint: `For example --set 'retry={"attempts":5,"delay":"2s"}' or --set 'slotPayload={"ledger":"eu"}'.`,
      cause,
    });
  }
}
