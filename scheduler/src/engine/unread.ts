import type { Finding } from "../alarms/alarms.ts";
import type { Clock } from "../base/clock.ts";
import type { SetAside } from "../slots/plan-store.ts";

/** How long until a task is tried again: a definition does not change within a version, but this process's calendars and zones may. */
const setAsideMs = 5 * 60_000;
/** The most tasks with an alarm of their own; all further tasks share one alarm of the cluster, which gives their number. */
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
 * Tasks whose definition this process cannot plan by, such as a task with a zone of a newer tzdata. The list is local to this process and
 * not in the store; a node that can read these tasks plans them. Each entry names the version of the task that was tried.
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

  /** @returns whether this is the first failure with this version of the task */
  add({ taskId, version }: SetAside, reason: Reason): boolean {
    const isNew = this.#byId.get(taskId)?.version !== version;
    this.#byId.set(taskId, { ...reason, version, untilMono: this.#clock.monotonic() + setAsideMs });
    return isNew;
  }

  /** Returns whether the task is not to be tried now. */
  has({ taskId, version }: SetAside): boolean {
    const known = this.#byId.get(taskId);
    return known?.version === version && known.untilMono > this.#clock.monotonic();
  }

  delete(taskId: number): void {
    this.#byId.delete(taskId);
  }

  /** The tasks that are not to be tried now. */
  setAside(): SetAside[] {
    const now = this.#clock.monotonic();
    const found: SetAside[] = [];
    for (const [taskId, { version, untilMono }] of this.#byId) if (untilMono > now) found.push({ taskId, version });
    return found;
  }

  /**
   * Removes old entries after a look at every due plan since `sinceMono`: a task whose entry had expired and was not tried again has no due
   * plan any more.
   */
  looked(sinceMono: number): void {
    this.#isComplete = true;
    for (const [taskId, { untilMono }] of this.#byId) if (untilMono <= sinceMono) this.#byId.delete(taskId);
  }

  /**
   * The findings for the alarm `unreadable`; null: this process has not looked at all plans yet, so it cannot tell which alarms are over.
   * @param newestOf the newest version of a task that this process has read: an entry of an older version is no longer an alarm
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
