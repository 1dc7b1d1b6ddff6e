import type { SignIn, Token, User } from "../../access/access-store.ts";
import type { AuditChain, ChainRow } from "../../access/audit-chain.ts";
import type { AskedToken } from "../../access/new-token.ts";
import type { Quota, QuotaKind, QuotaLimits } from "../../access/quota-store.ts";
import type { SecretRecord } from "../../access/secrets/secret-store.ts";
import type { WorkerKey } from "../../access/worker-store.ts";
import type { AlarmRecord, OutboxRow, Silence } from "../../alarms/alarm-store.ts";
import type { RuleContent, StoredRule } from "../../alarms/stored-rules.ts";
import type { comparisonObject } from "../../api/calendar-json.ts";
import type { Answer } from "../../api/contract.ts";
import type { taskObject } from "../../api/task-json.ts";
import type { Applied } from "../../apply/apply.ts";
import type { ApplyPlan, PlanOptions } from "../../apply/apply-plan.ts";
import type { DrainedNode, Holds } from "../../cluster/drain-store.ts";
import type { Leadership, Member, Term } from "../../cluster/session-store.ts";
import type { DeadGroups, DeadLetter } from "../../run/dead-letters.ts";
import type { EnqueueOptions } from "../../run/enqueue-options.ts";
import type { Follower, LateResult, Relative } from "../../run/flow.ts";
import type { OperationFilter, OperationRecord, OperationRequest, OperationState } from "../../run/operations.ts";
import type { AttemptRecord, Enqueued, LogLine, RunFilter, RunRecord } from "../../run/run-record.ts";
import type { Calendar, CalendarContent } from "../../schedule/calendar.ts";
import type { CalendarRecord, DayNames } from "../../task/calendar-store.ts";
import type { TaskPart } from "../../task/edits.ts";
import type { GroupRecord } from "../../task/group-store.ts";
import type { TaskDefinition, TaskOptions } from "../../task/task.ts";
import type { Counters, ReleaseOfTask, TaskRecord, VersionRecord } from "../../task/task-record.ts";

/** The options of a run that is started by hand. `at` in epoch milliseconds. */
export interface ManualOptions
  extends Pick<EnqueueOptions, "labels" | "in" | "key" | "ifKeyTaken" | "uniqueFor" | "priority"> {
  at?: number;
}

/**
 * The calls that commands make to a cluster: through its store (cluster/by-store.ts), or through a server's HTTP API
 * (cluster/by-server.ts). Both return the store's own records, so that a command prints the same in both cases. The author of a change is
 * this machine's user, or the token's user. Calls that only the store supports are refused with STORE_NEEDED.
 */
export interface Cluster {
  readonly by: "store" | "server";
  /** For people: "PostgreSQL at db.example:5432/app", "the server at https://carillon.example". */
  readonly place: string;
  /** The store's clock in epoch milliseconds, as precisely as this process can estimate it. */
  readonly nowMs: () => number;
  readonly tasks: ClusterTasks;
  readonly bundles: ClusterBundles;
  readonly runs: ClusterRuns;
  readonly operations: ClusterOperations;
  readonly dead: ClusterDeadLetters;
  readonly calendars: ClusterCalendars;
  readonly groups: ClusterGroups;
  readonly access: ClusterAccess;
  readonly secrets: ClusterSecrets;
  readonly alarms: ClusterAlarms;
  readonly drains: ClusterDrains;
  readonly quotas: ClusterQuotas;
  readonly audit: ClusterAudit;
  members(): Promise<{ members: Member[]; leadership: Leadership }>;
  /** The latest terms, newest first. */
  terms(limit: number): Promise<Term[]>;
  /** The id of the cluster's coordination service; `store`: there is none; null: no node has started yet. */
  coordination(): Promise<string | null>;
  close(): Promise<void>;
}

export type ListedTask = ReturnType<typeof taskObject>;

export interface EndListener {
  ended(run: RunRecord): void;
  /** The cluster cannot be reached; `follow` keeps trying. */
  away(): void;
  back(): void;
  /** More runs ended at once than `follow` reports. */
  left(): void;
}

export interface TaskCard {
  record: TaskRecord;
  counters: Counters;
  /** How many schedules the task has. */
  schedules: number;
  followers: Follower[];
  /** The releases of the code that defines the task, the newest first. */
  releases: ReleaseOfTask[];
}

