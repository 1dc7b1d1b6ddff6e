import { CarillonError } from "../base/errors.ts";
import { definitionText, type TaskDefinition } from "./task.ts";
import type { VersionRecord } from "./task-record.ts";

/** Returns the names of the parts in which two definitions differ, or `asDefined` if only the values below edits differ. */
export function differences(a: TaskDefinition, b: TaskDefinition): string[] {
  const [before, after] = [a, b].map((definition) => JSON.parse(definitionText(definition)) as Record<string, unknown>);
  const differing = Object.keys({ ...before, ...after }).filter(
    (part) => JSON.stringify(before?.[part]) !== JSON.stringify(after?.[part]),
  );
  return differing.length > 1 ? differing.filter((part) => part !== "asDefined") : differing;
}

/**
 * Returns the error for a change that was based on another version than the present one.
 * @param present the present version; undefined if there is no such task
 * @param before the version on which the change was based; undefined if it never existed
 */
export function staleTask(
  name: string,
  expected: number,
  present: VersionRecord | undefined,
  before: VersionRecord | undefined,
): CarillonError {
  if (!present) {
    return new CarillonError(
      "TASK_STALE",
      `there is no task ${name}, and this change was made from its version ${expected}`,
      {
        hint: "Leave the expected version out to make the task anew.",
      },
    );
  }
  const why = present.reason === "" ? "" : ` (${present.reason})`;
  const changed = before ? differences(before.definition, present.definition) : [];
  const since = !before
    ? `; there is no version ${expected}`
    : `; what differs from version ${expected}: ${changed.length > 0 ? changed.join(", ") : "nothing"}`;
  return new CarillonError(
    "TASK_STALE",
    `task ${name} is at version ${present.version}, by ${present.author} at ${new Date(present.changedMs).toISOString()}${why}; ` +
      `this change was made from version ${expected}${since}`,
    { hint: `Read the task again (carillon tasks show ${name}), look at what changed, and repeat the change.` },
  );
}
