/** MCP tools that compute future slots from definitions that the API returns: of a schedule, of tasks, and of an edited task. */
import { z } from "zod";
import type { Client } from "../../api/client.ts";
import { name, taskName, text, time } from "../../api/contract/route.ts";
import { isoTime } from "../../api/run-json.ts";
import { CarillonError } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import { scheduleOfText } from "../../schedule/phrase/schedule-text.ts";
import { compileSchedule, nextSlots, zoneNameOf } from "../../schedule/schedule.ts";
import { judgedSlot } from "../../slots/coming-slots.ts";
import { coming, plannedSlots } from "../../slots/upcoming-slots.ts";
import { edited, editedParts } from "../../task/edits.ts";
import { writtenSchedule } from "../../task/kinds/schedule.ts";
import type { TaskDefinition, TaskOptions } from "../../task/task.ts";
import type { TaskRecord } from "../../task/task-record.ts";
import { differences } from "../../task/versions.ts";
import { serverTasks } from "../cluster/by-server.ts";
import { taskRecord } from "../cluster/records.ts";
import { simulatedTasks, simulationObject, simulationOf } from "../tasks/simulate.ts";
import { inputOf, readingTool, type Tool } from "./tool.ts";

const json = z.unknown();
const dayMs = 86_400_000;
/** The number of slots that are shown for the definition before an edit, and for the definition after it. */
const comparedSlots = 10;

const nowOf = async (api: Client): Promise<number> => Date.parse((await api.getCluster()).now);

const previewSchedule = readingTool({
  name: "preview_schedule",
  title: "Preview a schedule",
  description:
    'A schedule in words, with its next slots: a cron ("0 9 * * 1-5"), "@every 1h30m", an RRULE, or a phrase ("every weekday at 9:30"). No task is needed; calendars and blackouts are not applied.',
  input: z.strictObject({
    schedule: text(limits.ruleTextLength).min(1),
    zone: name(100).default("UTC").describe("The time zone of a cron, rule or phrase."),
    task: taskName.optional().describe("The name of the task, for a cron with an H."),
    after: time.optional().describe("Default: now."),
    count: z.int().min(1).max(limits.mcpSlots).default(10),
  }),
  output: z.strictObject({ schedule: json, zone: z.string(), words: z.string(), next: z.array(time) }),
  async call({ schedule, zone, task, after, count }, { api }) {
    const spec = scheduleOfText(schedule, { zone, name: task });
    const afterMs = after === undefined ? await nowOf(api) : Date.parse(after);
    const next = nextSlots(spec, afterMs, count).map(isoTime);
    const words = compileSchedule(spec).words();
    return {
      answer: { schedule: writtenSchedule(spec), zone: zoneNameOf(spec) ?? "UTC", words, next },
      says: `${next.length} slots.`,
    };
  },
});

const simulate = readingTool({
  name: "simulate",
  title: "Simulate tasks between two times",
  description:
    "The slots of some tasks between two times, with calendars, blackouts, pauses and changes of clocks; local times that do not exist; and minutes in which tasks coincide. For all tasks of a span see list_firing.",
  input: z.strictObject({
    tasks: z.array(taskName).min(1).max(limits.mcpSimulatedTasks),
    from: time.optional().describe("Default: now."),
    to: time.optional().describe("Default: a day after `from`."),
    limit: z.int().min(1).max(limits.mcpSlots).default(50).describe("Slots shown at most; `total` counts all."),
  }),
  output: z.strictObject({
    from: time,
    to: time,
    total: z.int(),
    skipped: z.int(),
    fires: z.array(z.strictObject({ at: time, task: taskName, skipped: z.boolean(), marks: z.string() })),
    lost: z.array(z.strictObject({ at: time, task: taskName, local: z.string(), count: z.int() })),
    collisions: z.array(z.strictObject({ minute: time, fires: z.int(), tasks: z.array(taskName) })),
    notes: z.array(z.string()),
  }),
  async call({ tasks, from, to, limit }, { api }) {
    const fromMs = from === undefined ? Math.ceil(await nowOf(api)) : Date.parse(from);
    const toMs = to === undefined ? fromMs + dayMs : Date.parse(to);
    if (toMs <= fromMs)
      throw new CarillonError("OPTION_INVALID", "`to` is not after `from`", {
        path: "to",
        hint: "For example from 2027-03-27T00:00:00Z to 2027-03-29T00:00:00Z.",
      });
    const { tasks: firing, notes } = simulatedTasks(await serverTasks(api).records([...new Set(tasks)]));
    const answer = simulationObject(simulationOf(firing, notes, { fromMs, toMs, limit }));
    return { answer, says: `${answer.total} slots, of which ${answer.skipped} are skipped.` };
  },
});

