import type { Calendar } from "../schedule/calendar.ts";
import type { ZonesInForce } from "../schedule/zone-rules.ts";
import type { TaskDefinition } from "./task.ts";

export interface TaskRecord {
  taskId: number;
  name: string;
  version: number;
  definition: TaskDefinition;
  groupId: number;
  /** Set while the task is paused. `untilMs`: when it is resumed automatically; null if it stays paused until a resume. */
  paused: { atMs: number; by: string; why: string; untilMs: number | null } | null;
  changedMs: number;
  nextSlotMs: number | null;
  /** The present version of the task's calendar; left out if it has none. */
  calendar?: Calendar;
  /** The zone rules by which the task is planned; left out if they equal this process's own rules for each zone. */
  zones?: ZonesInForce;
  /** Nominal times of future slots that were already covered before the last edit. They are not planned again. */
  accountedMs?: number[];
  /** The bundle whose files define the task: see applied-store.ts. Left out if there is none. */
  bundle?: string;
}

export interface VersionRecord {
  version: number;
  definition: TaskDefinition;
  author: string;
  reason: string;
  changedMs: number;
}

/** A release that contains a definition of the task: see release.ts. */
export interface ReleaseOfTask {
  name: string;
  number: number | null;
  /** True if this release's definition is the present one. */
  isInForce: boolean;
  firstMs: number;
  seenMs: number;
  /** The names of the nodes with a live process of the release. */
  nodes: string[];
}

/** A task that got the definition of another release, because no release backed its own definition any more. */
export interface Adopted {
  task: string;
  from: string;
  to: string;
}

/** A zone whose rules differ from the rules by which its tasks were planned. */
export interface ChangedZone {
  zone: string;
  /** The former and the new version of the time zone database, for example "2026a". */
  from: string;
  to: string;
}

export interface ZonesFollowed {
  /** Zones that got other rules, because this process's time zone database is newer than the store's rules. */
  changed: ChangedZone[];
  /** The number of tasks that were planned again. */
  replanned: number;
  /** Tasks that this process cannot plan. They keep the zone rules that they had. */
  left: { task: string; error: string }[];
}

/** The names of the schedules that were created or changed. Schedules that were already equal are left out. */
export interface SchedulesSaved {
  created: string[];
  changed: string[];
}

/** The result of updating schedules after changes of their tasks. */
export interface SchedulesFollowed {
  /** The number of schedules that got a new version. */
  changed: number;
  /** The number of schedules that were removed because their task was. */
  removed: number;
  /** The numbers of these schedules' claimed runs. Their workers are asked to return those that have not started. */
  recalled: number[];
  /** The number of waiting runs that ended with these schedules. */
  ended: number;
  /** Schedules that cannot be made from their task's present definition. They stay as they were. */
  left: { task: string; error: string }[];
}

export interface TaskChange {
  taskId: number;
  version: number;
  changedMs: number;
}

export const counterNames = ["succeeded", "failed", "cancelled", "skipped", "missed", "retried"] as const;
export type Counters = Record<(typeof counterNames)[number], number>;

export const noCounters: Counters = { succeeded: 0, failed: 0, cancelled: 0, skipped: 0, missed: 0, retried: 0 };
