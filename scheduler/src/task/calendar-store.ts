import type { Change } from "../base/change.ts";
import type { Calendar, CalendarContent } from "../schedule/calendar.ts";

/** The names of days from calendar files, by date. */
export type DayNames = Readonly<Record<string, string>>;

export interface CalendarRecord extends Calendar {
  /** The names of this version's days and, if they are known, of the previous version's days. */
  names: DayNames;
  author: string;
  reason: string;
  changedMs: number;
  /** The names of the tasks that use the calendar. */
  tasks: string[];
}

export interface CalendarStore {
  /**
   * Stores the calendar, or its next version if it differs. The tasks that use it are planned again in the same transaction, as
   * after an edit. It can be repeated: an equal calendar changes nothing. Names of days are stored separately; a change of names
   * does not create a version.
   * @param expectedVersion the stored version, 0 if there is none; if another version is stored, the call rejects with
   * CALENDAR_STALE. Default: any version
   * @param mayShrink false to reject a version that has fewer than half of the coming holidays
   * @throws CALENDAR_INVALID, ZONE_UNKNOWN, CALENDAR_STALE, CALENDAR_SHRINKS
   */
  set(
    name: string,
    content: CalendarContent & { names?: DayNames },
    change: Change,
    expectedVersion?: number | null,
    mayShrink?: boolean,
  ): Promise<{ calendar: Calendar; changed: boolean; tasks: string[] }>;
  /** @param version default: the present version @throws CALENDAR_UNKNOWN */
  find(name: string, version?: number): Promise<CalendarRecord>;
  list(): Promise<CalendarRecord[]>;
  /**
   * @param sees true for a task that the error may name; default: every task
   * @throws CALENDAR_UNKNOWN if there is no such calendar, CALENDAR_USED if a task uses it
   */
  remove(name: string, change: Change, sees?: (task: string) => boolean): Promise<void>;
}