export interface ClusterTasks {
  /** @param of lists only the schedules of this task */
  list(of?: string): Promise<ListedTask[]>;
  /** The records of these tasks with their definitions; default: of all tasks. @throws TASK_UNKNOWN */
  records(names?: string[]): Promise<TaskRecord[]>;
  /** @throws TASK_UNKNOWN */
  find(name: string): Promise<TaskCard>;
  /** The versions, newest first. */
  versions(name: string): Promise<VersionRecord[]>;
  /** Sets the task's definition as code would: parts that were edited by hand keep their edits. */
  define(definition: TaskDefinition, reason: string): Promise<{ version: number; changed: boolean }>;
  /** @throws TASK_STALE unless the task is at this version */
  edit(record: TaskRecord, options: TaskOptions, change: EditChange): Promise<{ record: TaskRecord; changed: boolean }>;
  revert(record: TaskRecord, parts: TaskPart[], change: EditChange): Promise<{ record: TaskRecord; changed: boolean }>;
  /** @returns its runs that continue, and how many waiting runs are held until the task is resumed, or are skipped */
  pause(
    name: string,
    reason: string,
    untilMs: number | null,
  ): Promise<{ running: number[]; held: number; skipped: number }>;
  /** @returns the next slot in epoch milliseconds; null: there is none */
  resume(name: string, reason: string): Promise<number | null>;
  /** @returns the run's number */
  /** `created` is false if a run has the key, or stands for it; then this is that run. */
  run(name: string, payload: unknown, options: ManualOptions): Promise<{ run: number; created: boolean }>;
  /** Also removes the task's schedules. @throws TASK_UNKNOWN */
  remove(name: string, reason: string): Promise<void>;
}

export interface ClusterBundles {
  /** The changes that would make the bundle's tasks equal to `wanted`. */
  plan(wanted: readonly TaskDefinition[], options: PlanOptions): Promise<Planned>;
}

export interface Planned {
  plan: ApplyPlan;
  id: string;
  /**
   * Carries out the plan, one transaction per task. @param author is used only by implementations that can choose an author
   * @throws TASK_STALE through a server, if the plan has changed meanwhile
   */
  apply(reason: string, author?: string): Promise<Applied[]>;
}

export interface EditChange {
  expectedVersion: number;
  reason: string;
}

export interface RunCard {
  run: RunRecord;
  attempts: AttemptRecord[];
  relatives: Relative[];
  late: LateResult[];
  letter: Pick<DeadLetter, "state" | "fingerprint" | "redrivenBy"> | null;
  redrives: number | null;
}

export interface ClusterRuns {
  /**
   * Live runs, then ended ones, the latest first.
   * @param whole true: includes payload, progress and result, for which a server is called once per run
   */
  list(filter: RunFilter & { states: RunRecord["state"][] }, whole?: boolean): Promise<RunRecord[]>;
  /** @throws RUN_UNKNOWN */
  find(runId: number): Promise<RunRecord>;
  /** The run with all its details. @throws RUN_UNKNOWN */
  card(runId: number): Promise<RunCard>;
  /** The oldest lines first, up to `limit`. */
  logs(runId: number, limit: number): Promise<LogLine[]>;
  cancel(runId: number, reason: string | undefined): Promise<"cancelled" | "stopping">;
  /** Repeats an ended run as a new run. @throws RUN_UNKNOWN, RUN_STATE, TASK_UNKNOWN */
  rerun(runId: number, reason: string): Promise<Enqueued>;
  decide(runId: number, how: "retry" | "fail", reason: string): Promise<void>;
  /** Reports each run that ends from now on, until `signal` aborts. Continues after an outage of the cluster, and reports outages. */
  follow(
    task: string | undefined,
    known: readonly RunRecord[],
    listener: EndListener,
    signal: AbortSignal,
  ): Promise<void>;
}

export type Bulk = Pick<OperationRequest, "kind" | "filter" | "range" | "pauseUntilMs" | "reason">;

export interface ClusterOperations {
  preview(bulk: Bulk, show: number): Promise<{ total: number; first: string[] }>;
  /** Repeatable: only one operation is started per token. */
  begin(bulk: Bulk, token: string): Promise<number>;
  find(operationId: number): Promise<OperationRecord>;
  /** The operations, newest first. */
  list(limit: number): Promise<OperationRecord[]>;
  stop(operationId: number): Promise<OperationState>;
  /** Executes one step of the operation if this process can; otherwise the nodes execute it. */
  step(operationId: number): Promise<{ stepped: number | null; nextMs: number | null }>;
}

export interface ClusterDeadLetters {
  groups(filter: OperationFilter): Promise<DeadGroups>;
  letters(filter: OperationFilter, limit: number): Promise<DeadLetter[]>;
}

export interface ClusterCalendars {
  set(
    name: string,
    content: CalendarContent & { names?: DayNames },
    reason: string,
    mayShrink: boolean,
  ): Promise<{ calendar: Calendar; changed: boolean; tasks: string[] }>;
  /** Compares this content with the stored version and stores nothing. @throws CALENDAR_UNKNOWN, CALENDAR_INVALID */
  compare(name: string, content: CalendarContent): Promise<ReturnType<typeof comparisonObject>>;
  find(name: string, version?: number): Promise<CalendarRecord>;
  list(): Promise<CalendarRecord[]>;
  remove(name: string): Promise<void>;
}

export interface ClusterGroups {
  list(): Promise<GroupRecord[]>;
  limit(name: string, most: number | null, reason: string): Promise<{ changed: boolean }>;
}

