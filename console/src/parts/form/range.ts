/** Ranges of time by name, such as the last hour. The address keeps the name, so that a link means the hour before it is opened. */
import { instantAt, zoneOf } from "carillon/schedule";
import type { Filter } from "../../filter.ts";
import { localText } from "./local-time.ts";

export const ranges = ["1h", "24h", "today", "yesterday", "7d"] as const;
export type Range = (typeof ranges)[number];
export const isRange = (text: string | undefined): text is Range =>
  (ranges as readonly (string | undefined)[]).includes(text);

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/**
 * The length of each sliding range, and the step to which its start is rounded down. Larger steps cause fewer requests: each new
 * start is a new request, and the list returns to its first page.
 */
const spans: Partial<Record<Range, { spanMs: number; stepMs: number }>> = {
  "1h": { spanMs: hourMs, stepMs: 300_000 },
  "24h": { spanMs: dayMs, stepMs: hourMs },
  "7d": { spanMs: 7 * dayMs, stepMs: hourMs },
};

export interface Bounds {
  since?: string;
  until?: string;
}

const isTime = (text: string | undefined): text is string => text !== undefined && !Number.isNaN(Date.parse(text));
const iso = (ms: number) => new Date(ms).toISOString();

/**
 * The time range of the filters in the page's address. Invalid times are ignored.
 * @param zone the time zone that determines when a day begins
 */
export function boundsOf({ within, since, until }: Filter, nowMs: number, zone: string): Bounds {
  if (!isRange(within))
    return {
      ...(isTime(since) ? { since: iso(Date.parse(since)) } : {}),
      ...(isTime(until) ? { until: iso(Date.parse(until)) } : {}),
    };
  const span = spans[within];
  if (span) return { since: iso(Math.floor(nowMs / span.stepMs) * span.stepMs - span.spanMs) };
  const today = Date.parse(`${localText(nowMs, zone).slice(0, 10)}T00:00:00Z`);
  const midnight = (days: number) => iso(instantAt(zoneOf(zone), today + days * dayMs));
  return within === "today" ? { since: midnight(0) } : { since: midnight(-1), until: midnight(0) };
}