const slots = z.array(z.strictObject({ slot: time, due: time.nullable(), note: z.string() }));

export const editPreview = z.strictObject({
  task: taskName,
  version: z.int().describe("The version that the edit is made from."),
  changes: z.array(z.strictObject({ part: z.string(), was: json, is: json })),
  edited: z.array(z.string()).describe("Parts that would then be edited by hand."),
  before: slots.describe(`The next ${comparedSlots} slots as they are.`),
  after: slots.describe("The next slots as they would be."),
});

/**
 * Computes the changes that an edit would make, without making them.
 * @throws TASK_UNKNOWN, CALENDAR_UNKNOWN, and the errors of invalid options
 */
export async function previewOfEdit(
  api: Client,
  task: string,
  options: TaskOptions,
): Promise<z.output<typeof editPreview>> {
  const [found, nowMs] = await Promise.all([api.getTask({ task }), nowOf(api)]);
  const recordOf = async (definition: TaskDefinition): Promise<TaskRecord> => {
    const { calendar } = definition;
    const days = calendar && (await api.getCalendar({ calendar: calendar.name }));
    return taskRecord({ ...found, definition: definition as never }, days);
  };
  const present = await recordOf(found.definition as unknown as TaskDefinition);
  const definition = edited(present.definition, options);
  const changed = await recordOf(definition);
  const [was, is] = [present.definition, definition] as unknown as Record<string, unknown>[];
  return {
    task,
    version: present.version,
    changes: differences(present.definition, definition).map((part) => ({
      part,
      was: was?.[part] ?? null,
      is: is?.[part] ?? null,
    })),
    edited: editedParts(definition),
    before: slotsOf(present, nowMs),
    after: slotsOf(changed, nowMs),
  };
}

function slotsOf(record: TaskRecord, nowMs: number): z.output<typeof slots> {
  const { schedule } = record.definition;
  // The slots of a fixed delay depend on when its runs end, and a task that is paused without an end has none.
  if ((schedule.type === "every" && schedule.mode === "delay") || (record.paused && record.paused.untilMs === null))
    return [];
  return plannedSlots(record, nowMs, comparedSlots).map((slotMs) => {
    const { dueMs, skipped, note = "" } = judgedSlot(coming(record), slotMs);
    return {
      slot: isoTime(slotMs),
      due: skipped === undefined ? isoTime(dueMs) : null,
      note: skipped === undefined ? note : `skipped: ${skipped}`,
    };
  });
}

const { task, options } = inputOf("editTask").shape as { task: z.ZodType<string>; options: z.ZodType<TaskOptions> };

const previewEdit = readingTool({
  name: "preview_edit",
  title: "Preview an edit of a task",
  description:
    "What an edit of a task would change: the parts that differ, and the next slots before and after. Nothing is changed. The options are those of a task's definition; fields of a retry or misfire policy that are left out stay as they are.",
  input: z.strictObject({ task, options }),
  output: editPreview,
  async call({ task, options }, { api }) {
    const answer = await previewOfEdit(api, task, options);
    return {
      answer,
      says: `${answer.changes.length} parts of version ${answer.version} would change. Nothing was changed.`,
    };
  },
});

export const lookAheadTools: readonly Tool[] = [previewSchedule, simulate, previewEdit];
