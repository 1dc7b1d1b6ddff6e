import type { AccessStore } from "./access-store.ts";
import type { AlarmStore } from "./alarm-store.ts";
import type { AnswerStore } from "./answer-store.ts";
import type { AppliedStore } from "./applied-store.ts";
import type { AuditStore } from "./audit.ts";
import type { BrowseStore } from "./browse-store.ts";
import type { Calendar } from "./calendar.ts";
import type { CalendarStore } from "./calendar-store.ts";
import type { ComingAnswer, ComingRequest } from "./coming-runs.ts";
import type { DeadLetterStore } from "./dead-letters.ts";
import type { FigureStore } from "./figures.ts";
import type { FlowStore, Onward } from "./flow.ts";
import type { GraceLockStore } from "./grace-lock-store.ts";
import type { GroupStore } from "./group-store.ts";
import type { HistoryStore } from "./history-store.ts";
import type { Json } from "./json.ts";
import type { LockStore } from "./lock-store.ts";
import type { OperationStore } from "./operations.ts";
import type { MissedRange, PlannedSlot } from "./planning.ts";
import type { RouteStore, TurnRequest } from "./route-store.ts";
import type { LiveState, Outcome } from "./run.ts";
import type { SecretStore } from "./secret-store.ts";
import type { SessionStore } from "./session-store.ts";
import type { TaskDefinition } from "./task.ts";
import type { WorkerStore } from "./worker-store.ts";

export type { HistoryStore, SlotRange, SlotRecord } from "./history-store.ts";
export type {
  Beating,
  Leadership,
  Member,
  Pulse,
  SessionIdentity,
  SessionSettings,
  SessionStore,
  Term,
} from "./session-store.ts";

/**
 * The port of the store: the only truth, and the only judge of who may do what. Every time is epoch milliseconds by
 * the store's clock and arrives as an argument. Every method may reject with the STORE_… errors; each one that writes
 * says what makes it safe to repeat after a lost reply.
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
  readonly history: HistoryStore;
  readonly signals: SignalStore;
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
  readonly audit: AuditStore;
  readonly answers: AnswerStore;
  /** The store's clock, for sampling. */
  clock(): Promise<number>;
  close(): Promise<void>;
}

/** Who acts: a live session, and the term when it acts as leader. The store refuses one that has ended. */
export interface Authority {
  sessionId: number;
  term: number | null;
}

// ---- tasks

export interface TaskRecord {
  taskId: number;
  name: string;
  version: number;
  definition: TaskDefinition;
  groupId: number;
  paused: { atMs: number; by: string; why: string } | null;
  changedMs: number;
  nextSlotMs: number | null;
  /** Of the task's own calendar, as it is now. */
  calendar?: Calendar;
  /** Whose files define it: see applied-store.ts. */
  bundle?: string;
}

export interface VersionRecord {
  version: number;
  definition: TaskDefinition;
  author: string;
  reason: string;
  changedMs: number;
}

export interface TaskChange {
  taskId: number;
  version: number;
  changedMs: number;
}

export interface Change {
  author: string;
  reason: string;
  nowMs: number;
  /** Of a task that is stored because a bundle's files say so: the bundle owns it from then on. */
  bundle?: string;
}

export interface Counters {
  succeeded: number;
  failed: number;
  cancelled: number;
  skipped: number;
  missed: number;
  retried: number;
}

/** @param client in the transaction of a change that is about to be made */
export type IsWanted = (client: SqlClient) => Promise<boolean>;

