import type { Change } from "../base/change.ts";
import type { ClockVotes, ClusterClock, TimeBack } from "./clock-votes.ts";

export interface SessionIdentity {
  node: string;
  role: "node" | "worker";
  host: string;
  pid: number;
  version: string;
  timeoutMs: number;
  /** The groups whose tasks the process runs. */
  groups?: readonly string[];
  /** Labels for people and searches, such as its place and its properties. A pulse omits these labels and the fields below. */
  labels?: Readonly<Record<string, string>>;
  /** How many runs the process takes at once; 0: it runs none; null: its version is too old to report this. */
  capacity?: number | null;
  settings?: SessionSettings | null;
}

/**
 * Settings that must agree with those of other processes, or that have limits set by theirs. Optional fields were added later than the
 * others.
 */
export interface SessionSettings {
  retentionMs: number;
  horizonMs: number;
  claimAheadMs: number;
  /** The address at which the process can be reached, host:port; null: none. */
  address?: string | null;
  /** The coordination service as its operator wrote it, without secrets; null: only the store. */
  coordination?: string | null;
  /** True: the process never leads. */
  observer?: boolean;
  /** Whether the process has channels for alarms. Absent: an older version. */
  alarms?: boolean;
  /** The release of the definitions that this process brings, if it brings any: see task/release.ts. */
  release?: string;
}

export interface Member extends SessionIdentity {
  sessionId: number;
  /** For a remote worker that reported them: the tasks for which it has handlers; null: any task of its groups. */
  tasks?: readonly string[] | null;
  beat: number;
  /** True: the member relies on a coordination service that shows it, so its heartbeats may be rare. */
  witnessed: boolean;
  startedMs: number;
  seenMs: number;
  /** True: the member takes no more runs, because an operator has drained its node or because it stops. */
  draining?: boolean;
  /** How long its event loop had stood still at the last report of its stand-in, ms; null: the event loop runs. */
  stillMs: number | null;
}

export interface Leadership {
  term: number;
  /** null: leadership is vacant. */
  sessionId: number | null;
}

/** The fields of a member that a pulse returns, from which its silence is judged. */
export type Beating = Pick<Member, "sessionId" | "node" | "role" | "beat" | "witnessed" | "timeoutMs">;

export interface Pulse {
  /** Cluster time by the store's clock. */
  storeMs: number;
  /** The store's clock and the shift, which together give `storeMs`. */
  clock: ClusterClock;
  /** The server that was reached and the timeline of its log; null: the server does not report them. */
  server?: string | null;
  /** False: this session has ended, by this process or by another. */
  alive: boolean;
  /** This session is to take no more runs: an operator has drained its node, or the session reported that it stops. */
  draining?: boolean;
  leadership: Leadership;
  /** True: the session of the leader has not ended. */
  led: boolean;
  /** The members that this session must watch: see `beat`. */
  members: Beating[];
  /** The earliest slot that has not been accepted yet. */
  nextSlotMs: number | null;
  /** The earliest due time of the runs that wait for a slot of concurrency and must be judged when they come due. */
  nextHeldMs: number | null;
  /** The earliest time at which an operation has something to do. */
  nextOperationMs?: number | null;
  /** The earliest time at which a task is resumed by itself. */
  nextPauseEndMs?: number | null;
  /** False: the store keeps no alarm rules, so the leader need not read them. */
  ruled?: boolean;
  /** The earliest due time of the runs that this session's groups can claim. */
  nextReadyMs: number | null;
  /** True: some task has a concurrency limit, so runs may be waiting for it. */
  gated: boolean;
  /** A digest of the latest changes of tasks; a different text means that there were more changes. */
  changes: string;
  /** Sessions that ended and still have claims. */
  ended: { sessionId: number; endedMs: number }[];
  /** The earliest due time of the runs that need an addressee. */
  nextDirectMs?: number | null;
  /** True: some run is addressed and not claimed. */
  directed?: boolean;
  /** Returned to the leader on request: groups and tasks whose runs have long been due and that no worker can take. */
  unserved?: string[];
  /** The earliest due time of the runs that are addressed to this session. */
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
  /** True: the session relies on a coordination service from now on. */
  witnessed?: boolean;
  /** Set by a node to receive also the workers that a service shows. */
  everyone?: boolean;
  /** This machine's wall clock, epoch milliseconds. It is reported to the other nodes, which judge the store's clock by it. */
  wallMs?: number;
  /** Set by the leader to query runs that no worker can take; this query costs as much as everything else. */
  unserved?: boolean;
}

