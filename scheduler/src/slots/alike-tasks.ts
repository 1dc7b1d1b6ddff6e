import type { TaskRecord } from "../task/task-record.ts";

/**
 * Tasks that fire at the same times: their schedules, calendars, blackouts, zone rules, recorded slots and pauses are equal, and none has
 * jitter, which differs between tasks. The names are stored as one text until some are needed, because half a million separate strings
 * would take far more memory.
 */
export interface AlikeTasks {
  /** Any one of these tasks. */
  task: TaskRecord;
  count: number;
  /** The names of all of these tasks in any order, separated by spaces, which names cannot contain. */
  names: string;
}

/** Returns the first `most` names in the order of code units. */
export function firstNames({ names }: Pick<AlikeTasks, "names">, most: number): string[] {
  const first: string[] = [];
  for (const name of names.split(" ")) {
    const last = first.at(-1);
    if (first.length >= most && (last === undefined || name >= last)) continue;
    if (first.length >= most) first.pop();
    let at = first.length;
    while (at > 0 && (first[at - 1] as string) > name) at--;
    first.splice(at, 0, name);
  }
  return first;
}
