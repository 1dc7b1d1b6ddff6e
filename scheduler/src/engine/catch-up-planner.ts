import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Pulse } from "../cluster/session-store.ts";
import type { DuePlan } from "../slots/plan-store.ts";
import type { Store } from "../store/store.ts";
import type { StoreClock } from "../store/store-clock.ts";
import type { Planner } from "./planner.ts";
import { SingleFlight } from "./single-flight.ts";

export interface CatchUpPlannerOptions {
  store: Store;
  membership: Membership;
  planner: Planner;
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
  horizonMs: number;
  /** If a slot is still unplanned this long before its time, in ms, all nodes try to plan it. The first `inTurn` nodes try earlier. */
  aheadMs: number;
}

/** The first `inTurn` nodes check at different times: each of them a hundredth of the horizon earlier than the node after it. */
const inTurn = 3;
/**
 * The shortest and the longest pause in ms before the catch-up planner tries the same slot again: another transaction may hold its row for
 * an unknown time.
 */
const vainLeastMs = 50;
const vainMostMs = 1_000;
/** The pause in ms before it looks again while the planner of this process plans. */
const plannedMs = 250;
/**
 * The time range in ms that one step plans after the nearest slots: planning the whole horizon of many tasks at once would delay claims.
 */
const stepMs = 5_000;

/**
 * Guarantees that every slot is planned before its time, even without a leader. The answer to a heartbeat (the pulse) contains the earliest
 * unplanned slot; until shortly before its time, nothing needs to be queried, because the earliest unplanned slot only moves forward.
 * Planning after the slot's time would make slots late, and several nodes that plan a whole horizon at the same time delay each other. So
 * the nodes check before the slot's time, one after another, and plan the nearest slots first.
 */
export class CatchUpPlanner {
  readonly #options: CatchUpPlannerOptions;
  readonly #flight: SingleFlight;
  #aheadMs: number;
  #cancel: () => void = () => undefined;
  /** The plan that was tried last, when it was tried, and the pause in ms before the same plan is tried again. */
  #last: DuePlan | undefined;
  #lastMono = Number.NEGATIVE_INFINITY;
  #vainMs = 0;

  constructor(options: CatchUpPlannerOptions) {
    this.#options = options;
    this.#aheadMs = options.aheadMs;
    this.#flight = new SingleFlight("catch-up planner", options.log, () => this.#rescue());
  }

  onPulse({ nextSlotMs, members }: Pulse): void {
    this.#cancel();
    if (nextSlotMs === null) return;
    const { membership, clock, storeClock, aheadMs, horizonMs } = this.#options;
    const before = members.filter(({ role, sessionId }) => role === "node" && sessionId < membership.sessionId).length;
    this.#aheadMs = aheadMs + (Math.max(0, inTurn - before) * horizonMs) / 100;
    const againMs = this.#lastMono + this.#vainMs - clock.monotonic();
    const inMs = Math.max(storeClock.until(nextSlotMs - this.#aheadMs), againMs);
    this.#cancel = clock.after(inMs, () => void this.#flight.run());
  }

  /** Checks for unplanned slots now and plans them, and then sends a heartbeat, whose answer contains the next unplanned slot. */
  run(): Promise<void> {
    return this.#flight.run();
  }

  stop(): Promise<void> {
    this.#cancel();
    return this.#flight.stop();
  }

  async #rescue(): Promise<void> {
    const { store, membership, planner, clock, storeClock, horizonMs, log } = this.#options;
    if (!membership.trusted()) return;
    // The planner of this process plans the earliest slots first. Both at once would read the same plans, and each would write half of
    // them.
    if (planner.plans) {
      this.#cancel();
      this.#cancel = clock.after(plannedMs, () => void this.#flight.run());
      return;
    }
    const setAside = planner.setAside();
    const [forgotten] = await store.plans.due(storeClock.now() + this.#aheadMs, 1, setAside);
    // A slot that was set aside remains the earliest one in each heartbeat's answer, so the pause grows although no plan is returned here.
    const isSame = forgotten
      ? forgotten.taskId === this.#last?.taskId && forgotten.nextSlotMs === this.#last.nextSlotMs
      : setAside.length > 0;
    this.#vainMs = isSame ? Math.min(vainMostMs, Math.max(vainLeastMs, 2 * this.#vainMs)) : 0;
    this.#last = forgotten;
    this.#lastMono = clock.monotonic();
    if (forgotten) {
      log[isSame ? "debug" : "info"](
        { node: membership.node, leftMs: Math.round(forgotten.nextSlotMs - storeClock.now()) },
        "planning what no leader planned",
      );
      const endMs = storeClock.now() + horizonMs;
      for (
        let untilMs = storeClock.now() + 2 * this.#aheadMs;
        untilMs < endMs && membership.trusted();
        untilMs += stepMs
      )
        await planner.plan(untilMs, membership.term());
      await planner.plan(endMs, membership.term());
    }
    membership.refresh();
  }
}
