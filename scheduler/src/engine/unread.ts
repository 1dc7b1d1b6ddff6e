import type { Finding } from "../alarms/alarms.ts";
import type { Clock } from "../base/clock.ts";
import type { SetAside } from "../slots/plan-store.ts";

/** How long a task is set aside, in ms. Its definition does not change within a version, but this process's calendars and zones may. */
const setAsideMs = 5 * 60_000;
/** The maximum number of tasks with separate alarms; all further tasks share one alarm of the cluster, with their number. */
const alarmsNamed = 100;

export interface Reason {
  readonly task: string;
  readonly error: string;
}

interface Unreadable extends Reason {
  readonly version: number;
  readonly untilMono: number;
}

/**
 * Tasks that this process cannot plan, such as a task with a time zone that only a newer tzdata contains. The list is not stored; nodes
 * that can plan these tasks do so. An entry applies to the version of the task that was tried.
 */
export class Unread {
  readonly #clock: Clock;
  readonly #byId = new Map<number, Unreadable>();
  #isComplete = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#byId.size;
  }

  /** @returns true if this version of the task failed for the first time */
  add({ taskId, version }: SetAside, reason: Reason): boolean {
    const isNew = this.#byId.get(taskId)?.version !== version;
    this.#byId.set(taskId, { ...reason, version, untilMono: this.#clock.monotonic() + setAsideMs });
    return isNew;
  }

  /** True if this version of the task is set aside now. */
  has({ taskId, version }: SetAside): boolean {
    const known = this.#byId.get(taskId);
    return known?.version === version && known.untilMono > this.#clock.monotonic();
  }

  delete(taskId: number): void {
    this.#byId.delete(taskId);
  }

  /** The tasks that are set aside now. */
  setAside(): SetAside[] {
    const now = this.#clock.monotonic();
    const found: SetAside[] = [];
    for (const [taskId, { version, untilMono }] of this.#byId) if (untilMono > now) found.push({ taskId, version });
    return found;
  }

  /**
   * Called after all due plans have been read since `sinceMono`. Removes entries that had expired by then: such a task was not tried again,
   * so it has no due plan any more.
   */
  looked(sinceMono: number): void {
    this.#isComplete = true;
    for (const [taskId, { untilMono }] of this.#byId) if (untilMono <= sinceMono) this.#byId.delete(taskId);
  }

  /**
   * The findings for the alarm `unreadable`; null if this process has not read all plans yet, because it then cannot tell which alarms are
   * over.
   * @param newestOf returns the newest version of a task that this process has read; an entry of an older version is left out
   */
  findings(node: string, newestOf: (taskId: number) => number | undefined): Finding[] | null {
    if (!this.#isComplete) return null;
    const all: Unreadable[] = [];
    for (const [taskId, one] of this.#byId) if ((newestOf(taskId) ?? 0) <= one.version) all.push(one);
    const found = all.slice(0, alarmsNamed).map(({ task, error }): Finding => {
      const text = `${node} cannot plan it: ${error}`.slice(0, 300);
      return { rule: "unreadable", subject: task, count: 1, text, runId: null };
    });
    const more = all.length - alarmsNamed;
    if (more > 0) {
      const text = `${node} cannot plan ${all.length} tasks; of these ${alarmsNamed} have an alarm of their own`;
      found.push({ rule: "unreadable", subject: "", count: more, text, runId: null });
    }
    return found;
  }
}
