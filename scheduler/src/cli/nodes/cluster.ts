import type { SignIn, Token, User } from "../../access/access-store.ts";
import type { AuditChain, ChainRow } from "../../access/audit-chain.ts";
import type { Hook, HookContent } from "../../access/hooks/hook.ts";
import type { AskedPreview, PreviewedRun } from "../../access/hooks/preview.ts";
import type { AskedToken } from "../../access/new-token.ts";
import type { Quota, QuotaKind, QuotaLimits } from "../../access/quota-store.ts";
import type { SecretRecord } from "../../access/secrets/secret-store.ts";
import type { WorkerKey } from "../../access/worker-store.ts";
import type { AlarmRecord, OutboxRow, Silence } from "../../alarms/alarm-store.ts";
import type { RuleContent, StoredRule } from "../../alarms/stored-rules.ts";
import type { comparisonObject } from "../../api/calendar-json.ts";
import type { Answer } from "../../api/contract.ts";
import type { taskObject } from "../../api/task-json.ts";

import type { applyWhole, GivenItems } from "../../apply/apply-items.ts";
import type { PlanOptions } from "../../apply/apply-plan.ts";
import type { ApplyPlan } from "../../apply/plan-items.ts";
import type { DrainedNode, Holds } from "../../cluster/drain-store.ts";
import type { Leadership, Member, Term } from "../../cluster/session-store.ts";
import type { DeadGroups, DeadLetter } from "../../run/dead-letters.ts";
import type { EnqueueOptions } from "../../run/enqueue-options.ts";
import type { Follower, LateResult, Relative } from "../../run/flow.ts";
import type { OperationFilter, OperationRecord, OperationRequest, OperationState } from "../../run/operations.ts";
import type { AttemptRecord, Enqueued, LogLine, RunFilter, RunRecord } from "../../run/run-record.ts";
import type { Calendar, CalendarContent } from "../../schedule/calendar.ts";
import type { ConsumerRecord } from "../../store/event-store.ts";
import type { CalendarRecord, DayNames } from "../../task/calendar-store.ts";
import type { TaskPart } from "../../task/edits.ts";
import type { GroupRecord } from "../../task/group-store.ts";
import type { StatisticsPeriod, TaskStatistics } from "../../task/statistics/statistics.ts";
import type { TaskDefinition, TaskOptions } from "../../task/task.ts";
import type { Counters, ReleaseOfTask, TaskRecord, VersionRecord } from "../../task/task-record.ts";

/** The options of a run that a user starts. `at` is in epoch ms. */
export interface ManualOptions
  extends Pick<EnqueueOptions, "labels" | "in" | "key" | "ifKeyTaken" | "uniqueFor" | "priority"> {
  at?: number;
}

/**
 * The calls that commands make to a cluster: through its store (cluster/by-store.ts), or through a server's HTTP API
 * (cluster/by-server.ts). Both ways return the store's own records, so the output of a command is the same. The author of a change is this
 * machine's user, or the token's user.
 */
export interface Cluster {
  readonly by: "store" | "server";
  /** Description for messages: "PostgreSQL at db.example:5432/app", "the server at https://carillon.example". */
  readonly place: string;
  /** Returns the store's clock in epoch ms, as exactly as this process can estimate it. */
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
  readonly hooks: ClusterHooks;
  readonly events: ClusterEvents;
  readonly alarms: ClusterAlarms;
  readonly drains: ClusterDrains;
  readonly quotas: ClusterQuotas;
  readonly audit: ClusterAudit;
  members(): Promise<{ members: Member[]; leadership: Leadership }>;
  /** Returns the latest terms, newest first. */
  terms(limit: number): Promise<Term[]>;
  /** Returns the id of the cluster's coordination service; "store": the store coordinates; null: no node has started yet. */
  coordination(): Promise<string | null>;
  close(): Promise<void>;
}

export type ListedTask = ReturnType<typeof taskObject>;

export interface EndListener {
  ended(run: RunRecord): void;
  /** Called when the cluster has become unreachable, while `follow` keeps trying; `back` is called when it is reachable again. */
  away(): void;
  back(): void;
  /** Called when more runs ended at once than `follow` reports, so that some are omitted. */
  left(): void;
}

export interface TaskCard {
  record: TaskRecord;
  counters: Counters;
  /** The number of the task's named schedules. */
  schedules: number;
  followers: Follower[];
  /** The releases whose programs define the task, newest first. */
  releases: ReleaseOfTask[];
}

