import type { Change } from "../base/change.ts";
import type { ClockVotes, ClusterClock, TimeBack } from "./clock-votes.ts";
import type { Sweep } from "./sweeps.ts";

export interface SessionIdentity {
  node: string;
  role: "node" | "worker";
  host: string;
  pid: number;
  version: string;
  timeoutMs: number;
  /** The groups whose tasks the process runs. */
  groups?: readonly string[];
  /**
   * The process's labels, such as its machine's location; a task can require labels. A heartbeat's answer lacks labels and the fields
   * below.
   */
  labels?: Readonly<Record<string, string>>;
  /** How many runs the process runs at once; 0: none; null: an older version, which does not report it. */
  capacity?: number | null;
  settings?: SessionSettings | null;
}

/**
 * Settings of a process that must agree with those of other processes, or that other processes need to know. The optional
 * fields are missing in reports of older versions.
 */
export interface SessionSettings {
  retentionMs: number;
  horizonMs: number;
  claimAheadMs: number;
  /** The address at which other processes reach this one, host:port; null if it has none. */
  address?: string | null;
  /** The coordination service as configured, without secrets; null if only the store is used. */
  coordination?: string | null;
  /** True if the process never leads. */
  observer?: boolean;
  /** True if channels for alarms are configured. Absent in reports of older versions. */
  alarms?: boolean;
  /**
   * The certificates in files that the settings name, see `certificatesOf`. Absent if there are none, or in reports of older versions.
   * `beginsMs` is absent in reports of older versions.
   */
  certificates?: readonly { file: string; beginsMs?: number; endsMs: number }[];
  /** The release of the task definitions that this process contains, if any; see task/release.ts. */
  release?: string;
}

export interface Member extends SessionIdentity {
  sessionId: number;
  /** The tasks for which a remote worker has handlers; null or absent: it may run any task of its groups. */
  tasks?: readonly string[] | null;
  beat: number;
  /** True if the member relies on a coordination service that reports it alive, so it sends heartbeats to the store rarely. */
  witnessed: boolean;
  startedMs: number;
  seenMs: number;
  /** True if the member claims no further runs, because an operator has drained its node or because it is stopping. */
  draining?: boolean;
  /**
   * For how long its event loop had been blocked at the last report of its stand-in thread, in ms; null if the event loop runs.
   */
  stillMs: number | null;
}

export interface Leadership {
  term: number;
  /** The leader's session; null if no node leads. */
  sessionId: number | null;
}

/** The fields of a member that a heartbeat's answer contains; they suffice to detect that a member no longer sends heartbeats. */
export type Beating = Pick<Member, "sessionId" | "node" | "role" | "beat" | "witnessed" | "timeoutMs">;

export interface Pulse {
  /** Cluster time: the store's clock plus the shift. */
  storeMs: number;
  /** The shift and its version; `storeMs` already contains the shift. */
  clock: ClusterClock;
  /** The PostgreSQL server that answered and the timeline of its log; null if the server does not report them. */
  server?: string | null;
  /** False: this session has ended, by this process or by another. */
  alive: boolean;
  /** True if this session must claim no further runs: an operator has drained its node, or the session reported that it is stopping. */
  draining?: boolean;
  leadership: Leadership;
  /** True if the leader's session has not ended. */
  led: boolean;
  /** The members whose heartbeats this session must watch; see `beat`. */
  members: Beating[];
  /** The earliest slot of any task that has not been planned yet, so that it has no run in the store. */
  nextSlotMs: number | null;
  /** The earliest due time among held runs: when such a run comes due, the leader decides whether it may start. */
  nextHeldMs: number | null;
  /** The earliest time at which a bulk operation has a step to execute. */
  nextOperationMs?: number | null;
  /** The earliest time at which a pause of a task ends automatically. */
  nextPauseEndMs?: number | null;
  /** False if the store has no alarm rules, so that the leader need not read them. */
  ruled?: boolean;
  /** The earliest due time among the runs that this session's groups can claim. */
  nextReadyMs: number | null;
  /** True if held runs may exist: some task has a concurrency limit, or a flow still collects runs. */
  gated: boolean;
  /** A digest of the latest changes of tasks; if it differs from the last one, tasks have changed. */
  changes: string;
  /** Sessions that ended and still have claims. */
  ended: { sessionId: number; endedMs: number }[];
  /** The earliest due time among the runs that still need an addressee. */
  nextDirectMs?: number | null;
  /** True if some run is addressed to a session and not claimed yet. */
  directed?: boolean;
  /** Returned only to the leader, on request: groups and tasks with runs that have long been due and that no worker can run. */
  unserved?: string[];
  /** The leader's sweeps for which the store may contain something, returned as `unserved` is; absent if not known. */
  sweeps?: readonly Sweep[];
  /** The earliest due time among the runs that are addressed to this session. */
  nextMineMs?: number | null;
}

