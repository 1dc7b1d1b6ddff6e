/**
 * Groups a timeline's minutes by the days and hours of a zone: a repeated hour (DST) contains the minutes of both passes, a skipped
 * hour none.
 */
import { zoneOf } from "carillon/schedule";

const minuteMs = 60_000;
const dayMs = 86_400_000;
export const stripes = 12;

export interface Hour {
  /** The range of the hour's minutes, as indices from the start of the timeline; `end` is excluded. Equal if the hour has no minutes. */
  first: number;
  end: number;
  fires: number;
  /** The largest number of runs in one minute of the hour. `peakAt` is the index of the first such minute; 0 if the hour has no runs. */
  peak: number;
  peakAt: number;
  /** The largest number of runs in one minute, for each 5 minutes of the hour. */
  stripes: number[];
}

export interface Day {
  /** Epoch ms of noon on this day in the zone. Noon is on this day even if the clocks change. */
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
 * The shade for a count: 0 for none, 1 to 5 else. The scale is logarithmic up to the largest count (`most`), because ten more runs
 * matter beside ten but not beside a thousand. Counts below 5 get at most shade 3, counts below 10 at most shade 4.
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
  /** The index of the first minute with this count at this time of day. */
  place: number;
  days: number;
}

const meetingsShown = 8;

/**
 * Returns the times of day with the most runs in one minute, largest number first, if at least two tasks fire in that minute. The
 * smallest number of tasks in any minute is subtracted first, so that tasks that fire in every minute do not count.
 */
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

/** Converts the index of a minute into ISO form. @param place minutes since the start of the timeline */
export const isoIn = (line: { from: string }, place: number): string =>
  new Date(Date.parse(line.from) + place * minuteMs).toISOString();
