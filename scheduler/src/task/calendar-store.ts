import type { Change } from "../base/change.ts";
import type { Calendar, CalendarContent } from "../schedule/calendar.ts";

/** What files call days, by date. */
export type DayNames = Readonly<Record<string, string>>;

export interface CalendarRecord extends Calendar {
  /** Of its days and those of the version before, where they are known. */
  names: DayNames;
  author: string;
  reason: string;
  changedMs: number;
  /** Names of the tasks that use it. */
  tasks: string[];
}

export interface CalendarStore {
  /**
   * Stores the calendar, or its next version when it differs; the tasks that use it are planned anew in the same transaction,
   * as by an edit. Repeatable: an equal one changes nothing.
   * Names are kept beside the versions, and make no other version.
   * @param expectedVersion refuse with CALENDAR_STALE unless this is the stored version; 0: unless there is none; default any
   * @param mayShrink false: refuse a version that keeps fewer than half of the coming holidays
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
