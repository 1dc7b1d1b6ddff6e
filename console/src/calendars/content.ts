/** The editable content of a calendar, as stored or as a draft. */
import { outdate } from "../api/answers.ts";
import type { Answer } from "../api/call.ts";
import type { Words } from "../messages/words.ts";
import { toast } from "../parts/state/toasts.tsx";
import type { Content } from "./days.ts";

export type Calendar = Answer<"getCalendar">;
/** A draft of a calendar, with the iCalendar file that the server adds to it. */
export interface Drafted extends Content {
  /** The stored calendar that the draft was started from. The draft is saved only if the stored version is still this version. */
  from: Calendar;
  ics?: string | undefined;
}

export const contentOf = ({ zone, weekend, holidays }: Content): Content => ({ zone, weekend, holidays });

const noticesShown = 5;

/** Shows a toast with the first parts of the file that the server could not import, and the number of the others. */
export function toastNotices({ notices }: Answer<"setCalendar">, { t }: Pick<Words, "t">): void {
  if (notices.length === 0) return;
  const lines = notices
    .slice(0, noticesShown)
    .map(({ line, message }) => t("calendar.icsLine", { line: String(line), message }));
  const left = notices.length - lines.length;
  const more = left === 0 ? [] : [t("bulk.andMore", { n: left })];
  toast({ failed: true, stays: true, text: [t("calendar.icsPartly"), ...lines, ...more].join(" · ") });
}

export const outdateCalendars = () =>
  outdate("getCalendar", "listCalendars", "getTask", "listTasks", "listUpcomingSlots", "listComing");