export interface ClusterQuotas {
  /** `used` is null if no server counts the use. */
  list(): Promise<(Quota & { used: QuotaLimits | null })[]>;
  set(kind: QuotaKind, name: string, given: QuotaLimits, reason: string): Promise<{ changed: boolean }>;
}

export interface ClusterDrains {
  list(): Promise<DrainedNode[]>;
  drain(node: string, reason: string): Promise<Holds & { changed: boolean }>;
  resume(node: string, reason: string): Promise<{ changed: boolean }>;
}

export type ListedUser = Pick<
  User,
  "name" | "role" | "grants" | "createdMs" | "createdBy" | "disabledMs" | "secondFactorMs"
>;
export type GivenUser = Pick<User, "name" | "role" | "grants"> & { password: string };
export type ListedSignIn = Omit<SignIn, "hash">;
export type ListedToken = Omit<Token, "tokenId" | "userId">;
export type ListedKey = Pick<WorkerKey, "name" | "groups" | "createdMs" | "createdBy" | "expiresMs" | "revokedMs">;

export interface ClusterAccess {
  users(): Promise<ListedUser[]>;
  /** @throws USER_UNKNOWN */
  user(name: string): Promise<ListedUser>;
  createUser(user: GivenUser, reason: string): Promise<ListedUser>;
  /** Also unlocks the user. */
  setPassword(name: string, password: string): Promise<ListedUser>;
  removeUser(name: string, reason: string): Promise<ListedUser>;
  /** The user's sign-ins that have not ended, newest first. @throws USER_UNKNOWN */
  signIns(name: string): Promise<ListedSignIn[]>;
  /** @param signInId null: all sign-ins @returns how many were ended @throws USER_UNKNOWN, SIGN_IN_UNKNOWN */
  endSignIns(name: string, signInId: number | null, reason: string): Promise<number>;
  /** @throws USER_UNKNOWN, SECOND_FACTOR_UNKNOWN */
  resetSecondFactor(name: string, reason: string): Promise<void>;
  /** The tokens, newest first. */
  tokens(): Promise<ListedToken[]>;
  /** @returns `text` is the secret with which a program authenticates @throws USER_UNKNOWN, TOKEN_NAME_TAKEN, OPTION_INVALID */
  createToken(user: string, token: AskedToken, reason: string): Promise<{ token: ListedToken; text: string }>;
  /** @throws TOKEN_UNKNOWN */
  revokeToken(user: string, name: string, reason: string): Promise<void>;
  keys(): Promise<ListedKey[]>;
  /** The newest key of this name. @throws KEY_NAME_UNKNOWN */
  key(name: string): Promise<ListedKey>;
  /** @returns `text` is the key with which workers authenticate */
  createKey(name: string, groups: string[], expiresInMs: number | undefined): Promise<{ key: ListedKey; text: string }>;
  revokeKey(name: string): Promise<ListedKey>;
}

export interface ClusterAudit {
  chain(): Promise<AuditChain>;
  /** All rows of the chain, in its order. */
  chained(): AsyncIterable<ChainRow>;
  /** The contents of rows from before the chain. */
  older(): AsyncIterable<string>;
}

/** The secrets' metadata; their values cannot be read. */
export interface ClusterSecrets {
  list(): Promise<SecretRecord[]>;
  /** @param tasks undefined: unchanged */
  set(name: string, value: string, tasks: string[] | null | undefined, reason: string): Promise<SecretRecord>;
  remove(name: string, reason: string): Promise<void>;
  /** Rewraps some of the secrets. @returns the id of the present key, how many secrets were rewrapped now, and how many are left */
  rewrap(reason: string): Promise<{ key: string; rewrapped: number; left: number }>;
}

export interface ClusterAlarms {
  /** The open alarms, and the last messages about them. */
  look(messages: number): Promise<{ open: AlarmRecord[]; messages: OutboxRow[] }>;
  /** @param task null: all open alarms of the rule @returns how many were acknowledged */
  acknowledge(rule: string, task: string | null, reason: string): Promise<number>;
  /** The silences in force, newest first. */
  silences(): Promise<Silence[]>;
  silence(rule: string | null, task: string | null, span: string, reason: string): Promise<Silence>;
  unsilence(silenceId: number, reason: string): Promise<void>;
  /** The stored rules; `given`: those of the settings of the server that answers, which only these settings change. */
  rules(): Promise<{ given: Answer<"listAlarmRules">["rules"]; stored: StoredRule[] }>;
  /** @throws ALARM_UNKNOWN */
  rule(name: string): Promise<StoredRule>;
  /** Stores a new rule, or the next version of the rule of this name. @throws ALARM_RULE_STALE, OPTION_INVALID */
  setRule(name: string, content: RuleContent, reason: string): Promise<StoredRule>;
  /** @throws ALARM_UNKNOWN */
  removeRule(name: string, reason: string): Promise<void>;
}
