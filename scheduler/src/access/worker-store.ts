import type { Change } from "../base/change.ts";
import type { SessionIdentity } from "../cluster/session-store.ts";
import type { Overrides } from "../run/enqueue-options.ts";

/**
 * The result of opening a session: its number; or `takenBy`, the process whose live session has this name; or `full`, the number of live
 * sessions of the key if it has reached its limit.
 */
export type Opening = { sessionId: number } | { takenBy: { host: string; pid: number } } | { full: number };

/**
 * The part of the store's port for remote workers: their keys, and their sessions, for which a server sends the heartbeats. A session
 * belongs to the key that opened it.
 */
export interface WorkerStore {
  /** @param key contains the hash of the key's secret; the secret itself is not stored @throws KEY_NAME_TAKEN */
  createKey(key: NewKey, nowMs: number): Promise<WorkerKey>;
  /** Returns all keys, newest first, including revoked keys. */
  keys(): Promise<WorkerKey[]>;
  /** Returns the newest key with this name; only the newest can be valid. @throws KEY_NAME_UNKNOWN */
  keyByName(name: string): Promise<WorkerKey>;
  key(keyId: number): Promise<(WorkerKey & { hash: Buffer }) | null>;
  /** Returns up to `limit` keys that are not revoked, newest first. */
  validKeys(limit: number): Promise<(WorkerKey & { hash: Buffer })[]>;
  /** Revokes the key and ends its sessions. Repeatable. @throws KEY_NAME_UNKNOWN */
  revokeKey(name: string, change: Change): Promise<WorkerKey>;
  /** Revokes the keys that have expired, and ends their sessions. Repeatable. @returns their names */
  revokeExpired(change: Change): Promise<string[]>;

  /** Opens a session. Repeatable: the same worker instance with the same key gets the same session again. */
  open(identity: SessionIdentity, of: SessionOwner, nowMs: number): Promise<Opening>;
  /**
   * Reads a remote worker's session for a server that has not cached it. Records a heartbeat if the session was opened by this key
   * and has not ended; otherwise `ended` is true in the result. @returns null if there is no such session
   */
  attach(sessionId: number, keyId: number, nowMs: number): Promise<RemoteSession | null>;
  /** Records heartbeats for many sessions in one statement. @returns the sessions that have not ended, each with true if it is draining */
  beat(sessionIds: number[], nowMs: number): Promise<Map<number, boolean>>;
  /** Returns the claims of these sessions that the store has recalled. */
  recalls(sessionIds: number[]): Promise<SessionRecall[]>;
  /**
   * Returns for each session the sum of the fences of its claims; sessions without claims are omitted. Different sums mean that the lists
   * of claims differ.
   */
  heldSums(sessionIds: number[]): Promise<Map<number, number>>;
  /** Returns the given sessions that have unclaimed runs addressed to them, each with the due time of the first such run. */
  directed(sessionIds: number[]): Promise<{ sessionId: number; dueMs: number }[]>;
  /** Returns the state of each of the claims that a worker sent, in the order of `claims`. */
  look(sessionId: number, claims: { runId: number; fence: number }[]): Promise<ClaimStanding[]>;
  /** Returns the ids of the tasks in these groups whose names (for a named schedule: the name of its task) are not in `names`. */
  tasksBut(groupIds: number[], names: string[]): Promise<number[]>;
}

export interface NewKey {
  name: string;
  groups: string[];
  hash: Buffer;
  createdBy: string;
  reason?: string;
  /** The time in epoch ms at which the key expires; null or undefined: never. */
  expiresMs?: number | null;
}

export interface WorkerKey {
  keyId: number;
  name: string;
  groups: string[];
  createdMs: number;
  createdBy: string;
  /** The time in epoch ms at which the key expires; null: never. */
  expiresMs: number | null;
  revokedMs: number | null;
}

export interface SessionOwner {
  keyId: number;
  instance: string;
  /** The names of the tasks that the worker can run; null: any task. */
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
  /** True if the session receives no new runs. See cluster/drain-store.ts. */
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
 * `held`: the session has the claim. `ended`: the run ended under the claim. `retried`: the attempt ended, and the run continues with
 * another one. `released`: the claim was returned. `lost`: the claim was taken back from the worker. `foreign`: the claim belongs to
 * another worker, or an earlier session of this worker still has it. `unknown`: no such claim is recorded.
 */
export interface ClaimStanding {
  standing: "held" | "ended" | "retried" | "released" | "lost" | "foreign" | "unknown";
  taskId: number;
  attempt: number;
  losses: number;
  snoozes: number;
  linked: boolean;
  overrides: Overrides | null;
  /** When the run was claimed, in ms; 0 if the claim does not exist any more. */
  claimedMs: number;
}
