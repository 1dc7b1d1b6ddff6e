import type { Finding } from "../alarms/alarms.ts";
import { type Clock, EarliestTimer } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Pulse } from "../cluster/session-store.ts";
import { refill } from "../settings/agreement.ts";
import { planTask } from "../slots/plan.ts";
import type { DuePlan, PlanWrite, SetAside } from "../slots/plan-store.ts";
import type { Definitions } from "../store/definitions.ts";
import type { Store } from "../store/store.ts";
import type { StoreClock } from "../store/store-clock.ts";
import { isPaced } from "../task/policies.ts";
import { Crowd, farMs, lookEveryMs } from "./crowd.ts";
import { SingleFlight } from "./single-flight.ts";
import { type Reason, Unread } from "./unread.ts";

export interface PlannerOptions {
  store: Store;
  membership: Membership;
  definitions: Definitions;
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
  /** How far ahead slots are planned, in ms; longer than an election takes. */
  horizonMs: number;
  onAccepted: (slots: number) => void;
}

/**
 * The maximum number of plans read by one statement; the maximum number of tasks written by one, whose definitions are read while the tasks
 * before them are written; and the number of slots after which a batch is written. A task's slots stay together.
 */
const plansPerRead = 4_000;
const tasksPerStep = 2_000;
const slotsPerStatement = 5_000;
/**
 * How many tasks that cannot be planned are tried before the next read from the store: each attempt takes up to a millisecond, to build the
 * hint of its error.
 */
const unreadPerStep = 50;

const nothing: ReadonlySet<number> = new Set();

interface Steps {
  writes: PlanWrite[];
  /** The number of tasks that could not be planned. */
  unread: number;
  /** True if more slots are due than these steps cover. */
  open: boolean;
}

/** A step of the planner that takes longer than this, in ms, waits for something: see `plans`. */
const stalledMs = 1_000;

/**
 * Guarantees that the store contains every slot up to `horizonMs` ahead, with a run that waits for its due time unless the slot is skipped.
 * Normally the leader does this; any node can, because the store decides which of several planners was first.
 */
export class Planner {
  readonly #options: PlannerOptions;
  readonly #flight: SingleFlight;
  readonly #unread: Unread;
  readonly #crowd = new Crowd();
  readonly #crowdTimer: EarliestTimer;
  /** When this process last looked for a crowd, by its monotonic clock. */
  #lookedMono = Number.NEGATIVE_INFINITY;
  /** When this process last began to plan as the leader, or ended a step, by its monotonic clock. */
  #steppedMono = Number.NEGATIVE_INFINITY;