export interface TaskStore {
  /**
   * Creates the task, or stores a new version when the definition differs; what was planned for the old one and is not
   * claimed is withdrawn in the same transaction. Repeatable: an equal definition changes nothing.
   * @param expectedVersion refuse with TASK_STALE unless this is the stored version; null: whatever is there
   */
  save(
    definition: TaskDefinition,
    expectedVersion: number | null,
    change: Change,
  ): Promise<{ record: TaskRecord; changed: boolean }>;
  /**
   * Stores each as whoever defines it says, whatever version is there; parts that were edited by hand stay so (see
   * task-edits.ts). Those that the store has never had in one statement together, a definition
   * changed by a transaction of its own. Repeatable. For a thousand at a time. @returns their records, in any order
   */
  saveAll(definitions: readonly TaskDefinition[], change: Change): Promise<TaskRecord[]>;
  /** @throws TASK_UNKNOWN */
  byName(name: string): Promise<TaskRecord>;
  /** Those that exist and are not removed. */
  byNames(names: string[]): Promise<TaskRecord[]>;
  byIds(taskIds: number[]): Promise<TaskRecord[]>;
  /** Tasks whose last change was made then or later: an edit, a pause, a resume, a removal. */
  changedSince(sinceMs: number): Promise<TaskChange[]>;
  list(): Promise<TaskRecord[]>;
  /** Newest first. */
  versions(name: string): Promise<VersionRecord[]>;
  /**
   * Withdraws what is planned and not claimed. @param isWanted asked in the change's own transaction, with the task locked:
   * whether it is still to be made @returns runs claimed and not known to be started, now asked back
   */
  pause(name: string, change: Change, isWanted?: IsWanted): Promise<{ recalled: number[] }>;
  resume(name: string, change: Change, isWanted?: IsWanted): Promise<void>;
  /** Of tasks changed since: what the change left behind, see set-aside.ts. @returns how many runs */
  takeUpLeft(changedSinceMs: number, nowMs: number): Promise<number>;
  /** @param expectedVersion as in `save` */
  remove(name: string, change: Change, expectedVersion?: number | null): Promise<{ recalled: number[] }>;
  /** Exact: equal to the rows that ended. */
  counters(taskIds: number[]): Promise<Map<number, Counters>>;
  /** Folds counter rows together. @returns how many were folded */
  foldCounters(limit: number): Promise<number>;
  /** The group's number, created when new. */
  group(name: string): Promise<number>;
}

// ---- planning

export interface DuePlan {
  taskId: number;
  version: number;
  nextSlotMs: number;
}

export interface PlanWrite extends DuePlan {
  /** What the plan's next slot becomes. */
  newNextSlotMs: number | null;
  slots: PlannedSlot[];
  missed: MissedRange[];
  /** The task counts its places, so its runs start out held. */
  gated: boolean;
}

export interface PlanStore {
  /** Plans whose next slot is at or before `untilMs`, earliest first. */
  due(untilMs: number, limit: number): Promise<DuePlan[]>;
  /**
   * Accepts slots: per task a compare-and-set of its next slot, and only where that succeeds ledger rows, runs and
   * ranges. One statement for thousands. Repeatable: a second try finds the next slot moved on.
   * @returns the tasks whose step was taken @throws FENCE_STALE when the authority is over
   */
  accept(authority: Authority, writes: PlanWrite[], nowMs: number): Promise<{ taken: Set<number>; accepted: number }>;
  /**
   * Judges the runs due by then that wait for a place, under each task's gate.
   * @returns when the next held run that must be judged is due
   */
  admitHeld(untilMs: number, nowMs: number): Promise<number | null>;
}

// ---- runs

/** `child`: spawned by a run; `after`: follows one or more; `chain`: goes on from one; `join`: follows all children of one. */
export type RunSource = "slot" | "enqueue" | "manual" | "child" | "after" | "chain" | "join";

export interface EnqueueWrite {
  taskId: number;
  payload: string | null;
  dueMs: number;
  key: string | null;
  /** By which it is limited and hashed; null or absent: its key. */
  limitKey?: string | null;
  /** A number that was drawn for it before: a run that has it is this one. */
  runId?: number | undefined;
  /** null: the task's. */
  priority: number | null;
  source: RunSource;
  /** Of a traced enqueue: the span, as traceparent writes it. Kept beside the run. */
  context?: string | undefined;
}

/** From where a traced run comes: whoever enqueued it, or a run that began it. */
export interface RunOrigin {
  runId: number;
  context: string;
  createdMs: number;
  /** It goes on from a run, or comes after several. */
  apart: boolean;
}

export interface Enqueued {
  runId: number;
  /** False: a live run of this task had the key already, and this is that run. */
  created: boolean;
}

/** Anything with pg's `query`: a client on which the caller began a transaction. */
export interface SqlClient {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}

export interface RunRecord {
  runId: number;
  task: string;
  taskId: number;
  version: number;
  state: LiveState | Outcome;
  source: RunSource;
  priority: number;
  key: string | null;
  slotMs: number | null;
  dueMs: number;
  createdMs: number;
  claimedMs: number | null;
  startedMs: number | null;
  endedMs: number | null;
  attempt: number;
  fence: number | null;
  node: string | null;
  /** To whom it is addressed, while nobody has claimed it. */
  addressee?: string | null;
  limitKey?: string | null;
  shard?: [index: number, total: number] | null;
  payload: Json;
  progress: Json;
  result: Json;
  error: Json;
}

