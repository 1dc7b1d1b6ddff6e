import type { Change } from "../base/change.ts";
import type { Calendar, CalendarContent } from "../schedule/calendar.ts";

/** Names of days in calendar files, by date. */
export type DayNames = Readonly<Record<string, string>>;

export interface CalendarRecord extends Calendar {
  /** Names of its days and of the previous version's days, if known. */
  names: DayNames;
  author: string;
  reason: string;
  changedMs: number;
  /** Names of the tasks that use it. */
  tasks: string[];
}

export interface CalendarStore {
  /**
   * Stores the calendar, or its next version when it differs; the tasks that use it are replanned in the same transaction, as after an
   * edit. Repeatable: an equal calendar changes nothing. Names are stored beside the versions; a change of names makes no new version.
   * @param expectedVersion rejects with CALENDAR_STALE unless this is the stored version; 0: unless there is none; default: any version
   * @param mayShrink false: reject a version that keeps fewer than half of the coming holidays
   * @throws CALENDAR_INVALID, CALENDAR_STALE, CALENDAR_SHRINKS
   */
  set(
    name: string,
    content: CalendarContent & { names?: DayNames },
    change: Change,
    expectedVersion?: number | null,
    mayShrink?: boolean,
  ): Promise<{ calendar: Calendar; changed: boolean; tasks: string[] }>;
  /** @param version default: the present one @throws CALENDAR_UNKNOWN */
  find(name: string, version?: number): Promise<CalendarRecord>;
  list(): Promise<CalendarRecord[]>;
  /** @throws CALENDAR_UNKNOWN, CALENDAR_USED */
  remove(name: string, change: Change): Promise<void>;
}
