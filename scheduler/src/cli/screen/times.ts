import { type ScheduleSpec, zoneNameOf } from "../../schedule/schedule.ts";
import { type Zone, zoneOf } from "../../schedule/zone.ts";

/** The time zone of this machine; UTC if the runtime does not know that zone. */
export function localZone(): Zone {
  try {
    return zoneOf(Intl.DateTimeFormat().resolvedOptions().timeZone);
  } catch {
    // TZ names a zone that the runtime does not know; Node itself then uses UTC.
    return zoneOf("UTC");
  }
}

/** The zone in which a schedule's times are shown: the schedule's own zone, or this machine's zone if the schedule has none. */
export function zoneOfSpec(spec: ScheduleSpec): Zone {
  const name = zoneNameOf(spec);
  return name === null ? localZone() : zoneOf(name);
}

const digits = (value: number, length = 2) => String(value).padStart(length, "0");

/** Formats a UTC offset, in ms, as text: "+02:00". */
export function offsetText(offsetMs: number): string {
  const minutes = Math.round(Math.abs(offsetMs) / 60_000);
  return `${offsetMs < 0 ? "-" : "+"}${digits(Math.floor(minutes / 60))}:${digits(minutes % 60)}`;
}

const localParts = (ms: number, zone: Zone) => new Date(ms + zone.at(ms).offset).toISOString();

/** Formats the local time of day with milliseconds: "14:03:20.001". */
export const clockText = (ms: number, zone: Zone): string => localParts(ms, zone).slice(11, 23);

/** Formats a local time with its UTC offset: "2026-03-29 02:30:00 +02:00"; milliseconds are included if they are not zero. */
export function timeText(ms: number, zone: Zone): string {
  const text = localParts(ms, zone);
  const fraction = text.slice(19, 23);
  return `${text.slice(0, 10)} ${text.slice(11, 19)}${fraction === ".000" ? "" : fraction} ${offsetText(zone.at(ms).offset)}`;
}

/**
 * Formats a time briefly: "14:03:20" on the local day of `nowMs`, "Nov 28 00:00" on other days of its year, "2025-11-28" in other
 * years.
 */
export function briefText(ms: number, nowMs: number, zone: Zone): string {
  const text = localParts(ms, zone);
  if (text.slice(0, 10) === localParts(nowMs, zone).slice(0, 10)) return text.slice(11, 19);
  const month = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ")[Number(text.slice(5, 7)) - 1];
  const sameYear = text.slice(0, 4) === localParts(nowMs, zone).slice(0, 4);
  return sameYear ? `${month} ${text.slice(8, 10)} ${text.slice(11, 16)}` : text.slice(0, 10);
}

/** Formats a duration, in ms: "3 ms", "1.2 s", "2 min 3 s", "5 h", "12 d". */
export function spanText(ms: number): string {
  if (ms < 0) return `−${spanText(-ms)}`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return seconds % 60 === 0 ? `${minutes} min` : `${minutes} min ${seconds % 60} s`;
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 10) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  if (hours < 48) return `${hours} h`;
  const days = Math.floor(hours / 24);
  return days < 730 ? `${days} d` : `${Math.floor(days / 365)} years`;
}

/** Formats a time relative to `nowMs`: "in 5 s", "3 min ago"; "now" if the difference is below 500 ms. */
export function ageText(ms: number, nowMs: number): string {
  const away = ms - nowMs;
  if (Math.abs(away) < 500) return "now";
  return away > 0 ? `in ${spanText(away)}` : `${spanText(-away)} ago`;
}
