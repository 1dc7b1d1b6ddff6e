import type { Finding } from "../alarms/alarms.ts";
import type { Clock } from "../base/clock.ts";
import type { SetAside } from "../slots/plan-store.ts";

/** Tried again after this: a definition does not change within a version, but this process's calendars and zones may. */
const setAsideMs = 5 * 60_000;
/** The most tasks that have an alarm of their own; the rest is one alarm of the cluster with their number. */
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
 * Tasks whose definition this process cannot plan by, such as one with a zone of a newer tzdata. The list is local to this process: the
 * store does not have it, and a node that can read these tasks plans them. Each task is set aside in the version that was tried.
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

  /** @returns whether the task was readable, or not tried, in this version until now */
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

  /** Every due plan has been looked at since then: a task whose entry had expired and was not tried again has no due plan any more. */
  looked(sinceMono: number): void {
    this.#isComplete = true;
    for (const [taskId, { untilMono }] of this.#byId) if (untilMono <= sinceMono) this.#byId.delete(taskId);
  }

  /**
   * The findings of the alarm `unreadable`. null: this process has not looked at all plans yet, so it cannot say which alarms are over.
   * @param newestOf the newest version of a task that this process has read: an older one is no alarm any more
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
