import type { Change } from "../base/change.ts";
import type { ClockVotes, ClusterClock, TimeBack } from "./clock-votes.ts";

export interface SessionIdentity {
  node: string;
  role: "node" | "worker";
  host: string;
  pid: number;
  version: string;
  timeoutMs: number;
  /** The groups whose tasks it runs. */
  groups?: readonly string[];
  /** For people and for looking: where it is, what it has. A pulse leaves out these and what follows. */
  labels?: Readonly<Record<string, string>>;
  /** How many runs it takes at once; 0: it runs none; null: a process too old to say. */
  capacity?: number | null;
  settings?: SessionSettings | null;
}

/** Settings of a process that the others' must agree with, or that are bounded by theirs. Optional: newer than the others. */
export interface SessionSettings {
  retentionMs: number;
  horizonMs: number;
  claimAheadMs: number;
  /** Where it is reached, host:port; null: nowhere. */
  address?: string | null;
  /** What it coordinates by, as its operator wrote it, without what is secret; null: the store alone. */
  coordination?: string | null;
  /** It never leads. */
  observer?: boolean;
  /** Whose definitions it brings, where it brings any: see task/release.ts. */
  release?: string;
}

export interface Member extends SessionIdentity {
  sessionId: number;
  /** The tasks that it has handlers for, of a remote worker that said so; null: any of its groups. */
  tasks?: readonly string[] | null;
  beat: number;
  /** It relies on a coordination service that shows it; its beats may be rare. */
  witnessed: boolean;
  startedMs: number;
  seenMs: number;
  /** It takes no more runs: an operator has drained its node, or it stops. */
  draining?: boolean;
  /** Its event loop stands still, and had done so for that long when its stand-in spoke last; null: it turns. */
  stillMs: number | null;
}

export interface Leadership {
  term: number;
  /** null: vacant. */
  sessionId: number | null;
}

/** What a pulse tells of a member: what its silence is judged by. */
export type Beating = Pick<Member, "sessionId" | "node" | "role" | "beat" | "witnessed" | "timeoutMs">;

export interface Pulse {
  /** Cluster time by the store's clock. */
  storeMs: number;
  /** What `storeMs` is made of. */
  clock: ClusterClock;
  /** Names the server that was reached and the timeline of its log; null: it does not tell. */
  server?: string | null;
  /** False: this session has ended, by its own act or another's. */
  alive: boolean;
  /** This session is to take no more runs: an operator has drained its node, or it said itself that it stops. */
  draining?: boolean;
  leadership: Leadership;
  /** The leader's session has not ended. */
  led: boolean;
  /** Whom this session must watch: see `beat`. */
  members: Beating[];
  /** The earliest slot no one has accepted yet. */
  nextSlotMs: number | null;
  /** The earliest run that waits for a place and must be judged when it comes due. */
  nextHeldMs: number | null;
  /** The earliest time at which an operation has something to do. */
  nextOperationMs?: number | null;
  /** The earliest time at which a task is resumed by itself. */
  nextPauseEndMs?: number | null;
  /** The earliest due time of what this session's groups can claim. */
  nextReadyMs: number | null;
  /** Some task counts its places, so runs may be waiting for one. */
  gated: boolean;
  /** Stands for the latest changes of tasks; another text says that there were more. */
  changes: string;
  /** Sessions that ended and still have claims. */
  ended: { sessionId: number; endedMs: number }[];
  /** The earliest run that is to be addressed. */
  nextDirectMs?: number | null;
  /** Some run is addressed and not claimed. */
  directed?: boolean;
  /** Told to who leads, and asks: groups and tasks whose runs have been due for long and that no worker can take. */
  unserved?: string[];
  /** The earliest run that is addressed to this session. */
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
  /** The session relies on a coordination service from now on. */
  witnessed?: boolean;
  /** A node learns of the workers too that a service shows. */
  everyone?: boolean;
  /** This machine's wall clock, epoch milliseconds: reported to the others, who judge the store's clock by it. */
  wallMs?: number;
  /** It has the term, and asks what waits in vain: that costs as much as all the rest. */
  unserved?: boolean;
}

export interface ClusterRecord {
  clusterId: string;
  /** A service's id, `store`, or null before the first node. */
  coordination: string | null;
  /** Where that service is, as `serviceAddress` writes it; null: not known. */
  coordinationAt: string | null;
  /** The higher half of fences, at least. */
  lockEra: number;
}

export interface SessionStore {
  /** @returns its number, or the live member that has the name */
  open(identity: SessionIdentity, nowMs: number): Promise<{ sessionId: number } | { taken: Member }>;
  /**
   * One statement: proves life and learns what a process must know. A scheduler node learns of the other nodes and of the
   * workers that rely on the store, a worker of nobody: thousands of workers would each read of each. Repeatable.
   */
  beat(sessionId: number, nowMs: number, how?: Beat): Promise<Pulse>;
  /** Has the process of this session beat at once, if it hears the signal. */
  prompt(sessionId: number): Promise<void>;
  /** Ends a session whose beat is still `beat`; null ends it whatever its beat. @returns whether this call did */
  end(sessionId: number, beat: number | null, nowMs: number, why: string): Promise<boolean>;
  /**
   * Takes the next term, if `observed` is still the truth and its session has ended.
   * @param deposing also if it has not: another authority says who leads @returns the new term or null
   */
  campaign(
    sessionId: number,
    node: string,
    observed: Leadership,
    nowMs: number,
    deposing?: boolean,
  ): Promise<number | null>;
  /** Lays leadership down. A later term is left alone. */
  resign(term: number, nowMs: number, why: string): Promise<void>;
  /** Marks ended sessions that hold nothing any more, so that pulses pass over them; forgets those past retention. */
  sweep(nowMs: number, keepMs: number): Promise<void>;
  terms(limit: number): Promise<Term[]>;
  /** Whose store this is, and what its nodes coordinate by. */
  cluster(): Promise<ClusterRecord>;
  /**
   * From now on the cluster coordinates by `next`, if it still does by `before`; if that is another, locks get a new era, so that their
   * fences go on rising there. @param at where `next` is; null: it has no address @returns whether it was so
   */
  coordinateBy(before: string | null, next: string, at: string | null): Promise<boolean>;
  /** What each node reported of its clocks. @param prompt every process is signalled to beat now */
  clockVotes(prompt: boolean): Promise<ClockVotes>;
  /**
   * Changes what the cluster adds to the store's clock, if its number is still `number`, and signals every process to beat now.
   * @param nowMs cluster time @returns whether this call did
   */
  shiftClock(number: number, shiftMs: number, nowMs: number): Promise<boolean>;
  /**
   * An operator's act: the store's clock, as it is now, is cluster time from now on. Written to the audit.
   * @returns by how many milliseconds cluster time steps; 0: it was the store's clock already
   */
  adoptClock(change: Change): Promise<number>;
  /** Whether cluster time is behind what it has been; what is found is written down for the alarm. @returns undefined: it is not */
  noteTimeBack(nowMs: number): Promise<TimeBack | undefined>;
  /** The members as last seen, with all they told, without taking part. */
  members(): Promise<{ members: Member[]; leadership: Leadership }>;
}
