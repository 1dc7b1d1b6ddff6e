/** The content of a calendar, as it is read and as it is drafted. */
import { outdate } from "../api/answers.ts";
import type { Answer } from "../api/call.ts";
import type { Content } from "./days.ts";

export type Calendar = Answer<"getCalendar">;
/** A draft, and what is added to it by a file that the server reads. */
export interface Drafted extends Content {
  /** As it was read when the draft was begun: what differs from it is the change, and it is stored as the version after it. */
  from: Calendar;
  ics?: string | undefined;
}

export const contentOf = ({ zone, weekend, holidays }: Content): Content => ({ zone, weekend, holidays });

export const outdateCalendars = () =>
  outdate("getCalendar", "listCalendars", "getTask", "listTasks", "listUpcomingSlots", "listComing");
