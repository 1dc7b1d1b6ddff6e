import { CarillonError } from "../../base/errors.ts";
import { manual } from "../../schedule/schedule.ts";
import { nextOf } from "../../slots/upcoming-slots.ts";
import { nameOfSchedule } from "../../task/schedule-of.ts";
import { defineTask } from "../../task/task.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { ageText, timeText, zoneOfSpec } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";
import { optionsOf } from "./edit-task.ts";
import { parsePayload } from "./tasks.ts";

interface Named {
  name: string;
  schedule: string;
}

export interface ScheduleTaskOptions extends CommonOptions {
  zone?: string;
  payload?: string;
  set?: [string, string][];
  reason?: string;
}

export function scheduleTask(
  { name: of, schedule, when }: Named & { when: string },
  { zone, payload, set = [], reason = "", ...options }: ScheduleTaskOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const given: [string, string][] = [
    ...set,
    ["schedule", when],
    ...(zone === undefined ? [] : [["zone", zone] as [string, string]]),
  ];
  const definition = defineTask(nameOfSchedule(of, schedule), {
    of,
    ...optionsOf(given, { schedule: manual }),
    ...(payload === undefined ? {} : { slotPayload: parsePayload(payload) }),
  });
  return withCluster({ ...options, reason }, async ({ cluster }) => {
    const { name } = definition;
    const { version, changed } = await cluster.tasks.define(definition, reason);
    const { record } = await cluster.tasks.find(name);
    const next = nextOf(record, cluster.nowMs());
    if (terminal.json) {
      terminal.object({ task: name, version, changed, next: next === null ? null : new Date(next).toISOString() });
      return exitCodes.ok;
    }
    const { schedule: spec } = record.definition;
    terminal.line(
      changed ? `${plain(name)} is at version ${version}` : `${plain(name)} is so already, at version ${version}`,
    );
    const then =
      next === null
        ? "no slot of it is to come"
        : `next: ${timeText(next, zoneOfSpec(spec))}, ${ageText(next, cluster.nowMs())}`;
    terminal.line(`  ${then}`);
    return exitCodes.ok;
  });
}

export function unscheduleTask(
  { name: of, schedule }: Named,
  { reason = "", ...options }: CommonOptions & { reason?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  return withCluster({ ...options, reason }, async ({ cluster }) => {
    const name = nameOfSchedule(of, schedule);
    const { record } = await cluster.tasks.find(name);
    if (record.definition.of !== of)
      throw new CarillonError("TASK_INVALID", `${name} is a task of its own, and no schedule of ${of}`, {
        hint: `See the schedules that there are: carillon tasks list --of ${of}`,
      });
    await cluster.tasks.remove(name, reason);
    if (terminal.json) terminal.object({ task: name, removed: true });
    else terminal.line(`${plain(name)} is removed; its history stays`);
    return exitCodes.ok;
  });
}
