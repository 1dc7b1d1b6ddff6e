import { CarillonError } from "../../base/errors.ts";
import { type SimulatedTask, type Simulation, simulate } from "../../slots/simulation.ts";
import type { TaskDefinition } from "../../task/task.ts";
import type { TaskRecord } from "../../task/task-record.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { readTaskFiles, tellProblems } from "../files/read-tasks.ts";
import { withCluster } from "../reach.ts";
import { timeOf } from "../runs/operations.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { localZone, timeText, zoneOfSpec } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";
import { clockChange } from "./clock-changes.ts";

export interface SimulateOptions extends CommonOptions {
  from?: string;
  to?: string;
  task?: string[];
  limit: number;
}

const dayMs = 86_400_000;
const collisionsShown = 10;
const namesShown = 5;

/** Simulates the tasks in the given files, which needs no store, or the stored tasks if no file is given. */
export async function simulateTasks(files: string[], options: SimulateOptions, terminal: Terminal): Promise<ExitCode> {
  if (files.length > 0) {
    const { definitions, problems } = await readTaskFiles(files, undefined);
    if (problems.length > 0) {
      tellProblems(problems, terminal);
      return exitCodes.usage;
    }
    const notes = definitions
      .filter(({ calendar }) => calendar !== undefined)
      .map(({ name, calendar }) => `${name}: the calendar ${calendar?.name} is in the store, and was not looked at`);
    return show(
      definitions.map((definition) => ({ definition })),
      notes,
      Date.now(),
      options,
      terminal,
    );
  }
  return withCluster(options, async ({ cluster }) => {
    const { tasks, notes } = simulatedTasks(await cluster.tasks.records());
    return show(tasks, notes, cluster.nowMs(), options, terminal);
  });
}

/** Selects the tasks that are to be simulated, and returns a note about each paused task. Tasks paused without an end are left out. */
export function simulatedTasks(records: readonly TaskRecord[]): { tasks: SimulatedTask[]; notes: string[] } {
  const notes = records.flatMap(({ name, paused }) => {
    if (!paused) return [];
    return [`${name}: paused${paused.untilMs === null ? "" : ` until ${timeText(paused.untilMs, localZone())}`}`];
  });
  return { tasks: records.filter(({ paused }) => paused === null || paused.untilMs !== null), notes };
}

function show(
  given: SimulatedTask[],
  notes: string[],
  nowMs: number,
  options: SimulateOptions,
  terminal: Terminal,
): ExitCode {
  const names = options.task;
  const missing = names?.find((name) => !given.some(({ definition }) => definition.name === name));
  if (missing !== undefined)
    throw new CarillonError("TASK_UNKNOWN", `there is no task ${JSON.stringify(missing)} that fires`, {
      hint: "See carillon tasks list; a paused one does not fire.",
    });
  const wanted = given.filter(({ definition }) => names === undefined || names.includes(definition.name));
  const fromMs = options.from === undefined ? Math.ceil(nowMs) : timeOf("--from", options.from, nowMs);
  const toMs = options.to === undefined ? fromMs + dayMs : timeOf("--to", options.to, nowMs);
  if (toMs <= fromMs)
    throw new CarillonError("USAGE", "--to does not lie after --from", {
      hint: "For example --from 2027-03-27T00:00:00Z --to 2027-03-29T00:00:00Z.",
    });
  const foreseen = simulationOf(wanted, notes, { fromMs, toMs, limit: options.limit });
  if (terminal.json) terminal.object(simulationObject(foreseen));
  else print(foreseen, terminal);
  return exitCodes.ok;
}

/** A simulation with the definitions of its tasks, and a note about each task whose slots cannot be computed in advance. */
export interface Foreseen {
  simulation: Simulation;
  definitions: ReadonlyMap<string, TaskDefinition>;
  notes: string[];
  fromMs: number;
  toMs: number;
}

