import type { Change } from "../base/change.ts";
import { CarillonError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";

/** The part of the store that manages groups: the state and the limit of each group. */
export interface GroupStore {
  /** Returns a page of the groups, ordered by name: each group that a task or a worker has ever named. */
  list(nowMs: number, page: GroupPage): Promise<GroupRecord[]>;
  /** Returns the group with this name; null if there is none. */
  find(nowMs: number, name: string): Promise<GroupRecord | null>;
  /**
   * Sets how many runs of the group's tasks all workers together may have claimed at once. Runs that are already claimed continue, and are
   * counted. It can be repeated: an equal limit changes nothing.
   * @param most null to remove the limit
   * @throws GROUP_UNKNOWN
   */
  limit(name: string, most: number | null, change: Change): Promise<{ changed: boolean }>;
}

/** Which groups to return, in the order of their names in the store. */
export interface GroupPage {
  /** Returns only groups after this name; "" returns groups from the first on. */
  afterName: string;
  limit: number;
  /** Returns only groups in these namespaces; null returns groups in all of them. */
  namespaces: readonly string[] | null;
}

export const allGroups: GroupPage = { afterName: "", limit: 2 ** 31 - 1, namespaces: null };

export interface GroupRecord {
  name: string;
  tasks: number;
  /** The number of live sessions that serve the group and have a capacity above 0. */
  workers: number;
  limit: number | null;
  /** The number of runs of the group's tasks that workers have claimed. */
  claimed: number;
  /** The number of due runs that no worker has claimed; of each priority at most `waitingMost` are counted. */
  waiting: number;
  /** The last change of the limit; null if the limit has never been changed. */
  changed: { atMs: number; by: string; why: string } | null;
}

export const waitingMost = 1_000;

/** @throws OPTION_INVALID if the limit is neither null nor a whole number in the permitted range */
export function checkGroupLimit(runs: number | null): void {
  if (runs === null || (Number.isInteger(runs) && runs >= 1 && runs <= limits.groupRuns)) return;
  throw new CarillonError("OPTION_INVALID", `a group's limit is ${String(runs)}`, {
    hint: `Give a whole number from 1 to ${limits.groupRuns}, or none. To stop a group, pause its tasks.`,
  });
}
