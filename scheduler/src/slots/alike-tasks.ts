import type { TaskRecord } from "../task/task-record.ts";

/**
 * Tasks that fire at the same times: their schedules, calendars, blackouts, zone rules, accounted slots and pauses are equal, and none has a
 * jitter, which is drawn for each task separately. The names stay one text until some are needed: half a million of them as values of their
 * own took ten times the memory.
 */
export interface AlikeTasks {
  /** One of them. */
  task: TaskRecord;
  count: number;
  /** The names of all of them in any order, separated by spaces, which no name contains. */
  names: string;
}

/** The first names by code unit, in order. */
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