export interface AttemptRecord {
  attempt: number;
  fence: number;
  node: string | null;
  claimedMs: number | null;
  startedMs: number | null;
  endedMs: number;
  outcome: string;
  error: Json;
}

export interface LogLine {
  runId: number;
  /** For whoever must ask whether the line's writer has the run. */
  fence?: number;
  attempt: number;
  atMs: number;
  level: "debug" | "info" | "warn" | "error";
  message: string;
  fields: Json;
}

export interface RunFilter {
  task?: string;
  states?: (LiveState | Outcome)[];
  /** Ended or due at or after. */
  sinceMs?: number;
  limit: number;
}

export interface RunStore {
  /**
   * Repeatable: numbers are drawn first, and a second try recognises its own.
   * @param local takes what is due at once
   * @param drawn empty: gets the runs' numbers, in the order of `writes`. Given again with the same writes, or some of each, what
   * is there of them already stands: whether the call that failed made it cannot be told from its error
   */
  enqueue(writes: EnqueueWrite[], nowMs: number, local?: LocalClaims, drawn?: number[]): Promise<Enqueued[]>;
  /** Of these, those that were enqueued by somebody who traces. */
  origins(runIds: number[]): Promise<RunOrigin[]>;
  /** Spans of runs, for those that these begin. One try. */
  leaveSpans(spans: { runId: number; context: string }[], nowMs: number): Promise<void>;
  /** The same inside the caller's transaction. @param places of runs that wait for one: "later" is when the caller settles gates */
  enqueueIn(client: SqlClient, write: EnqueueWrite, nowMs: number, places?: "later"): Promise<Enqueued>;
  /** @returns "cancelled" at once for what no worker has; "asked" when its worker must stop it; @throws RUN_UNKNOWN, RUN_STATE */
  /** @param by whose wish it is, where it is a wish: put down in the audit */
  cancel(runId: number, why: string, nowMs: number, by?: string): Promise<"cancelled" | "asked">;
  /** Of these runs, those still waiting for a worker's word on a recall. */
  recallsOpen(runIds: number[]): Promise<number[]>;
  find(runId: number): Promise<RunRecord>;
  list(filter: RunFilter): Promise<RunRecord[]>;
  attempts(runId: number): Promise<AttemptRecord[]>;
  logs(runId: number, limit: number): Promise<LogLine[]>;
  /** One of more than a day ago is told as of a day ago: of days before, retention may have dropped the place. */
  writeLogs(lines: LogLine[], nowMs: number): Promise<void>;
}

// ---- claims

export interface ClaimRequest {
  sessionId: number;
  groupIds: number[];
  /** Tasks of those groups that this worker cannot run. */
  exceptTaskIds: number[];
  /** Runs due at or before this. */
  untilMs: number;
  limit: number;
  /** How many of them could start at once: of a group with a limit no more are taken. Absent: all. */
  free?: number;
  nowMs: number;
}

export interface ClaimedRun {
  runId: number;
  taskId: number;
  version: number;
  fence: number;
  attempt: number;
  dueMs: number;
  slotMs: number | null;
  priority: number;
  key: string | null;
  payload: Json;
  /** Of a run that was split: its part, from 0, and how many there are. */
  shard?: [index: number, total: number] | null;
  /** What an attempt before this one, or the run that this one goes on from, has left. */
  state?: Json;
  /** The task counts its places or plans from a run's end, or other runs depend on it, so its end takes the longer way. */
  linked: boolean;
}

/** Room that a worker of this process has for runs that are made here: claimed by the statement that makes them. */
export interface LocalClaims {
  sessionId: number;
  groupIds: number[];
  untilMs: number;
  room: number;
  /** @param readyMs the earliest due time of what was made and not claimed; Infinity: there is none */
  made(claimed: ClaimedRun[], readyMs: number): void;
  /** Claims may have been made that nobody was told of: the store's book has them. */
  lost(): void;
}

export interface ClaimAnswer {
  runs: ClaimedRun[];
  /** Asks when to claim again: the earliest due time left, null when nothing waits. What was claimed need not wait for it. */
  nextDue: () => Promise<number | null>;
}