export interface Term {
  term: number;
  node: string;
  sessionId: number;
  electedMs: number;
  endedMs: number | null;
  endedWhy: string | null;
}

export interface Beat {
  /** True: from now on, the session relies on a coordination service. */
  witnessed?: boolean;
  /** True: the answer also contains the workers that a coordination service reports alive. Set by scheduler nodes. */
  everyone?: boolean;
  /** This machine's wall clock in epoch ms. The other nodes receive it, and compare the store's clock with it. */
  wallMs?: number;
  /** How long heartbeats take, in ms; the leader compares it with alarm rules. Default: what the store has measured, if anything. */
  waitMs?: number | undefined;
  /**
   * True: the answer also contains runs that no worker can run, and which sweeps are needed. Set by the leader only at times, because this
   * doubles the cost of the heartbeat.
   */
  unserved?: boolean;
}

export interface ClusterRecord {
  clusterId: string;
  /** The id of the coordination service, or `store`; null before the first node has started. */
  coordination: string | null;
  /** The address of the coordination service in the form of `serviceAddress`; null if not known. */
  coordinationAt: string | null;
  /** The lowest value for the upper half of fences. */
  lockEra: number;
}

export interface SessionStore {
  /** Opens a session. @returns the session's number, or the live member that already has this name */
  open(identity: SessionIdentity, nowMs: number): Promise<{ sessionId: number } | { taken: Member }>;
  /**
   * Sends a heartbeat and returns everything that the process must know, usually in one statement. A scheduler node receives all
   * nodes, and the workers that rely on the store. A worker receives no members, because with thousands of workers each would read
   * the rows of all. Repeatable.
   */
  beat(sessionId: number, nowMs: number, how?: Beat): Promise<Pulse>;
  /** Signals the process of this session to send a heartbeat at once. */
  prompt(sessionId: number): Promise<void>;
  /** Ends a session if its heartbeat counter is still `beat` (null: in any case). @returns true if this call ended it */
  end(sessionId: number, beat: number | null, nowMs: number, why: string): Promise<boolean>;
  /**
   * Begins the next term if the term of `observed` is still the current one, no live session leads it, and this session has not ended.
   * @param deposing true: begins it even if a live session leads, because the coordination service decides which node leads
   * @returns the new term; null if it was not begun
   */
  campaign(
    sessionId: number,
    node: string,
    observed: Leadership,
    nowMs: number,
    deposing?: boolean,
  ): Promise<number | null>;
  /** Ends this term. If a later term has begun, nothing changes. */
  resign(term: number, nowMs: number, why: string): Promise<void>;
  /**
   * Marks sessions that ended some time ago and hold no claims, so that heartbeats skip them. Deletes marked sessions, and terms,
   * that ended more than `keepMs` ago.
   */
  sweep(nowMs: number, keepMs: number): Promise<void>;
  terms(limit: number): Promise<Term[]>;
  /** Returns the cluster's id and how its nodes coordinate. */
  cluster(): Promise<ClusterRecord>;
  /**
   * Switches the cluster's coordination from `before` to `next`, if `before` is still in use. If `before` is another service than
   * `next`, locks get a new era, so that fences continue to increase.
   * @param at the address of `next`; null if it has none
   * @returns false if `before` was no longer in use
   */
  coordinateBy(before: string | null, next: string, at: string | null): Promise<boolean>;
  /** Returns each node's report about its clocks. @param prompt true: signals every process to send a heartbeat now */
  clockVotes(prompt: boolean): Promise<ClockVotes>;
  /**
   * Changes the shift between the store's clock and cluster time if its version is still `number`, and signals every process to send a
   * heartbeat now.
   * @param nowMs the cluster time
   * @returns true if this call changed the shift
   */
  shiftClock(number: number, shiftMs: number, nowMs: number): Promise<boolean>;
  /**
   * Executes an operator's request: removes the shift, so that cluster time is the store's clock from now on. Recorded in the audit log.
   * @returns the change of cluster time in ms; 0 if there was no shift
   */
  adoptClock(change: Change): Promise<number>;
  /** Checks whether cluster time has gone back, and records the highest time reached for the alarm. @returns undefined if it has not */
  noteTimeBack(nowMs: number): Promise<TimeBack | undefined>;
  /** Returns all members as last recorded, with everything that they reported. The caller need not be a member. */
  members(): Promise<{ members: Member[]; leadership: Leadership }>;
}