export interface ClusterTasks {
  /** Returns all tasks, or only the named schedules of the task `of`, or only tasks with this owner. */
  list(which?: { of?: string | undefined; owner?: string | undefined }): Promise<ListedTask[]>;
  /** Returns the records of these tasks with their definitions; default: of all tasks. @throws TASK_UNKNOWN */
  records(names?: string[]): Promise<TaskRecord[]>;
  /** @throws TASK_UNKNOWN */
  find(name: string): Promise<TaskCard>;
  /** @param sinceMs a time in the first period, in epoch ms; undefined: the latest periods @throws TASK_UNKNOWN */
  statistics(name: string, by: StatisticsPeriod, sinceMs: number | undefined): Promise<TaskStatistics>;
  /** Returns the task's versions, newest first. */
  versions(name: string): Promise<VersionRecord[]>;
  /** Defines the task as a program does: parts that users have edited keep their edits. */
  define(definition: TaskDefinition, reason: string): Promise<{ version: number; changed: boolean }>;
  /**
   * Changes options of the task; `revert` undoes edits of some parts. Both throw TASK_STALE if the task is no longer at the record's
   * version.
   */
  edit(record: TaskRecord, options: TaskOptions, change: EditChange): Promise<{ record: TaskRecord; changed: boolean }>;
  revert(record: TaskRecord, parts: TaskPart[], change: EditChange): Promise<{ record: TaskRecord; changed: boolean }>;
  /** Pauses the task. @returns its runs that continue, and the number of waiting runs that are held until the resume, or are skipped */
  pause(
    name: string,
    reason: string,
    untilMs: number | null,
  ): Promise<{ running: number[]; held: number; skipped: number }>;
  /** Resumes the task. @returns the next slot in epoch ms; null: there is none */
  resume(name: string, reason: string): Promise<number | null>;
  /**
   * Enqueues a run. @returns `run`: the run's id; `created`: false if no run was created because an earlier run has the same key;
   * then `run` is the id of the earlier run
   */
  run(name: string, payload: unknown, options: ManualOptions): Promise<{ run: number; created: boolean }>;
  /** Removes the task and its named schedules. @throws TASK_UNKNOWN */
  remove(name: string, reason: string): Promise<void>;
}

export interface ClusterBundles {
  /** Plans the changes that make the bundle's tasks, alarm rules and hooks equal to the given ones. */
  plan(wanted: readonly TaskDefinition[], items: GivenItems, options: PlanOptions): Promise<Planned>;
}

export interface Planned {
  plan: ApplyPlan;
  id: string;
  /**
   * Executes the plan, one transaction per task. @param author only through a store; a server records the token's user
   * @throws TASK_STALE through a server if the plan has changed in the meantime
   */
  apply(reason: string, author?: string): ReturnType<typeof applyWhole>;
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
   * Returns unfinished runs, then ended runs, the latest first.
   * @param whole true: with payload, progress and result, for which a server is called once per run
   */
  list(filter: RunFilter & { states: RunRecord["state"][] }, whole?: boolean): Promise<RunRecord[]>;
  /** @throws RUN_UNKNOWN */
  find(runId: number): Promise<RunRecord>;
  /** Returns the run with all its details. @throws RUN_UNKNOWN */
  card(runId: number): Promise<RunCard>;
  /** Returns up to `limit` log lines, the oldest first. */
  logs(runId: number, limit: number): Promise<LogLine[]>;
  cancel(runId: number, reason: string | undefined): Promise<"cancelled" | "stopping">;
  /** Starts a new run with the input of an ended run. @throws RUN_UNKNOWN, RUN_STATE, TASK_UNKNOWN */
  rerun(runId: number, reason: string): Promise<Enqueued>;
  decide(runId: number, how: "retry" | "fail", reason: string): Promise<void>;
  /**
   * Calls the listener for each run that ends from now on, until `signal` aborts. Reports outages of the cluster, and continues after them.
   */
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
  /** Starts an operation. @param token only one operation is started per token, so the call can be repeated @returns its id */
  begin(bulk: Bulk, token: string): Promise<number>;
  find(operationId: number): Promise<OperationRecord>;
  /** Returns operations, newest first. */
  list(limit: number): Promise<OperationRecord[]>;
  stop(operationId: number): Promise<OperationState>;
  /** Executes one step of the operation if this process has access to the store; through a server the leader executes the steps. */
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
  /** Compares this content with the stored version, and stores nothing. @throws CALENDAR_UNKNOWN, CALENDAR_INVALID */
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
  /** Returns all quotas; `used` is null through a store, because only servers count the use. */
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
  /** Sets a new password and unlocks the user. */
  setPassword(name: string, password: string): Promise<ListedUser>;
  removeUser(name: string, reason: string): Promise<ListedUser>;
  /** Returns the user's sign-ins that have not ended, newest first. @throws USER_UNKNOWN */
  signIns(name: string): Promise<ListedSignIn[]>;
  /**
   * Ends sign-ins. @param signInId null: all sign-ins of the user @returns the number that were ended @throws USER_UNKNOWN,
   * SIGN_IN_UNKNOWN
   */
  endSignIns(name: string, signInId: number | null, reason: string): Promise<number>;
  /** Removes the user's second factor. @throws USER_UNKNOWN, SECOND_FACTOR_UNKNOWN */
  resetSecondFactor(name: string, reason: string): Promise<void>;
  /** Returns the tokens of all users, newest first. */
  tokens(): Promise<ListedToken[]>;
  /**
   * Creates a token. @returns `text` is the secret with which a program authenticates @throws USER_UNKNOWN, TOKEN_NAME_TAKEN,
   * OPTION_INVALID
   */
  createToken(user: string, token: AskedToken, reason: string): Promise<{ token: ListedToken; text: string }>;
  /** @throws TOKEN_UNKNOWN */
  revokeToken(user: string, name: string, reason: string): Promise<void>;
  keys(): Promise<ListedKey[]>;
  /** Returns the newest key with this name. @throws KEY_NAME_UNKNOWN */
  key(name: string): Promise<ListedKey>;
  /** Creates a worker key. @returns `text` is the secret with which workers authenticate */
  createKey(name: string, groups: string[], expiresInMs: number | undefined): Promise<{ key: ListedKey; text: string }>;
  revokeKey(name: string): Promise<ListedKey>;
}