export type Verdict =
  | {
      kind: "ended";
      outcome: "succeeded" | "failed" | "cancelled";
      result: string | null;
      error: string | null;
      /** Only of a success: written with it. */
      onward?: Onward;
      cutShort?: true;
    }
  /**
   * `ask`: not before an operator says so. `askedMs`: what `dueMs` has of the handler's `retryAfterMs`, for who sets it anew.
   * `cutShort`: by this worker and not by its handler, so that `onWorkerLost` has decided.
   */
  | { kind: "retry"; dueMs: number; error: string | null; ask?: boolean; askedMs?: number; cutShort?: true }
  | { kind: "released" };

export interface Settlement {
  /** Of whom a server speaks for many sessions at once; default: the one that settles. */
  sessionId?: number;
  runId: number;
  fence: number;
  attempt: number;
  taskId: number;
  linked: boolean;
  /** Its task keeps no history of what went well: of a success only a trace is left, where no other run reads more. */
  unkept?: boolean;
  startedMs: number | null;
  endedMs: number;
  verdict: Verdict;
}

export interface ReclaimedRun {
  runId: number;
  taskId: number;
  fence: number;
  attempt: number;
  sessionId: number;
  /** `release`: it cannot have been started, so it goes back as if it had not been claimed. */
  outcome: "retry" | "fail" | "ask" | "cancel" | "release";
}

export interface ClaimStore {
  claim(request: ClaimRequest): Promise<ClaimAnswer>;
  /** What could be claimed in the time that comes. */
  coming(request: ComingRequest): Promise<ComingAnswer>;
  /**
   * The turn of tasks that would wait behind the older runs of others: of each that has due runs, a few. Looks at a
   * bounded number of tasks. @returns where the next turn goes on; 0: the round is complete
   */
  turn(request: TurnRequest): Promise<{ runs: ClaimedRun[]; lastTaskId: number }>;
  /**
   * Applies verdicts whose fence is the run's. Repeatable: a verdict found applied already counts as applied.
   * @returns the fences whose verdict was refused, because the claim is no longer theirs
   */
  settle(sessionId: number, settlements: Settlement[], nowMs: number): Promise<Set<number>>;
  /** Settles one run inside the caller's transaction. @returns whether the claim still stood */
  settleIn(client: SqlClient, sessionId: number, settlement: Settlement, nowMs: number): Promise<boolean>;
  /** What this session holds by the store's book, for a worker that lost a reply. */
  heldBy(sessionId: number): Promise<ClaimedRun[]>;
  /** Moves what was not taken back yet from a lost session of the same process to its new one. @returns what moved */
  adopt(oldSessionId: number, newSessionId: number): Promise<ClaimedRun[]>;
  /** Claims of this session that are asked back. */
  recalls(sessionId: number): Promise<{ runId: number; fence: number; kind: "cancel" | "withdraw"; why: string }[]>;
  /** The worker's answer to a withdrawal of what had started already; also reports starts and progress of long runs. */
  report(
    sessionId: number,
    reports: { runId: number; fence: number; startedMs: number; progress: string | null }[],
  ): Promise<void>;
  /**
   * Takes back claims of an ended session: those that it never reported as started at once, for its worker stops those too
   * when its trust ends; the others where the task's grace has passed since it was found silent.
   */
  reclaim(sessionId: number, silentForMs: number, nowMs: number, limit: number): Promise<ReclaimedRun[]>;
}

// ---- signals

export type Signal =
  | { kind: "ready"; dueMs: number }
  /** A held run must be judged then, or a token comes. */
  | { kind: "held"; dueMs: number }
  /** A run is to be addressed. */
  | { kind: "direct"; dueMs: number }
  /** Runs were addressed to this session. */
  | { kind: "directed"; sessionId: number; dueMs: number }
  | { kind: "recall" }
  /** Tasks were made, edited, paused, resumed or removed. */
  | { kind: "tasks" }
  /** A slot is open that was not before: the next of a fixed delay, whose run has ended. */
  | { kind: "plans" }
  /** An operation was begun or stopped. */
  | { kind: "operations" }
  | { kind: "leadership" }
  /** Of a leader that relies on the store: what is told at once is noticed at once when it stops. */
  | { kind: "beat"; sessionId: number; beat: number }
  /** Whoever has this token in a lock's line holds the lock now. */
  | { kind: "lock"; token: string }
  /** Signals may have been lost: look at everything. */
  | { kind: "resync" };

export interface SignalStore {
  /** Calls back until `signal` aborts. Signals hint; they may be lost, doubled or late. */
  listen(listener: (signal: Signal) => void, signal: AbortSignal): Promise<void>;
}
