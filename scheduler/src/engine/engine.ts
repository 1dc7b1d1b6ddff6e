import type { Finding } from "../alarms/alarms.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Signal } from "../cluster/signal-store.ts";
import type { Definitions } from "../store/definitions.ts";
import type { Store } from "../store/store.ts";
import type { StoreClock } from "../store/store-clock.ts";
import { CatchUpPlanner } from "./catch-up-planner.ts";
import { Dispatcher } from "./dispatcher.ts";
import { Janitor } from "./janitor.ts";
import { OperationRunner } from "./operation-runner.ts";
import { Pauses } from "./pauses.ts";
import { Planner } from "./planner.ts";
import { Reaper } from "./reaper.ts";
import { Router } from "./router.ts";
import { ScheduleKeeper } from "./schedule-keeper.ts";
import { StatisticsKeeper } from "./statistics-keeper.ts";
import { UnclaimableRuns } from "./unclaimable-runs.ts";
import { ZoneKeeper } from "./zone-keeper.ts";

export interface EngineOptions {
  store: Store;
  membership: Membership;
  definitions: Definitions;
  clock: Clock;
  storeClock: StoreClock;
  random: Random;
  log: Log;
  horizonMs: number;
  rescueGraceMs: number;
  keepMs: number;
  releaseGraceMs: number;
  onAccepted?: (slots: number) => void;
}

/**
 * How close an unplanned slot may come before any node plans it, in ms; longer than workers claim ahead, so that its run starts on time.
 */
const rescueAheadMs = 2_000;

/** The services of one scheduler node. The answers to heartbeats (pulses) and signals wake them. */
export class Engine {
  readonly #membership: Membership;
  readonly #clock: Clock;
  readonly #graceMs: number;
  readonly #planner: Planner;
  readonly #catchUpPlanner: CatchUpPlanner;
  readonly #pauses: Pauses;
  readonly #schedules: ScheduleKeeper;
  readonly #operationRunner: OperationRunner;
  readonly #dispatcher: Dispatcher;
  readonly #router: Router;
  readonly #services: { stop(): Promise<void> }[];
  #cancelCheck: (() => void) | undefined;
  #stopped = false;

  constructor(options: EngineOptions) {
    this.#membership = options.membership;
    this.#clock = options.clock;
    this.#graceMs = options.rescueGraceMs;
    const planner = new Planner({ onAccepted: () => undefined, ...options });
    const catchUpPlanner = new CatchUpPlanner({ ...options, planner, aheadMs: rescueAheadMs });
    const dispatcher = new Dispatcher({ ...options, graceMs: options.rescueGraceMs });
    const reaper = new Reaper(options);
    const router = new Router({ ...options, graceMs: options.rescueGraceMs });
    const janitor = new Janitor(options);
    const pauses = new Pauses(options);
    const operationRunner = new OperationRunner(options);
    const unclaimableRuns = new UnclaimableRuns(options);
    const zones = new ZoneKeeper(options);
    const schedules = new ScheduleKeeper(options);
    const statistics = new StatisticsKeeper(options);
    this.#planner = planner;
    this.#dispatcher = dispatcher;
    this.#router = router;
    this.#catchUpPlanner = catchUpPlanner;
    this.#pauses = pauses;
    this.#operationRunner = operationRunner;
    this.#schedules = schedules;
    this.#services = [
      planner,
      catchUpPlanner,
      dispatcher,
      router,
      reaper,
      janitor,
      pauses,
      operationRunner,
      zones,
      schedules,
      statistics,
    ];
    options.membership.onPulse((pulse) => {
      // Heartbeats continue after the engine has stopped. A timer set then would keep the process alive until the next slot.
      if (this.#stopped) return;
      planner.onPulse(pulse);
      catchUpPlanner.onPulse(pulse);
      dispatcher.onPulse(pulse);
      router.onPulse(pulse);
      reaper.onPulse(pulse);
      janitor.onPulse(pulse);
      zones.onPulse();
      schedules.onPulse();
      statistics.onPulse();
      pauses.onPulse(pulse);
      operationRunner.onPulse(pulse);
      unclaimableRuns.onPulse(pulse);
    });
    options.membership.onLeadership((term) => {
      if (term === null) return;
      void planner.run();
      pauses.run();
      pauses.onFailing(null);
      schedules.onChanged(null);
    });
    void planner.run();
  }

  onSignal(signal: Signal): void {
    if (signal.kind === "beat") this.#membership.heard(signal.sessionId, signal.beat);
    if (signal.kind === "leadership" || signal.kind === "resync") this.#membership.refresh();
    if (this.#stopped) return;
    if (signal.kind === "operations" || signal.kind === "resync") void this.#operationRunner.run();
    if (signal.kind === "failing") this.#pauses.onFailing(signal.taskId);
    if (signal.kind === "resync") {
      this.#pauses.onFailing(null);
      this.#schedules.onChanged(null);
    }
    if (signal.kind === "held") this.#dispatcher.onHeld(signal.dueMs);
    if (signal.kind === "child") this.#dispatcher.onChildEnded(signal.parentId);
    if (signal.kind === "resync") this.#dispatcher.onResync();
    if (signal.kind === "direct") this.#router.onDirect(signal.dueMs);
    // An edit may have added a route to a task whose waiting runs had no addressee.
    if (signal.kind === "tasks" || signal.kind === "resync") {
      this.#router.onDirect(0);
      this.#pauses.run();
    }
    if (signal.kind === "tasks" || signal.kind === "plans" || signal.kind === "resync") {
      void this.#planner.run();
      // A new slot may be due before the next heartbeat reports it, so the catch-up planner runs once the leader has had time to plan it.
      // The delay counts from the first signal, because signals may arrive at shorter intervals than the delay.
      this.#cancelCheck ??= this.#clock.after(this.#graceMs, () => {
        this.#cancelCheck = undefined;
        if (this.#membership.term() === null) void this.#catchUpPlanner.run();
        else this.#membership.refresh();
      });
    }
  }

  /** Passes the ids of tasks whose changes this process has just noticed to the schedules. */
  onChanged(taskIds: number[]): void {
    if (!this.#stopped) this.#schedules.onChanged(taskIds);
  }

  /** The number of tasks that this process could not plan when it last tried. */
  get unreadable(): number {
    return this.#planner.unreadable;
  }

  unreadableFound(): Finding[] | null {
    return this.#planner.unreadableFound();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelCheck?.();
    await Promise.all(this.#services.map((service) => service.stop()));
  }
}
