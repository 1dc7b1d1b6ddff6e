import type { Calendar } from "../schedule/calendar.ts";
import type { ZonesInForce } from "../schedule/zone-rules.ts";
import type { TaskDefinition } from "./task.ts";

export interface TaskRecord {
  taskId: number;
  name: string;
  version: number;
  definition: TaskDefinition;
  groupId: number;
  /** `untilMs`: when it is resumed by itself; null: not before it is resumed. */
  paused: { atMs: number; by: string; why: string; untilMs: number | null } | null;
  changedMs: number;
  nextSlotMs: number | null;
  /** Of the task's own calendar, as it is now. */
  calendar?: Calendar;
  /** By whose rules it is planned; absent: each zone has this process's own. */
  zones?: ZonesInForce;
  /** Nominal times whose slots lie ahead and that have their account already, from before the last edit: they do not run again. */
  accountedMs?: number[];
  /** Whose files define it: see applied-store.ts. */
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
  /** The task has this release's definition. */
  isInForce: boolean;
  firstMs: number;
  seenMs: number;
  /** Processes of it that live. */
  nodes: string[];
}

/** A task that was given the definition of another release, since nobody stood behind its own any more. */
export interface Adopted {
  task: string;
  from: string;
  to: string;
}

/** A zone that has other rules than those that its tasks were planned by. */
export interface ChangedZone {
  zone: string;
  /** The versions of the time zone database, such as "2026a". */
  from: string;
  to: string;
}

export interface ZonesFollowed {
  /** By this process's database, which is newer than what the store had. */
  changed: ChangedZone[];
  /** So many tasks. */
  replanned: number;
  /** Tasks that this process cannot read: they go on by the rules before. */
  left: { task: string; error: string }[];
}

/** Names of schedules that were stored, as the store has them; those that were so already are left out. */
export interface SchedulesSaved {
  created: string[];
  changed: string[];
}

/** What a look for schedules that are behind their tasks came to. */
export interface SchedulesFollowed {
  /** So many have a new version. */
  changed: number;
  /** With their task. */
  removed: number;
  /** Runs of those that were claimed and not known to be started, now asked back. */
  recalled: number[];
  /** Waiting runs that ended with those. */
  ended: number;
  /** Schedules that cannot be as their task is now, and stay as they were. */
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
