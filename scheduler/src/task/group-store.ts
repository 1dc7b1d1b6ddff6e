import type { Change } from "../base/change.ts";
import { CarillonError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";

/** The part of the store's port for groups: the state and the limit of each group as a whole. */
export interface GroupStore {
  /** Returns the groups by name: each group that a task or a worker has named so far. */
  list(nowMs: number, page: GroupPage): Promise<GroupRecord[]>;
  /**
   * Sets how many runs of the group's tasks all workers together may have claimed at once; null: no limit. Runs that are already claimed go
   * on, and count. Repeatable: an equal limit changes nothing. @throws GROUP_UNKNOWN
   */
  limit(name: string, most: number | null, change: Change): Promise<{ changed: boolean }>;
}

/** A part of the groups, in the order of their names in the store. */
export interface GroupPage {
  /** Only the groups after this name; "": from the first. */
  afterName: string;
  limit: number;
  /** Only these namespaces; null: all. */
  namespaces: readonly string[] | null;
}

export const allGroups: GroupPage = { afterName: "", limit: 2 ** 31 - 1, namespaces: null };

export interface GroupRecord {
  name: string;
  tasks: number;
  /** Number of live sessions that serve the group. */
  workers: number;
  limit: number | null;
  /** Number of runs of its tasks that workers have claimed. */
  claimed: number;
  /** Number of due runs that no worker has claimed; counted up to `waitingMost`. */
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
