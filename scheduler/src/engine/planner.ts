import { refill } from "../agreement.ts";
import type { Membership } from "../coordination.ts";
import type { Definitions, KnownTask } from "../definitions.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { type PlanStep, planTask } from "../planning.ts";
import type { PlanWrite, Pulse, Store } from "../store.ts";
import type { StoreClock } from "../store-clock.ts";
import { isPaced } from "../task-policies.ts";
import { SingleFlight } from "./single-flight.ts";

export interface PlannerOptions {
  store: Store;
  membership: Membership;
  definitions: Definitions;
  storeClock: StoreClock;
  log: Log;
  /** How far ahead slots are accepted; longer than an election takes. */
  horizonMs: number;
  onAccepted: (slots: number) => void;
}

/** Tasks read, and at least one task's slots or this many written, by one statement each. */
const tasksPerStep = 2_000;
const slotsPerStatement = 5_000;

/**
 * Makes true: every slot up to a horizon ahead is accepted in the store, with its run waiting for its due time. The
 * leader does it; any node can, because the store decides who was first.
 */
export class Planner {
  readonly #options: PlannerOptions;
  readonly #flight: SingleFlight;
  /** Tasks that could not be planned here, and in which version. */
  readonly #unread = new Map<number, number>();

  constructor(options: PlannerOptions) {
    this.#options = options;
    this.#flight = new SingleFlight("planner", options.log, () => this.#lead());
  }

  /** A pulse tells the earliest open slot, so a cluster with little to do asks nothing more. */
  onPulse({ nextSlotMs }: Pulse): void {
    const { storeClock, horizonMs } = this.#options;
    if (nextSlotMs !== null && nextSlotMs <= storeClock.now() + horizonMs * refill) void this.run();
  }

  /** The leader's part: called when slots may be open, a task changed, or leadership begins. */
  run(): Promise<void> {
    return this.#options.membership.term() === null ? Promise.resolve() : this.#flight.run();
  }

  stop(): Promise<void> {
    return this.#flight.stop();
  }

  async #lead(): Promise<void> {
    const { membership, storeClock, horizonMs } = this.#options;
    const term = membership.term();
    if (term !== null) await this.plan(storeClock.now() + horizonMs, term);
  }

  /** undefined: this process cannot read the task's schedule. Another may, and the other tasks are not to wait for that. */
  #stepOf(known: KnownTask, nextSlotMs: number, nowMs: number, untilMs: number): PlanStep | undefined {
    const { taskId, version, definition } = known;
    try {
      return planTask(definition, known.schedule, taskId, nextSlotMs, nowMs, untilMs);
    } catch (error) {
      if (this.#unread.get(taskId) !== version)
        this.#options.log.error(
          { task: definition.name, error: messageOf(error) },
          "this process cannot plan the task",
        );
      this.#unread.set(taskId, version);
      return undefined;
    }
  }

  /**
   * Accepts what is open up to `untilMs`, in steps.
   * @param term null when acting as a rescuer
   */
  async plan(untilMs: number, term: number | null): Promise<void> {
    const { store, membership, definitions, storeClock, onAccepted } = this.#options;
    for (;;) {
      const due = await store.plans.due(untilMs, tasksPerStep);
      if (due.length === 0) return;
      await definitions.ensure(due);
      const nowMs = storeClock.now();
      const writes: PlanWrite[] = [];
      let open = due.length === tasksPerStep;
      let slots = 0;
      for (const plan of due) {
        const known = definitions.get(plan.taskId);
        // Edited since it was read: the next reading has the new version.
        if (known?.version !== plan.version) continue;
        if (slots >= slotsPerStatement) {
          open = true;
          break;
        }
        const step = this.#stepOf(known, plan.nextSlotMs, nowMs, untilMs);
        if (step === undefined) continue;
        slots += step.slots.length;
        open ||= step.nextSlotMs !== null && step.nextSlotMs <= untilMs;
        writes.push({
          ...plan,
          newNextSlotMs: step.nextSlotMs,
          slots: step.slots,
          missed: step.missed,
          gated: known.definition.overlap.limit !== null || isPaced(known.definition),
        });
      }
      const { taken, accepted } = await store.plans.accept({ sessionId: membership.sessionId, term }, writes, nowMs);
      onAccepted(accepted);
      // What was not taken is in the hands of another planner or an edit, and is seen again with the next pulse.
      if (taken.size === 0 || !open) return;
      if (term !== null && membership.term() !== term) return;
    }
  }
}
