import { iso } from "../../api/run-json.ts";
import type { Clock } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
import { nextOf } from "../../slots/upcoming-slots.ts";
import { awaitRecall } from "../../store/recall.ts";
import type { Store } from "../../store/store.ts";
import { edited, editedParts, partCalled, restored, reverted, saidAnew } from "../../task/edits.ts";
import { defineTask, type TaskDefinition } from "../../task/task.ts";
import type { TaskRecord } from "../../task/task-record.ts";
import { readGiven } from "../../task/written.ts";
import type { Call, Some } from "../call.ts";
import { changeOf, checkUse } from "./changes.ts";
import { changesOf, definitionAt, wholeTask } from "./task-calls.ts";

/** A name that no bundle has. */
const noBundle = "";

export function taskChangeCalls(
  store: Store,
  clock: Clock,
): Some<"createTask" | "defineTask" | "editTask" | "revertTask" | "removeTask" | "pauseTask" | "resumeTask"> {
  /** Changes a task. @param make returns the new definition, given the current task */
  const change = async (
    name: string,
    call: Call,
    reason: string | undefined,
    make: (present: TaskRecord) => TaskDefinition | Promise<TaskDefinition>,
  ) => {
    const before = await store.tasks.byName(name);
    // If the caller's If-Match names another version than the current one, `save` refuses the change.
    const expected = call.ifVersion ?? before.version;
    const definition = expected === before.version ? await make(before) : before.definition;
    checkUse(definition, before.definition, call);
    const { record, changed } = await store.tasks.save(definition, expected, changeOf(call, reason));
    return {
      name,
      version: record.version,
      changed,
      edited: editedParts(record.definition) as string[],
      changes: changed ? changesOf(before.definition, record.definition) : [],
    };
  };
  /** The last version of a removed task, from which the versions continue if it is created again; 0 if there was no such task. */
  const versionGone = async (task: string): Promise<number> => {
    const [row] = await store.applied.read([task], noBundle);
    return row?.removed ? row.version : 0;
  };

  return {
    async createTask({ task, options, reason }, call) {
      const definition = defineTask(task, readGiven(options));
      checkUse(definition, undefined, call);
      const { record, changed } = await store.tasks
        .save(definition, await versionGone(task), changeOf(call, reason))
        .catch((error: unknown) => {
          throw error instanceof CarillonError && error.code === "TASK_STALE" ? taken(task) : error;
        });
      if (!changed) throw taken(task);
      return wholeTask(store, record, call.nowMs);
    },

    async defineTask({ task, options, reason }, call) {
      const [row] = await store.applied.read([task], noBundle);
      const before = row && !row.removed ? row.definition : undefined;
      const definition = saidAnew(defineTask(task, readGiven(options)), before);
      checkUse(definition, before, call);
      // If-Match "0" means that the task must not exist. Its versions continue after those of a removed task of the same name.
      const none = before === undefined && call.ifVersion === 0;
      const expected = none ? (row?.version ?? 0) : (call.ifVersion ?? row?.version ?? 0);
      const { record, changed } = await store.tasks.save(definition, expected, changeOf(call, reason));
      return {
        name: task,
        version: record.version,
        changed,
        edited: editedParts(record.definition) as string[],
        changes: changed && before ? changesOf(before, record.definition) : [],
      };
    },

    editTask: ({ task, options, reason }, call) =>
      change(task, call, reason, ({ definition }) => edited(definition, readGiven(options))),

    revertTask: ({ task, parts, version, reason }, call) =>
      change(task, call, reason, async ({ taskId, definition }) => {
        if (version === undefined) return reverted(definition, wantedParts(task, definition, parts));
        if (parts !== undefined)
          throw new CarillonError("OPTION_INVALID", "parts and a version were given", { hint: "Give one of the two." });
        const found = await store.browse.versionsAt(taskId, [version]);
        return restored(definition, definitionAt(found, task, version));
      }),

    async removeTask({ task, reason }, call) {
      const { recalled } = await store.tasks.remove(task, changeOf(call, reason), call.ifVersion);
      await awaitRecall(store.runs, clock, recalled);
      return undefined;
    },

    async pauseTask({ task, reason, until }, call) {
      const untilMs = until === undefined ? null : Date.parse(until);
      const { recalled, held, skipped } = await store.tasks.pause(task, { ...changeOf(call, reason), untilMs });
      return { name: task, paused: true, running: await awaitRecall(store.runs, clock, recalled), held, skipped };
    },

    async resumeTask({ task, reason }, call) {
      await store.tasks.resume(task, changeOf(call, reason));
      const record = await store.tasks.byName(task);
      return { name: task, paused: false, next: iso(nextOf(record, call.nowMs)) };
    },
  };
}

const taken = (name: string) =>
  new CarillonError("TASK_NAME_TAKEN", `there is a task ${name} already`, { hint: "Edit it, or choose another name." });

function wantedParts(task: string, definition: TaskDefinition, names: string[] | undefined) {
  const there = editedParts(definition);
  const wanted = names === undefined ? there : names.map((name) => partCalled(name) ?? name);
  const wrong = wanted.find((part) => !(there as string[]).includes(part));
  if (wrong === undefined) return wanted as typeof there;
  throw new CarillonError("OPTION_INVALID", `${JSON.stringify(wrong)} of task ${task} was not edited`, {
    hint: there.length === 0 ? "Nothing of it was." : `Edited are: ${there.join(", ")}.`,
  });
}
