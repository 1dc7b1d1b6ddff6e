import type { Change } from "../base/change.ts";
import { CarillonError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";

/** The part of the store's port for groups: the state and the limit of each group as a whole. */
export interface GroupStore {
  /** Groups by name: each one that a task or a worker has named so far. */
  list(nowMs: number): Promise<GroupRecord[]>;
  /**
   * At most `most` runs of the group's tasks are claimed at once, by all workers together; null: no limit. Runs that are already claimed go
   * on, and count. Repeatable: an equal limit changes nothing. @throws GROUP_UNKNOWN
   */
  limit(name: string, most: number | null, change: Change): Promise<{ changed: boolean }>;
}

export interface GroupRecord {
  name: string;
  tasks: number;
  /** Live sessions that serve it. */
  workers: number;
  limit: number | null;
  /** Runs of its tasks that workers have claimed. */
  claimed: number;
  /** Due runs that no worker has claimed; counted up to `waitingMost`. */
  waiting: number;
  /** The limit's last change. */
  changed: { atMs: number; by: string; why: string } | null;
}

export const waitingMost = 1_000;

/** @throws OPTION_INVALID */
export function checkGroupLimit(runs: number | null): void {
  if (runs === null || (Number.isInteger(runs) && runs >= 1 && runs <= limits.groupRuns)) return;
  throw new CarillonError("OPTION_INVALID", `a group's limit is ${String(runs)}`, {
    hint: `Give a whole number from 1 to ${limits.groupRuns}, or none. To stop a group, pause its tasks.`,
  });
}
