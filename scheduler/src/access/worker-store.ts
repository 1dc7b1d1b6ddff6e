import type { Change } from "../base/change.ts";
import type { SessionIdentity } from "../cluster/session-store.ts";
import type { Overrides } from "../run/enqueue-options.ts";

/**
 * The number of the opened session. `takenBy`: a live worker on this host already has the name. `full`: the key already has this many
 * sessions, which is its limit.
 */
export type Opening = { sessionId: number } | { takenBy: { host: string; pid: number } } | { full: number };

/**
 * The part of the store's port for remote workers: their keys, and their sessions, which a server keeps alive for them. A session belongs
 * to the key that opened it.
 */
export interface WorkerStore {
  /** @param key contains the hash of the key's secret; the secret itself is stored nowhere @throws KEY_NAME_TAKEN */
  createKey(key: NewKey, nowMs: number): Promise<WorkerKey>;
  /** Newest first, including revoked keys. */
  keys(): Promise<WorkerKey[]>;
  /** The newest key with this name, which is the valid one if there is a valid one. @throws KEY_NAME_UNKNOWN */
  keyByName(name: string): Promise<WorkerKey>;
  key(keyId: number): Promise<(WorkerKey & { hash: Buffer }) | null>;
  /** Newest first, without revoked keys. */
  validKeys(limit: number): Promise<(WorkerKey & { hash: Buffer })[]>;
  /** Ends its sessions too. Repeatable. @throws KEY_NAME_UNKNOWN */
  revokeKey(name: string, change: Change): Promise<WorkerKey>;
  /** Revokes the keys that have expired, and ends their sessions. Repeatable. @returns their names */
  revokeExpired(change: Change): Promise<string[]>;

  /** Repeatable: the same instance of the same key gets the same session. */
  open(identity: SessionIdentity, of: SessionOwner, nowMs: number): Promise<Opening>;
  /**
   * Attaches to a session of a remote worker, and beats once if the key opened the session and it has not ended. @returns null: there is no
   * such session
   */
  attach(sessionId: number, keyId: number, nowMs: number): Promise<RemoteSession | null>;
  /** Beats for many sessions in one statement. @returns the sessions that have not ended, each with whether it drains */
  beat(sessionIds: number[], nowMs: number): Promise<Map<number, boolean>>;
  /** Claims of these sessions that the store has recalled. */
  recalls(sessionIds: number[]): Promise<SessionRecall[]>;
  /**
   * For each session the sum of its claims' fences: if two sums differ, the lists of claims differ. Sessions without claims are left out.
   */
  heldSums(sessionIds: number[]): Promise<Map<number, number>>;
  /** Returns the given sessions that have unclaimed runs addressed to them, each with the due time of the first such run. */
  directed(sessionIds: number[]): Promise<{ sessionId: number; dueMs: number }[]>;
  /** For each claim that a worker named, whether it is or was this session's. The results are in the order of `claims`. */
  look(sessionId: number, claims: { runId: number; fence: number }[]): Promise<ClaimStanding[]>;
  /** The ids of the tasks in these groups whose names are not in `names`. */
  tasksBut(groupIds: number[], names: string[]): Promise<number[]>;
}

export interface NewKey {
  name: string;
  groups: string[];
  hash: Buffer;
  createdBy: string;
  reason?: string;
  /** null or absent: the key does not expire. */
  expiresMs?: number | null;
}

export interface WorkerKey {
  keyId: number;
  name: string;
  groups: string[];
  createdMs: number;
  createdBy: string;
  /** null: the key does not expire. */
  expiresMs: number | null;
  revokedMs: number | null;
}

export interface SessionOwner {
  keyId: number;
  instance: string;
  /** The tasks that the worker can run; null: any task. */
  tasks: string[] | null;
}

export interface RemoteSession {
  sessionId: number;
  keyId: number;
  node: string;
  groups: string[];
  tasks: string[] | null;
  timeoutMs: number;
  ended: boolean;
  /** True: the session receives no more runs. See cluster/drain-store.ts. */
  draining: boolean;
}

export interface SessionRecall {
  sessionId: number;
  runId: number;
  fence: number;
  kind: "cancel" | "withdraw";
  why: string;
}

/**
 * `held`: the session has the claim. `ended`, `retried`, `released`: it had the claim and reported this outcome. `lost`: it had the
 * claim, and the claim was taken back. `foreign`: the claim is another session's. `unknown`: no such claim was ever made.
 */
export interface ClaimStanding {
  standing: "held" | "ended" | "retried" | "released" | "lost" | "foreign" | "unknown";
  taskId: number;
  attempt: number;
  losses: number;
  snoozes: number;
  linked: boolean;
  overrides: Overrides | null;
}
