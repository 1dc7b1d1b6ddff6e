import type { timelineRoutes } from "../../api/contract/timeline.ts";
import type { Read } from "../../api/contract.ts";
import { isoTime } from "../../api/run-json.ts";
import { labelsOfTexts } from "../../api/run-labels.ts";
import { type Clock, pause } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import type { OperationFilter } from "../../run/operations.ts";
import { writeIcs } from "../../schedule/ics/written.ts";
import { compileSchedule } from "../../schedule/schedule.ts";
import { feedOf } from "../../slots/calendar-feed.ts";
import { suggestSpread } from "../../slots/spread.ts";
import { firingIn, foretell, minuteMs, type Timeline } from "../../slots/timeline.ts";
import type { Store } from "../../store/store.ts";
import type { TaskChange } from "../../task/task-record.ts";
import type { Call, Some } from "../call.ts";

type Whose = Pick<Read<"getTimeline">, "days" | "matching" | "group" | "namespace"> & Pick<OperationFilter, "labels">;

const dayMinutes = 1_440;
/** How long a timeline is cached, in ms. Each use also checks whether tasks have changed. */
const keptMs = 60_000;
const keptMost = 8;
/** How many iCalendar texts are cached with a timeline. Subscribers that want the same tasks usually give the same `perDay`. */
const feedsMost = 4;
/** The length of the pauses in ms while a timeline is built, so that the event loop can handle other requests. */
const turnMs = 0.05;
/** A change may become visible up to this many ms after its timestamp, which comes from the node that made the change. */
const overlapMs = 5_000;

interface Kept {
  line: Promise<Timeline>;
  /** The iCalendar texts written from this timeline. The key contains the other inputs of the text: `perDay` and the calendar's name. */
  feeds: Map<string, Promise<string>>;
  builtMs: number;
  /** The changes of the last `overlapMs` that were visible before the tasks were read; any other change makes the timeline outdated. */
  seen: Promise<Set<string>>;
}

const markOf = ({ taskId, version, changedMs }: TaskChange) => `${taskId} ${version} ${changedMs}`;

/** Adds an entry as the newest one, and removes the oldest ones beyond `most`. */
function keepLast<Value>(cache: Map<string, Value>, most: number, key: string, value: Value): void {
  cache.delete(key);
  cache.set(key, value);
  for (const oldest of [...cache.keys()].slice(0, -most)) cache.delete(oldest);
}

/**
 * The API calls about the timeline of many tasks. A timeline is built once for all callers who view the same part of it, and again when a
 * task has changed or after `keptMs`. A change of a calendar is therefore visible within a minute.
 */
export function timelineCalls(store: Store, clock: Clock): Some<keyof typeof timelineRoutes> {
  const kept = new Map<string, Kept & { untilMono: number }>();

  const build = async (whose: Whose, namespaces: readonly string[] | null, nowMs: number) => {
    const fromMs = Math.floor(nowMs / minuteMs) * minuteMs;
    const { matching = null, group = null, labels } = whose;
    const alike = await store.browse.alikeTasks({ matching, group, namespaces, labels });
    return foretell(alike, fromMs, whose.days * dayMinutes, () => pause(clock, turnMs));
  };

  const keptOf = async (whose: Whose, { reach, nowMs }: Call): Promise<Kept> => {
    if (whose.namespace !== undefined) reach.check(`${whose.namespace}/`);
    const namespaces = whose.namespace === undefined ? reach.namespaces : [whose.namespace];
    const { days, matching, group, labels } = whose;
    const key = JSON.stringify([days, matching, group, namespaces, labels]);
    const there = kept.get(key);
    if (there && there.untilMono > clock.monotonic()) {
      const seen = await there.seen;
      const changed = await store.tasks.changedSince(there.builtMs - overlapMs);
      if (changed.every((change) => seen.has(markOf(change)))) return there;
    }
    const seen = store.tasks.changedSince(nowMs - overlapMs).then((changes) => new Set(changes.map(markOf)));
    const line = seen.then(() => build(whose, namespaces, nowMs));
    const made: Kept = { line, feeds: new Map(), builtMs: nowMs, seen };
    keepLast(kept, keptMost, key, { ...made, untilMono: clock.monotonic() + keptMs });
    line.catch(() => {
      // The callers that share this timeline get the error; the next call reads the store again.
      if (kept.get(key)?.line === line) kept.delete(key);
    });
    return made;
  };
  const lineOf = async (whose: Whose, call: Call): Promise<Timeline> => (await keptOf(whose, call)).line;

  const write = async (line: Timeline, { perDay, name, nowMs }: { perDay: number; name: string; nowMs: number }) => {
    const { clusterId } = await store.sessions.cluster();
    const { events, cut } = feedOf(line, { perDay, most: limits.feedEvents, clusterId });
    const { paused, unforeseen, left } = line.counted;
    const notes = {
      "X-CARILLON-CUT": cut,
      "X-CARILLON-PAUSED": paused,
      "X-CARILLON-UNFORESEEN": unforeseen,
      "X-CARILLON-LEFT": left,
    };
    return writeIcs({ name, stampMs: nowMs, refresh: "PT1H", notes, events });
  };

  const recordsOf = async (names: string[]) =>
    new Map((await store.tasks.byNames(names)).map((record) => [record.name, record]));

  return {
    async getTimeline(given, call) {
      const { fromMs, fires, tasks, counted, clockChanges } = await lineOf(given, call);
      return {
        from: isoTime(fromMs),
        fires,
        tasks,
        ...counted,
        clockChanges: clockChanges.map(({ atMs, ...change }) => ({ at: isoTime(atMs), ...change })),
      };
    },
    async listFiring({ since, until, ...given }, call) {
      const line = await lineOf(given, call);
      const place = (time: string) => Math.floor((Date.parse(time) - line.fromMs) / minuteMs);
      const [from, to] = [Math.max(0, place(since)), Math.min(line.fires.length, place(until))];
      const most = limits.timelineTasks;
      const { firing, count } = from < to ? firingIn(line, { from, to, most }) : { firing: [], count: 0 };
      const tasks = await recordsOf(firing.map(({ name }) => name));
      return {
        firing: firing.flatMap(({ name, fires, firstMs }) => {
          const record = tasks.get(name);
          if (!record) return []; // the task was removed after the timeline was built
          const { group, schedule } = record.definition;
          const words = compileSchedule(schedule).words();
          return { task: name, group, schedule, words, fires, first: isoTime(firstMs) };
        }),
        more: count - firing.length,
      };
    },
    async getCalendarFeed({ label = [], perDay, token: _, ...given }, call) {
      const labels = label.length === 0 ? undefined : labelsOfTexts(label);
      const { line, feeds } = await keptOf({ ...given, labels }, call);
      const name = ["Carillon", given.namespace, given.group, given.matching, ...label].filter(Boolean).join(" ");
      const key = JSON.stringify([perDay, name]);
      const there = feeds.get(key);
      if (there) return there;
      const text = line.then((read) => write(read, { perDay, name, nowMs: call.nowMs }));
      keepLast(feeds, feedsMost, key, text);
      text.catch(() => {
        if (feeds.get(key) === text) feeds.delete(key);
      });
      return text;
    },
    async suggestSpread({ within, moves: most, ...given }, call) {
      const { moves, ...figures } = suggestSpread(await lineOf(given, call), { within, most });
      const tasks = await recordsOf(moves.map(({ task }) => task));
      return {
        ...figures,
        moves: moves.flatMap((move) => {
          const record = tasks.get(move.task);
          return record ? { version: record.version, ...move } : [];
        }),
      };
    },
  };
}