  constructor(options: PlannerOptions) {
    this.#options = options;
    this.#unread = new Unread(options.clock);
    this.#flight = new SingleFlight("planner", options.log, () => this.#lead());
    this.#crowdTimer = new EarliestTimer(options.clock, () => {
      this.#lookedMono = Number.NEGATIVE_INFINITY;
      void this.run();
    });
  }

  /** The answer to a heartbeat contains the earliest unplanned slot, so a cluster with few tasks needs no further query. */
  onPulse({ nextSlotMs }: Pulse): void {
    if (nextSlotMs === null) return;
    const inMs = this.#options.storeClock.until(nextSlotMs);
    if (inMs <= this.#options.horizonMs * refill || (inMs <= farMs && this.#looks(lookEveryMs))) void this.run();
  }

  /** Plans if this process leads. Called when slots may be due, a task has changed, or leadership begins. */
  run(): Promise<void> {
    return this.#options.membership.term() === null ? Promise.resolve() : this.#flight.run();
  }

  /** Tasks that this process could not plan and will not try again for a while. */
  setAside(): SetAside[] {
    return this.#unread.setAside();
  }

  get unreadable(): number {
    return this.#unread.size;
  }

  /** The findings about tasks that this process cannot plan; null if not known yet. */
  unreadableFound(): Finding[] | null {
    const { definitions, membership } = this.#options;
    return this.#unread.findings(membership.node, (taskId) => definitions.get(taskId)?.version);
  }

  /** True while this process plans as the leader and gets on. A statement may wait long for a lock: then others may plan other tasks. */
  get plans(): boolean {
    return this.#flight.flies && this.#options.clock.monotonic() - this.#steppedMono < stalledMs;
  }

  stop(): Promise<void> {
    this.#crowdTimer.close();
    return this.#flight.stop();
  }

  async #lead(): Promise<void> {
    const { membership, clock, storeClock, horizonMs } = this.#options;
    const term = membership.term();
    if (term === null) return;
    this.#steppedMono = clock.monotonic();
    await this.plan(storeClock.now() + horizonMs, term);
    await this.#planCrowd(term);
  }

  #looks(everyMs: number): boolean {
    return this.#options.clock.monotonic() - this.#lookedMono >= everyMs;
  }

  /** Plans a crowd of slots that takes longer than the horizon, if it is time to begin; otherwise sets a timer. */
  async #planCrowd(term: number): Promise<void> {
    const { store, clock, storeClock, horizonMs } = this.#options;
    // Edits may have made a crowd since the last look.
    if (!this.#looks(horizonMs)) return;
    const farthestMs = storeClock.now() + farMs;
    const setAside = this.#unread.setAside();
    const begin = await this.#crowd.begin((n) => store.plans.nth(farthestMs, n, setAside), horizonMs);
    this.#lookedMono = clock.monotonic();
    if (begin === null) return;
    const inMs = storeClock.until(begin.atMs);
    // After the planning, or if it fails: another crowd may follow, or the rest of this one.
    this.#crowdTimer.within(inMs > 0 ? inMs : horizonMs);
    if (inMs <= 0) await this.plan(begin.untilMs, term);
  }

  /**
   * Builds the writes for due plans. Tasks that this process cannot plan are set aside, so that the other tasks need not wait; another
   * process may be able to plan them.
   */
  #stepsOf(due: readonly DuePlan[], nowMs: number, untilMs: number): Steps {
    const { definitions } = this.#options;
    const steps: Steps = { writes: [], unread: 0, open: false };
    const news: Reason[] = [];
    let slots = 0;
    for (const plan of due) {
      const known = definitions.get(plan.taskId);
      // The task was edited since the plan was read: the next read has the new version.
      if (known?.version !== plan.version) continue;
      if (slots >= slotsPerStatement || steps.unread >= unreadPerStep) {
        steps.open = true;
        break;
      }
      // After the due plans were read, the planner or the catch-up planner has set this task aside.
      if (this.#unread.has(plan)) {
        steps.unread++;
        continue;
      }
      try {
        const step = planTask(known.definition, known.schedule, plan.taskId, { ...plan, nowMs, untilMs });
        slots += step.slots.length;
        steps.open ||= step.nextSlotMs !== null && step.nextSlotMs <= untilMs;
        const gated = known.definition.overlap.limit !== null || isPaced(known.definition);
        steps.writes.push({ ...plan, newNextSlotMs: step.nextSlotMs, slots: step.slots, missed: step.missed, gated });
        this.#unread.delete(plan.taskId);
      } catch (error) {
        const reason = { task: known.definition.name, error: messageOf(error) };
        if (this.#unread.add(plan, reason)) news.push(reason);
        steps.unread++;
      }
    }
    if (news.length > 0)
      this.#options.log.error(
        { ...news[0], tasks: news.length },
        "this process cannot plan the task, nor others like it",
      );
    return steps;
  }

  /**
   * Plans the slots up to `untilMs` that have not been planned yet, the earliest first. One step plans a limited number of tasks; steps
   * follow until no such slot is left, a step achieves nothing, or the term ends.
   * @param term the leader's term; null if `CatchUpPlanner` calls this on a node that is not the leader
   */
  async plan(untilMs: number, term: number | null): Promise<void> {
    const { store, clock } = this.#options;
    const beganMono = clock.monotonic();
    for (let limit = plansPerRead; ; ) {
      const due = await store.plans.due(untilMs, limit, this.#unread.setAside());
      if (due.length === 0) break;
      const left = await this.#planAll(due, untilMs, term);
      if (left === "none" && due.length < limit) break;
      // Plans with many slots, or that cannot be read, fill a statement: more plans than it can take need not be read.
      limit = left === "more" ? tasksPerStep : plansPerRead;
      if (left === "given up") return;
    }
    this.#unread.looked(beganMono);
  }

  /**
   * Plans the slots of `due` up to `untilMs`.
   * @returns "given up" if a step wrote nothing, because another planner or an edit has changed or locked its plans, or if the term is
   * over; the next heartbeat reports the plans again
   */
  async #planAll(due: readonly DuePlan[], untilMs: number, term: number | null): Promise<"none" | "more" | "given up"> {
    const { store, membership, definitions, clock, storeClock, onAccepted } = this.#options;
    let known = definitions.ensure(due.slice(0, tasksPerStep));
    for (let from = 0; from < due.length; from += tasksPerStep) {
      const beganMono = clock.monotonic();
      await known;
      const nowMs = storeClock.now();
      const { writes, unread, open } = this.#stepsOf(due.slice(from, from + tasksPerStep), nowMs, untilMs);
      known = definitions.ensure(due.slice(from + tasksPerStep, from + 2 * tasksPerStep));
      // If it fails, `await` above throws the error in the next step.
      known.catch(() => undefined);
      const { taken, accepted } =
        writes.length === 0
          ? { taken: nothing, accepted: 0 }
          : await store.plans.accept({ sessionId: membership.sessionId, term }, writes, nowMs);
      onAccepted(accepted);
      this.#steppedMono = clock.monotonic();
      this.#crowd.took(accepted, clock.monotonic() - beganMono);
      const more = open || from + tasksPerStep < due.length;
      if (more && taken.size + unread === 0) return "given up";
      if (more && term !== null && membership.term() !== term) return "given up";
      if (open) return "more";
    }
    return "none";
  }
}
