/**
 * The events of a calendar feed, from a timeline: one for each minute in which a task fires. Tasks that fire often share one event a day,
 * because thousands of single events would hide the others. See docs/tasks/calendar-feed.md.
 */
import { createHash } from "node:crypto";
import type { WrittenEvent } from "../schedule/ics/written.ts";
import { dayMs } from "../schedule/local-times.ts";
import { compileSchedule } from "../schedule/schedule.ts";
import { type AlikeTasks, firstNames } from "./alike-tasks.ts";
import { firesOf, minuteMs, type Rhythm, type Timeline } from "./timeline.ts";

export interface FeedBounds {
  /** Tasks that fire more often in a day, on average over the feed, share one event a day. */
  perDay: number;
  /** The maximum number of events of single tasks. */
  most: number;
  /** The identity of the cluster, so that no other cluster's events have the same UIDs. */
  clusterId: string;
}

/** Tasks that share one event a day, with the number of their fires on each day from the first on. */
interface Frequent {
  alike: AlikeTasks;
  ofDays: number[];
}

const namesShown = 20;
const dayOf = (ms: number): number => Math.floor(ms / dayMs);

/** @returns the events, and the number of events of single tasks that are left out because they exceed `most` */
export function feedOf(
  line: Timeline,
  { perDay, most, clusterId }: FeedBounds,
): { events: WrittenEvent[]; cut: number } {
  const days = line.fires.length / (dayMs / minuteMs);
  const [rare, frequent]: [Rhythm[], Frequent[]] = [[], []];
  for (const rhythm of line.rhythms)
    if (rhythm.minutes.length <= perDay * days) rare.push(rhythm);
    else frequent.push({ alike: rhythm.alike, ofDays: countedByDay(line, rhythm) });
  for (const steady of line.steady)
    frequent.push({
      alike: steady.alike,
      ofDays: daysOf(line).map(({ fromMs, toMs }) => firesOf(steady, fromMs, toMs - fromMs)),
    });
  const event = (key: string, startMs: number, isDay: boolean, summary: string, description: string): WrittenEvent => {
    const hash = createHash("sha256").update(`${startMs} ${key}`).digest("hex");
    return { uid: `${hash.slice(0, 32)}@${clusterId}`, startMs, isDay, summary, description };
  };
  const { fires, cut } = firesIn(line, rare, most);
  const events = fires.map(({ name, atMs, words }) => event(`task ${name}`, atMs, false, name, words));
  const namesOf = onceFor((alike: AlikeTasks) => firstNames(alike, namesShown));
  for (const [at, { fromMs }] of daysOf(line).entries()) {
    const there = frequent.filter(({ ofDays }) => (ofDays[at] as number) > 0);
    if (there.length === 0) continue;
    const tasks = there.reduce((sum, { alike }) => sum + alike.count, 0);
    const runs = there.reduce((sum, { alike, ofDays }) => sum + alike.count * (ofDays[at] as number), 0);
    events.push(
      event(
        "often",
        dayOf(fromMs) * dayMs,
        true,
        `Often: ${counted(runs, "run")} of ${counted(tasks, "task")}`,
        oftenText(there, at, namesOf),
      ),
    );
  }
  const today = dayOf(line.fromMs) * dayMs;
  if (cut > 0)
    events.push(
      event(
        "cut",
        dayOf(fires.at(-1)?.atMs ?? line.fromMs) * dayMs,
        true,
        `Cut: ${counted(cut, "more event")} from here on`,
        "Narrow the feed: by task, group, label or namespace, or to fewer days.",
      ),
    );
  // A calendar without any event is invalid.
  if (events.length === 0)
    events.push(event("none", today, true, `No task fires in the next ${counted(days, "day")}`, ""));
  events.sort((a, b) => a.startMs - b.startMs || (a.summary < b.summary ? -1 : 1));
  return { events, cut };
}

const counted = (count: number, what: string): string =>
  `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

/** Returns the days (UTC) of the timeline; the first one and the last one may be parts of days. */
function daysOf({ fromMs, fires }: Timeline): { fromMs: number; toMs: number }[] {
  const endMs = fromMs + fires.length * minuteMs;
  const first = dayOf(fromMs);
  return Array.from({ length: dayOf(endMs - 1) - first + 1 }, (_, at) => ({
    fromMs: Math.max(fromMs, (first + at) * dayMs),
    toMs: Math.min(endMs, (first + at + 1) * dayMs),
  }));
}

function countedByDay(line: Timeline, { minutes }: Rhythm): number[] {
  const ofDays: number[] = daysOf(line).map(() => 0);
  for (const minute of minutes) (ofDays[dayOf(line.fromMs + minute * minuteMs) - dayOf(line.fromMs)] as number)++;
  return ofDays;
}

/** Returns a function that calls `make` once for each key. */
function onceFor<Key, Made>(make: (key: Key) => Made): (key: Key) => Made {
  const made = new Map<Key, Made>();
  return (key) => {
    if (!made.has(key)) made.set(key, make(key));
    return made.get(key) as Made;
  };
}

/** Returns the first `most` fires, by time and name; fires of a task in the same minute count as one. */
function firesIn(line: Timeline, rhythms: readonly Rhythm[], most: number) {
  const ofMinute = new Float64Array(line.fires.length);
  for (const { alike, minutes } of rhythms)
    for (const minute of distinct(minutes)) ofMinute[minute] = (ofMinute[minute] as number) + alike.count;
  // Only the fires of the first minutes are listed and sorted: there may be 300,000 others.
  let [until, count] = [0, 0];
  for (; until < ofMinute.length && count < most; until++) count += ofMinute[until] as number;
  const first = rhythms.flatMap(({ alike, minutes }) =>
    distinct(minutes)
      .filter((minute) => minute < until)
      .map((minute) => ({ alike, minute })),
  );
  first.sort((a, b) => a.minute - b.minute);
  const toldOf = onceFor((alike: AlikeTasks) => ({
    names: firstNames(alike, most),
    words: compileSchedule(alike.task.definition.schedule).words(),
  }));
  const fires: { name: string; atMs: number; words: string }[] = [];
  for (const { alike, minute } of first) {
    if (fires.length >= most) break;
    const { names, words } = toldOf(alike);
    const atMs = line.fromMs + minute * minuteMs;
    for (const name of names.slice(0, most - fires.length)) fires.push({ name, atMs, words });
  }
  return { fires, cut: ofMinute.reduce((sum, events) => sum + events, 0) - fires.length };
}

const distinct = (ascending: readonly number[]): number[] =>
  ascending.filter((number, at) => number !== ascending[at - 1]);

/** Lists the tasks that fire most often on a day, and how often. */
function oftenText(frequent: readonly Frequent[], at: number, namesOf: (alike: AlikeTasks) => string[]): string {
  const most = [...frequent].sort((a, b) => (b.ofDays[at] as number) - (a.ofDays[at] as number));
  const shown = most
    .slice(0, namesShown)
    .flatMap(({ alike, ofDays }) => namesOf(alike).map((name) => `${name}: ${counted(ofDays[at] as number, "run")}`));
  const more = frequent.reduce((sum, { alike }) => sum + alike.count, 0) - Math.min(namesShown, shown.length);
  return [...shown.slice(0, namesShown), ...(more > 0 ? [`and ${counted(more, "more task")}`] : [])].join("\n");
}