/** Simulates the tasks from `fromMs` to `toMs`. @throws OPTION_INVALID if there are more slots than `limits.simulatedSlots` */
export function simulationOf(
  given: readonly SimulatedTask[],
  notes: readonly string[],
  { fromMs, toMs, limit }: { fromMs: number; toMs: number; limit: number },
): Foreseen {
  const unforeseenNotes = given.flatMap(({ definition }) => {
    const why = unforeseen(definition);
    return why === "" ? [] : [`${definition.name}: ${why}`];
  });
  const tasks = given.filter(({ definition }) => unforeseen(definition) === "");
  return {
    simulation: simulate(tasks, fromMs, toMs, limit),
    definitions: new Map(tasks.map((task) => [task.definition.name, task.definition])),
    notes: [...notes, ...unforeseenNotes],
    fromMs,
    toMs,
  };
}

const unforeseen = ({ schedule, after }: TaskDefinition): string => {
  if (after) return `comes after ${after.tasks.join(", ")}`;
  return schedule.type === "every" && schedule.mode === "delay" ? "its slots follow from the ends of its runs" : "";
};

const marksOf = (
  { task, atMs, previousMs, rule, skipped }: Simulation["fires"][number],
  definitions: Foreseen["definitions"],
): string => {
  const { schedule } = definitions.get(task) as TaskDefinition;
  const change = clockChange(schedule, atMs, previousMs, zoneOfSpec(schedule));
  return [change, skipped ? `skipped: ${rule}` : rule].filter((text) => text !== "").join("; ");
};

function print({ simulation, definitions, notes }: Foreseen, terminal: Terminal): void {
  const { fires, total, skipped, lost, collisions } = simulation;
  const { style } = terminal;
  const zoneOf = (task: string) => zoneOfSpec((definitions.get(task) as TaskDefinition).schedule);
  terminal.table(
    [{ title: "FIRES" }, { title: "TASK", least: 16 }, { title: "", least: 12 }],
    fires.map((fire) => [
      timeText(fire.atMs, zoneOf(fire.task)),
      plain(fire.task),
      { text: plain(marksOf(fire, definitions)), paint: style.warning },
    ]),
  );
  if (total > fires.length) terminal.line(style.dim(`… and ${total - fires.length} more`));
  for (const { atMs, task, local, count } of lost)
    terminal.line(
      style.warning(
        `${timeText(atMs, zoneOf(task))}  ${plain(task)}: no slot, ${local} does not exist${count > 1 ? ` (${count} such times)` : ""}`,
      ),
    );
  if (collisions.length > 0) {
    terminal.line();
    const zone = localZone();
    terminal.table(
      [{ title: "MINUTE" }, { title: "FIRES", align: "right" }, { title: "TASKS", least: 20 }],
      collisions
        .slice(0, collisionsShown)
        .map(({ minuteMs, fires, tasks }) => [
          timeText(minuteMs, zone),
          String(fires),
          plain(
            `${tasks.slice(0, namesShown).join(", ")}${tasks.length > namesShown ? `, and ${tasks.length - namesShown} more` : ""}`,
          ),
        ]),
    );
  }
  const told = [
    `${total} slots of ${definitions.size} tasks`,
    ...(skipped > 0 ? [`${skipped} skipped by calendars and blackouts`] : []),
  ];
  if (collisions.length > 0)
    told.push(`${collisions.length} ${collisions.length === 1 ? "minute" : "minutes"} in which tasks meet`);
  terminal.line(told.join(", "));
  for (const note of notes) terminal.aside(`not shown: ${plain(note)}`);
}

const iso = (ms: number) => new Date(ms).toISOString();

export function simulationObject({ simulation, definitions, fromMs, toMs, notes }: Foreseen) {
  const { fires, total, skipped, lost, collisions } = simulation;
  return {
    from: iso(fromMs),
    to: iso(toMs),
    total,
    skipped,
    fires: fires.map((fire) => ({
      at: iso(fire.atMs),
      task: fire.task,
      skipped: fire.skipped,
      marks: marksOf(fire, definitions),
    })),
    lost: lost.map(({ atMs, ...rest }) => ({ at: iso(atMs), ...rest })),
    collisions: collisions.map(({ minuteMs, ...rest }) => ({ minute: iso(minuteMs), ...rest })),
    notes,
  };
}
