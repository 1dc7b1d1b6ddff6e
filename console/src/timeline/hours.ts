/**
 * Groups a timeline's minutes by the days and hours of a zone: a repeated hour (DST) contains the minutes of both passes, a skipped
 * hour none.
 */
import { zoneOf } from "carillon/schedule";

const minuteMs = 60_000;
const dayMs = 86_400_000;
export const stripes = 12;

export interface Hour {
  /** The indices of the hour's minutes, `end` excluded; equal if the hour has no minutes. */
  first: number;
  end: number;
  fires: number;
  /** The most runs in one minute, and that minute. */
  peak: number;
  peakAt: number;
  /** For each 5 minutes, the largest number of runs in one minute. */
  stripes: number[];
}

export interface Day {
  /** Epoch ms of the day's noon, which is on this day in the zone even if the clocks change. */
  noonMs: number;
  hours: Hour[];
}

export function daysOf({ from, fires }: { from: string; fires: number[] }, zoneName: string): Day[] {
  const fromMs = Date.parse(from);
  const zone = zoneOf(zoneName);
  const days = new Map<number, Day>();
  for (const [place, count] of fires.entries()) {
    const atMs = fromMs + place * minuteMs;
    const local = atMs + zone.at(atMs).offset;
    const number = Math.floor(local / dayMs);
    const minute = Math.floor((local - number * dayMs) / minuteMs);
    let day = days.get(number);
    if (!day) {
      const noon = number * dayMs + dayMs / 2;
      day = { noonMs: noon - zone.at(noon).offset, hours: Array.from({ length: 24 }, noHour) };
      days.set(number, day);
    }
    const hour = day.hours[Math.floor(minute / 60)] as Hour;
    if (hour.first === hour.end) hour.first = place;
    hour.end = place + 1;
    hour.fires += count;
    if (count > hour.peak) {
      hour.peak = count;
      hour.peakAt = place;
    }
    const stripe = Math.floor((minute % 60) / (60 / stripes));
    hour.stripes[stripe] = Math.max(hour.stripes[stripe] as number, count);
  }
  return [...days.values()];
}

const noHour = (): Hour => ({ first: 0, end: 0, fires: 0, peak: 0, peakAt: 0, stripes: Array(stripes).fill(0) });

/**
 * A shade from 0 (nothing) to 5 (as full as the fullest). It follows the ratio, because ten more runs are many compared to ten and
 * few compared to a thousand. Small counts get no alarming shade, even if no other count is higher.
 */
export function shadeOf(count: number, most: number): number {
  if (count === 0) return 0;
  const shade = 1 + Math.floor((4.001 * Math.log(count)) / Math.max(Math.log(2), Math.log(most)));
  return Math.min(shade, count < 5 ? 3 : count < 10 ? 4 : 5);
}

/** The range of counts that each shade stands for. */
export function scaleOf(most: number): { shade: number; from: number; to: number }[] {
  const scale: { shade: number; from: number; to: number }[] = [];
  for (let count = 1; count <= Math.min(most, 5_000); count++) {
    const shade = shadeOf(count, most);
    const last = scale.at(-1);
    if (last?.shade === shade) last.to = count;
    else scale.push({ shade, from: count, to: count });
  }
  const last = scale.at(-1);
  if (last) last.to = Math.max(last.to, most);
  return scale;
}

export interface Meeting {
  fires: number;
  tasks: number;
  /** The first minute with this count at this time of day. */
  place: number;
  days: number;
}

const meetingsShown = 8;

/** The times of day at which two or more tasks coincide, not counting tasks that fire in every minute; the fullest first. */
export function meetings(line: { from: string; fires: number[]; tasks: number[] }, zoneName: string): Meeting[] {
  const fromMs = Date.parse(line.from);
  const zone = zoneOf(zoneName);
  const always = line.tasks.reduce((a, b) => Math.min(a, b), Number.MAX_SAFE_INTEGER);
  const times = new Map<number, Meeting>();
  for (const [place, fires] of line.fires.entries()) {
    const tasks = line.tasks[place] ?? 0;
    if (tasks - always < 2) continue;
    const atMs = fromMs + place * minuteMs;
    const time = (atMs + zone.at(atMs).offset) % dayMs;
    const there = times.get(time);
    if (!there || fires > there.fires) times.set(time, { fires, tasks, place, days: 1 });
    else if (fires === there.fires) there.days++;
  }
  return [...times.values()].sort((a, b) => b.fires - a.fires || a.place - b.place).slice(0, meetingsShown);
}

/** The instant of a minute. @param place counted from the line's start */
export const isoIn = (line: { from: string }, place: number): string =>
  new Date(Date.parse(line.from) + place * minuteMs).toISOString();
