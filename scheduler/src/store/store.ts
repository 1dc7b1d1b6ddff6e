import type { AccessStore } from "../access/access-store.ts";
import type { AuditStore } from "../access/audit.ts";
import type { HookStore } from "../access/hooks/hook-store.ts";
import type { QuotaStore } from "../access/quota-store.ts";
import type { SecondFactorStore } from "../access/second-factor-store.ts";
import type { SecretStore } from "../access/secrets/secret-store.ts";
import type { WorkerStore } from "../access/worker-store.ts";
import type { AlarmStore } from "../alarms/alarm-store.ts";
import type { DrainStore } from "../cluster/drain-store.ts";
import type { GraceLockStore } from "../cluster/grace-lock-store.ts";
import type { LockStore } from "../cluster/lock-store.ts";
import type { SessionStore } from "../cluster/session-store.ts";
import type { SignalStore } from "../cluster/signal-store.ts";
import type { ClaimStore } from "../run/claim-store.ts";
import type { DeadLetterStore } from "../run/dead-letters.ts";
import type { FlowStore } from "../run/flow.ts";
import type { OperationStore } from "../run/operations.ts";
import type { RouteStore } from "../run/route-store.ts";
import type { RunStore } from "../run/run-store.ts";
import type { HistoryStore } from "../slots/history-store.ts";
import type { PlanStore } from "../slots/plan-store.ts";
import type { AppliedStore } from "../task/applied-store.ts";
import type { CalendarStore } from "../task/calendar-store.ts";
import type { GroupStore } from "../task/group-store.ts";
import type { StatisticsStore } from "../task/statistics/statistics-store.ts";
import type { TaskStore } from "../task/task-store.ts";
import type { AnswerStore } from "./answer-store.ts";
import type { BrowseStore } from "./browse-store.ts";
import type { EventStore } from "./event-store.ts";
import type { FigureStore } from "./figures.ts";
import type { StoreReading } from "./store-clock.ts";

/**
 * The interface of the store, the only source of truth and the only authority over what each process may do. All times are epoch
 * milliseconds by the store's clock and are passed as arguments. All methods may reject with the STORE_… errors. Where a write
 * may be repeated after a lost reply, the method's comment says so.
 */
export interface Store {
  readonly sessions: SessionStore;
  readonly tasks: TaskStore;
  readonly plans: PlanStore;
  readonly runs: RunStore;
  readonly claims: ClaimStore;
  readonly routes: RouteStore;
  readonly flow: FlowStore;
  readonly secrets: SecretStore;
  readonly hooks: HookStore;
  readonly history: HistoryStore;
  readonly signals: SignalStore;
  readonly drains: DrainStore;
  readonly graceLocks: GraceLockStore;
  readonly locks: LockStore;
  readonly deadLetters: DeadLetterStore;
  readonly operations: OperationStore;
  readonly calendars: CalendarStore;
  readonly groups: GroupStore;
  readonly workers: WorkerStore;
  readonly alarms: AlarmStore;
  readonly applied: AppliedStore;
  readonly figures: FigureStore;
  readonly browse: BrowseStore;
  readonly access: AccessStore;
  readonly secondFactors: SecondFactorStore;
  readonly audit: AuditStore;
  readonly quotas: QuotaStore;
  readonly answers: AnswerStore;
  readonly events: EventStore;
  readonly statistics: StatisticsStore;
  /** Reads cluster time, as a sample for `StoreClock`. */
  clock(): Promise<StoreReading>;
  /**
   * @param withinMs the time that running statements get, in ms; after it they fail as if the store could not be reached. Default: 5,000
   */
  close(withinMs?: number): Promise<void>;
}
