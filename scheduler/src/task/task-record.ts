import type { Calendar } from "../schedule/calendar.ts";
import type { ZonesInForce } from "../schedule/zone-rules.ts";
import type { TaskDefinition } from "./task.ts";

export interface TaskRecord {
  taskId: number;
  name: string;
  version: number;
  definition: TaskDefinition;
  groupId: number;
  /** `untilMs`: when the task is resumed automatically; null: it is resumed only by hand. */
  paused: { atMs: number; by: string; why: string; untilMs: number | null } | null;
  changedMs: number;
  nextSlotMs: number | null;
  /** The present version of the task's own calendar. */
  calendar?: Calendar;
  /** The zone rules by which the task is planned; absent: this process's own rules for each zone. */
  zones?: ZonesInForce;
  /** Nominal times whose slots are still to come, but that were accounted for before the last edit: they do not run again. */
  accountedMs?: number[];
  /** The bundle whose files define the task: see applied-store.ts. */
  bundle?: string;
}

export interface VersionRecord {
  version: number;
  definition: TaskDefinition;
  author: string;
  reason: string;
  changedMs: number;
}

/** A release that brings a definition of the task: see release.ts. */
export interface ReleaseOfTask {
  name: string;
  number: number | null;
  /** True if the task has this release's definition. */
  isInForce: boolean;
  firstMs: number;
  seenMs: number;
  /** Live processes of the release. */
  nodes: string[];
}

/** A task that got the definition of another release, because no release backed its own any more. */
export interface Adopted {
  task: string;
  from: string;
  to: string;
}

/** A zone whose rules differ from those by which its tasks were planned. */
export interface ChangedZone {
  zone: string;
  /** The versions of the time zone database, such as "2026a". */
  from: string;
  to: string;
}

export interface ZonesFollowed {
  /** Zones changed by this process's database, which is newer than the store's. */
  changed: ChangedZone[];
  /** Number of replanned tasks. */
  replanned: number;
  /** Tasks that this process cannot read; they keep the zone rules that they had. */
  left: { task: string; error: string }[];
}

/** The names of the schedules that were stored; unchanged schedules are left out. */
export interface SchedulesSaved {
  created: string[];
  changed: string[];
}

/** The result of updating schedules to their changed tasks. */
export interface SchedulesFollowed {
  /** Number of schedules with a new version. */
  changed: number;
  /** Number of schedules removed with their task. */
  removed: number;
  /** Runs of these schedules that are claimed and whose start is not recorded; their workers are asked to give them back. */
  recalled: number[];
  /** Waiting runs that ended with these schedules. */
  ended: number;
  /** Schedules that do not fit their task's present definition; they stay as they were. */
  left: { task: string; error: string }[];
}

export interface TaskChange {
  taskId: number;
  version: number;
  changedMs: number;
}

export interface Counters {
  succeeded: number;
  failed: number;
  cancelled: number;
  skipped: number;
  missed: number;
  retried: number;
}