export interface ClusterAudit {
  chain(): Promise<AuditChain>;
  /** Yields all rows of the chain, in order. */
  chained(): AsyncIterable<ChainRow>;
  /** Yields the contents of the rows that are older than the chain. */
  older(): AsyncIterable<string>;
}

/** Access to secrets; their values can be set but not read. */
export interface ClusterSecrets {
  list(): Promise<SecretRecord[]>;
  /** Stores a new version of a secret. @param tasks undefined: unchanged */
  set(name: string, value: string, tasks: string[] | null | undefined, reason: string): Promise<SecretRecord>;
  remove(name: string, reason: string): Promise<void>;
  /**
   * Encrypts some of the data keys again with the present key. @returns the id of the present key, the number of versions changed now, and
   * the number left
   */
  rewrap(reason: string): Promise<{ key: string; rewrapped: number; left: number }>;
}

export interface ClusterHooks {
  list(): Promise<Hook[]>;
  /** @throws HOOK_UNKNOWN */
  find(name: string): Promise<Hook>;
  /** Stores a new hook, or the next version of the hook with this name. @throws OPTION_INVALID, SECRET_FORBIDDEN */
  set(name: string, content: HookContent, reason: string): Promise<Hook>;
  /** Returns the run that a request would enqueue. @returns null: the request would be ignored @throws HOOK_UNKNOWN, REQUEST_INVALID */
  preview(name: string, request: AskedPreview): Promise<PreviewedRun | null>;
  /** @throws HOOK_UNKNOWN */
  remove(name: string, reason: string): Promise<void>;
}

/** Named consumers of events, webhooks of events among them. */
export interface ClusterEvents {
  /** Returns them by name. */
  list(): Promise<ConsumerRecord[]>;
  /**
   * Delivers retained events again. @param sinceMs null: from the failing event on @throws CONSUMER_UNKNOWN, OPTION_INVALID for a time in
   * the future
   */
  redeliver(consumer: string, sinceMs: number | null, reason: string): Promise<ConsumerRecord>;
}

export interface ClusterAlarms {
  /** Returns the open alarms, and the latest messages about alarms. */
  look(messages: number): Promise<{ open: AlarmRecord[]; messages: OutboxRow[] }>;
  /** Acknowledges open alarms. @param task null: all open alarms of the rule @returns the number of acknowledged alarms */
  acknowledge(rule: string, task: string | null, reason: string): Promise<number>;
  /** Returns the silences in force, newest first. */
  silences(): Promise<Silence[]>;
  silence(rule: string | null, task: string | null, span: string, reason: string): Promise<Silence>;
  unsilence(silenceId: number, reason: string): Promise<void>;
  /** Returns the stored rules; and in `given` the rules of the answering server's settings, which can be changed only in these settings. */
  rules(): Promise<{ given: Answer<"listAlarmRules">["rules"]; stored: StoredRule[] }>;
  /** @throws ALARM_UNKNOWN */
  rule(name: string): Promise<StoredRule>;
  /** Stores a new rule, or the next version of the rule with this name. @throws ALARM_RULE_EXISTS, ALARM_RULE_STALE, OPTION_INVALID */
  setRule(name: string, content: RuleContent, reason: string): Promise<StoredRule>;
  /** @throws ALARM_UNKNOWN */
  removeRule(name: string, reason: string): Promise<void>;
}
