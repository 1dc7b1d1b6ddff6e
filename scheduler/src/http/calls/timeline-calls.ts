import type { timelineRoutes } from "../../api/contract/timeline.ts";
import type { Read } from "../../api/contract.ts";
import { isoTime } from "../../api/run-json.ts";
import { type Clock, pause } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { compileSchedule } from "../../schedule/schedule.ts";
import { suggestSpread } from "../../slots/spread.ts";
import { firingIn, foretell, minuteMs, type Timeline, type TimelineTask } from "../../slots/timeline.ts";
import type { Store } from "../../store/store.ts";
import type { TaskChange, TaskRecord } from "../../task/task-record.ts";
import type { Call, Some } from "../call.ts";

type Whose = Pick<Read<"getTimeline">, "days" | "matching" | "group" | "namespace">;

const dayMinutes = 1_440;
const readAtOnce = 1_000;
/** How long a timeline is cached: later its beginning is too old. Each use also checks the store for changed tasks. */
const keptMs = 60_000;
const keptMost = 8;
/** How often the builder yields to the event loop, in milliseconds, so that other requests proceed. */
const turnMs = 0.05;
/** A change may be committed this long after the time that another node's clock gave it. */
const overlapMs = 5_000;

interface Kept {
  line: Promise<Timeline>;
  builtMs: number;
  /** The recent changes that were read before the tasks; changes up to `overlapMs` old may still appear later. */
  seen: Promise<Set<string>>;
}

const markOf = ({ taskId, version, changedMs }: TaskChange) => `${taskId} ${version} ${changedMs}`;

const asTimelineTask = ({
  name,
  version,
  taskId,
  paused,
  definition,
  calendar,
  accountedMs,
  zones,
}: TaskRecord): TimelineTask => ({
  name,
  version,
  seed: taskId,
  paused,
  definition,
  calendar,
  accountedMs,
  zones,
});

/**
 * Builds the timeline of many tasks once for all callers who view the same part of it. It is rebuilt when a task has changed, or after
 * `keptMs`. A change to a calendar shows within a minute.
 */
export function timelineCalls(store: Store, clock: Clock): Some<keyof typeof timelineRoutes> {
  const kept = new Map<string, Kept & { untilMono: number }>();

  const read = async (whose: Whose, namespaces: readonly string[] | null) => {
    const tasks: TimelineTask[] = [];
    const { matching = null, group = null } = whose;
    for (let afterName = ""; ; ) {
      const browse = {
        afterName,
        group,
        matching,
        paused: null,
        namespaces,
        of: null,
        schedules: true,
        limit: readAtOnce,
      };
      const records = await store.browse.tasks(browse);
      tasks.push(...records.map(asTimelineTask));
      const last = records.at(-1);
      if (!last || records.length < readAtOnce) return tasks;
      afterName = last.name;
    }
  };

  const build = async (whose: Whose, namespaces: readonly string[] | null, nowMs: number) => {
    const fromMs = Math.floor(nowMs / minuteMs) * minuteMs;
    return foretell(await read(whose, namespaces), fromMs, whose.days * dayMinutes, () => pause(clock, turnMs));
  };

  const lineOf = async (whose: Whose, { reach, nowMs }: Call): Promise<Timeline> => {
    if (whose.namespace !== undefined) reach.check(`${whose.namespace}/`);
    const namespaces = whose.namespace === undefined ? reach.namespaces : [whose.namespace];
    const { days, matching, group } = whose;
    const key = JSON.stringify([days, matching, group, namespaces]);
    const there = kept.get(key);
    if (there && there.untilMono > clock.monotonic()) {
      const seen = await there.seen;
      const changed = await store.tasks.changedSince(there.builtMs - overlapMs);
      if (changed.every((change) => seen.has(markOf(change)))) return there.line;
    }
    const seen = store.tasks.changedSince(nowMs - overlapMs).then((changes) => new Set(changes.map(markOf)));
    const line = seen.then(() => build(whose, namespaces, nowMs));
    kept.delete(key);
    kept.set(key, { line, builtMs: nowMs, seen, untilMono: clock.monotonic() + keptMs });
    for (const oldest of [...kept.keys()].slice(0, -keptMost)) kept.delete(oldest);
    line.catch(() => {
      // The error goes to the callers that share this timeline; the next call reads the store again.
      if (kept.get(key)?.line === line) kept.delete(key);
    });
    return line;
  };

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
      const all = from < to ? firingIn(line, from, to) : [];
      const firing = all.slice(0, limits.timelineTasks).map(({ task: { name, definition }, fires, firstMs }) => ({
        task: name,
        group: definition.group,
        schedule: definition.schedule,
        words: compileSchedule(definition.schedule).words(),
        fires,
        first: isoTime(firstMs),
      }));
      return { firing, more: all.length - firing.length };
    },
    async suggestSpread({ within, moves: most, ...given }, call) {
      const { moves, ...figures } = suggestSpread(await lineOf(given, call), { within, most });
      return {
        ...figures,
        moves: moves.map(({ task: { name, version }, ...move }) => ({ task: name, version, ...move })),
      };
    },
  };
}
