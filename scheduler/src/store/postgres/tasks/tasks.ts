import type { TaskStore } from "../../../task/task-store.ts";
import { takeUpLeft } from "../claims/set-aside.ts";
import type { Database } from "../database.ts";
import { growthOfTasks } from "../growth.ts";
import { replanAhead } from "../recovery/replan-ahead.ts";
import { pauseFailing } from "../runs/failing.ts";
import { removeEnded } from "../schedules/ended.ts";
import { followTasks, removeWhole } from "../schedules/follow-tasks.ts";
import { saveSchedules } from "../schedules/save-schedules.ts";
import { followZones } from "../zones/follow-zones.ts";
import { KnownZones } from "../zones/known-zones.ts";
import { type CalendarUsers, KnownCalendars } from "./calendars.ts";
import { counters, foldCounters } from "./counters.ts";
import { adoptLeft, save, saveAll } from "./define.ts";
import { replan } from "./edit.ts";
import { groupNumber } from "./groups.ts";
import {
  byIds,
  byName,
  byNames,
  changedSince,
  idOf,
  list,
  scheduleCounts,
  schedulesOf,
  type Tasks,
  versions,
} from "./read.ts";
import { forgetReleases, releasesOf } from "./releases.ts";
import { endPauses, resume } from "./resume.ts";
import { pause, remove } from "./stop.ts";

export function taskStore(database: Database): TaskStore & CalendarUsers & { forget: () => void } {
  const tasks: Tasks = {
    database,
    s: database.schema,
    calendars: new KnownCalendars(database),
    zones: new KnownZones(database),
    groups: new Map(),
    counted: growthOfTasks(database),
  };
  return {
    save: (definition, expectedVersion, change, client) => save(tasks, definition, expectedVersion, change, client),
    saveAll: (definitions, change, by) => saveAll(tasks, definitions, change, by),
    adoptLeft: (graceMs, change) => adoptLeft(tasks, graceMs, change),
    releasesOf: (name) => releasesOf(database, name),
    forgetReleases: (beforeMs) => forgetReleases(database, beforeMs),
    replan: (client, what) => replan(tasks, client, what),
    enterZone: (zone, nowMs) => tasks.zones.enter([], [zone], nowMs),
    byName: (name) => byName(tasks, name),
    idOf: (name) => idOf(database, name),
    byNames: (names) => byNames(tasks, names),
    byIds: (taskIds) => byIds(tasks, taskIds),
    list: () => list(tasks),
    changedSince: (sinceMs) => changedSince(tasks, sinceMs),
    versions: (name) => versions(tasks, name),
    pause: (name, change, isWanted) => pause(tasks, name, change, isWanted),
    resume: (name, change, isWanted) => resume(tasks, name, change, isWanted),
    endPauses: (change) => endPauses(tasks, change),
    pauseFailing: (taskIds, change) => pauseFailing(tasks, taskIds, change),
    replanAhead: (change) => replanAhead(tasks, change),
    followZones: (change) => followZones(tasks, change),
    followTasks: (taskIds, change) => followTasks(tasks, taskIds, change),
    saveSchedules: (of, definitions, change, client) => saveSchedules(tasks, of, definitions, change, client),
    scheduleCounts: (names) => scheduleCounts(tasks, names),
    removeEnded: (change) => removeEnded(tasks, change),
    schedulesOf: (name, afterName, most) => schedulesOf(tasks, name, afterName, most),
    removeSchedule: (name, of, change, client) => remove(tasks, name, change, { of, client }),
    remove: (name, change, expectedVersion = null) => removeWhole(tasks, name, change, expectedVersion),
    takeUpLeft: (changedSinceMs, nowMs) => takeUpLeft(database, { changedSinceMs }, nowMs),
    counters: (taskIds) => counters(database, taskIds),
    foldCounters: (limit, hour) => foldCounters(database, limit, hour),
    group: (name) => groupNumber(tasks, name),
    forget() {
      tasks.calendars.forget();
      tasks.zones.forget();
      tasks.groups.clear();
    },
  };
}