export interface ClusterRecord {
  clusterId: string;
  /** A service's id, or `store`; null before the first node. */
  coordination: string | null;
  /** The address of that service, as `serviceAddress` writes it; null: not known. */
  coordinationAt: string | null;
  /** The least value of the higher half of fences. */
  lockEra: number;
}

export interface SessionStore {
  /** Opens a session. @returns the session's number, or the live member that has the name */
  open(identity: SessionIdentity, nowMs: number): Promise<{ sessionId: number } | { taken: Member }>;
  /**
   * One statement that proves life and returns everything that a process must know. A scheduler node receives the other nodes, and the
   * workers that rely on the store. A worker receives no members, because with thousands of workers each would read the rows of all.
   * Repeatable.
   */
  beat(sessionId: number, nowMs: number, how?: Beat): Promise<Pulse>;
  /** Signals the process of this session to send a heartbeat at once. */
  prompt(sessionId: number): Promise<void>;
  /** Ends a session whose beat is still `beat`; null ends it whatever its beat is. @returns whether this call ended it */
  end(sessionId: number, beat: number | null, nowMs: number, why: string): Promise<boolean>;
  /**
   * Takes the next term, if `observed` is still current and its session has ended.
   * @param deposing take it even if that session has not ended, because a service decides who leads
   * @returns the new term or null
   */
  campaign(
    sessionId: number,
    node: string,
    observed: Leadership,
    nowMs: number,
    deposing?: boolean,
  ): Promise<number | null>;
  /** Resigns leadership. A later term is not changed. */
  resign(term: number, nowMs: number, why: string): Promise<void>;
  /** Marks ended sessions that hold nothing any more, so that pulses skip them; deletes sessions whose retention is over. */
  sweep(nowMs: number, keepMs: number): Promise<void>;
  terms(limit: number): Promise<Term[]>;
  /** The cluster of this store, and how its nodes coordinate. */
  cluster(): Promise<ClusterRecord>;
  /**
   * Switches the cluster's coordination from `before` to `next`, if `before` is still in use. If the two differ, locks get a new era, so
   * that their fences go on rising.
   * @param at the address of `next`; null: it has none
   * @returns whether the cluster still coordinated by `before`
   */
  coordinateBy(before: string | null, next: string, at: string | null): Promise<boolean>;
  /** Each node's report about its clocks. @param prompt every process is signalled to send a heartbeat now */
  clockVotes(prompt: boolean): Promise<ClockVotes>;
  /**
   * Changes the shift from the store's clock to cluster time, if the shift's number is still `number`, and signals every process to send a
   * heartbeat now.
   * @param nowMs cluster time
   * @returns whether this call changed it
   */
  shiftClock(number: number, shiftMs: number, nowMs: number): Promise<boolean>;
  /**
   * An operator's action: from now on, the store's clock as it is now is cluster time. Recorded in the audit log.
   * @returns by how many milliseconds cluster time steps; 0: it was the store's clock already
   */
  adoptClock(change: Change): Promise<number>;
  /** Checks whether cluster time is behind a time that it had reached, and records that for the alarm. @returns undefined if it is not */
  noteTimeBack(nowMs: number): Promise<TimeBack | undefined>;
  /** Returns the members as last seen, with everything that they reported, without joining the cluster. */
  members(): Promise<{ members: Member[]; leadership: Leadership }>;
}
