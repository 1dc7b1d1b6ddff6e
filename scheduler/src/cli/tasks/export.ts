import { writeFileSync } from "node:fs";
import type { GivenItem, ItemContent } from "../../apply/plan-items.ts";
import { itemParts } from "../../apply/read.ts";
import { itemsWritten, writeYaml } from "../../apply/write.ts";
import { CarillonError, isCarillonError, messageOf } from "../../base/errors.ts";
import { itemKinds } from "../../task/applied-store.ts";
import { editedParts } from "../../task/edits.ts";
import type { TaskRecord } from "../../task/task-record.ts";
import { writtenTask } from "../../task/written.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Cluster } from "../nodes/cluster.ts";
import { withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import type { CommonOptions } from "../store-choice.ts";

export interface ExportOptions extends CommonOptions {
  group?: string;
  bundle?: string;
  output?: string;
}

/**
 * Exports tasks as they are now, including manual edits: the named ones, or all if `names` is empty; of these only the tasks of
 * the given group and bundle. Without names and group also exports the alarm rules and hooks, all or of the bundle.
 */
export function exportTasks(names: string[], options: ExportOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const { group, bundle, output } = options;
    const found = await cluster.tasks.records(names.length > 0 ? names : undefined);
    const tasks = found
      .filter(({ definition }) => group === undefined || definition.group === group)
      .filter(({ bundle: of }) => bundle === undefined || of === bundle)
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    const items = names.length > 0 || group !== undefined ? [] : await itemsOf(cluster, bundle, terminal);
    if (tasks.length === 0 && items.length === 0 && (group !== undefined || bundle !== undefined))
      throw new CarillonError("TASK_UNKNOWN", `no task is of ${ofWhat(options)}`, {
        hint: "See carillon tasks list, and carillon tasks show NAME for a task's group and bundle.",
      });
    if (terminal.json) {
      const written = Object.fromEntries(tasks.map(({ name, definition }) => [name, writtenTask(definition)]));
      const whole = { ...(bundle === undefined ? {} : { bundle }), tasks: written, ...itemsByName(items) };
      if (output === undefined || output === "-") terminal.object(whole);
      else writeOut(`${JSON.stringify(whole, null, 2)}\n`, output, terminal);
      return exitCodes.ok;
    }
    const text = writeYaml(
      tasks.map((record) => ({
        name: record.name,
        written: writtenTask(record.definition),
        comment: remarksOn(record),
      })),
      bundle ?? null,
      "",
      items,
    );
    writeOut(text, output, terminal);
    if (output !== undefined) {
      const more = items.length > 0 ? ` and ${items.length} alarm rules and hooks` : "";
      terminal.aside(`${tasks.length} tasks${more} written to ${output}`);
    }
    return exitCodes.ok;
  });
}

/** Returns the stored alarm rules and hooks, of one bundle or all. A caller without rights on a kind gets none of it, and is told so. */
async function itemsOf(cluster: Cluster, of: string | undefined, terminal: Terminal): Promise<GivenItem[]> {
  const found: GivenItem[] = [];
  for (const item of itemKinds) {
    try {
      const all = item === "alarm" ? (await cluster.alarms.rules()).stored : await cluster.hooks.list();
      for (const { name, content, bundle } of all)
        if (of === undefined || bundle === of) found.push({ item, name, content: content as unknown as ItemContent });
    } catch (error) {
      if (!isCarillonError(error, "ACCESS_DENIED")) throw error;
      terminal.aside(`without ${itemParts[item]}: ${error.message}`);
    }
  }
  return found;
}

const itemsByName = (items: readonly GivenItem[]) =>
  Object.fromEntries(Object.entries(itemsWritten(items)).map(([part, byName]) => [part, Object.fromEntries(byName)]));

const ofWhat = ({ group, bundle }: ExportOptions): string =>
  [group === undefined ? "" : `the group ${group}`, bundle === undefined ? "" : `the bundle ${bundle}`]
    .filter((part) => part !== "")
    .join(" and ");

/** Describes properties of a task that an exported file cannot express, such as that the task is paused. */
function remarksOn({ definition, paused, bundle }: TaskRecord): string {
  const edits = editedParts(definition);
  return [
    ...(paused ? [`paused by ${paused.by}${paused.why === "" ? "" : `: ${paused.why}`}`] : []),
    ...(edits.length > 0 ? [`edited by hand: ${edits.join(", ")}`] : []),
    ...(bundle === undefined ? [] : [`of the bundle ${bundle}`]),
  ].join("\n");
}

/** Writes the text to the file; prints it on standard output if the file is undefined or "-". @throws FILE_INVALID */
export function writeOut(text: string, file: string | undefined, terminal: Terminal): void {
  if (file === undefined || file === "-") {
    terminal.line(text.trimEnd());
    return;
  }
  try {
    writeFileSync(file, text);
  } catch (cause) {
    throw new CarillonError("FILE_INVALID", `${file} cannot be written: ${messageOf(cause)}`, {
      hint: "Give the path of a file in a folder that exists and that you may write to.",
      cause,
    });
  }
}
