import type { Json } from "../../../base/json.ts";
import type { SessionIdentity } from "../../../cluster/session-store.ts";
import type { ClaimedRun, Settlement } from "../../../run/claim-store.ts";
import type { EnqueueWrite } from "../../../run/run-record.ts";

export interface MemoryLimits {
  /** How long a write is remembered, in ms, counted back from the last acknowledged write. */
  keepMs: number;
  /** The most memory that all entries may take, in bytes, approximately. */
  bytesMax: number;
  /**
   * The greatest age of a write that is given to the store again, in ms. A process that writes nothing keeps its last writes. Once
   * retention has dropped the history of their runs, nothing in the store shows that these runs ended, so the writes must not be given
   * again. History is kept for at least three days (tasks/history.ts).
   */
  ageMaxMs: number;
}

export const memoryLimits: MemoryLimits = { keepMs: 60_000, bytesMax: 64_000_000, ageMaxMs: 86_400_000 };

/** The highest numbers that the store has issued to this process. If the store loses data, it must not issue them again. */
export interface Highs {
  runId: number;
  fence: number;
  term: number;
  sessionId: number;
}

export interface RememberedSession {
  readonly sessionId: number;
  /** The identity of the session; undefined if another process opened it and this process only writes on its behalf. */
  readonly identity: SessionIdentity | undefined;
  /** The time of the store's clock when the session's last heartbeat was answered, in ms. */
  seenMs: number;
  /** The number of the session's last answered heartbeat. */
  beat: number;
  ended: { atMs: number; why: string } | undefined;
}

type Entry =
  | { readonly kind: "enqueued"; readonly writes: readonly EnqueueWrite[]; readonly ids: readonly number[] }
  | { readonly kind: "claimed"; readonly sessionId: number; readonly runs: readonly ClaimedRun[] }
  | { readonly kind: "settled"; readonly settlements: readonly Settlement[] };

/** The writes that one reply acknowledged. */
export type Remembered = Entry & {
  /** The time of the store's clock when the writes were acknowledged, in ms. */
  readonly atMs: number;
};

interface Kept {
  readonly entry: Remembered;
  readonly monoMs: number;
  readonly bytes: number;
}

const bytesOfItem = 250;
/** The most values of a payload that `sizeOf` measures. The size of a larger payload is estimated from these. */
const valuesLookedAt = 50;

/**
 * Remembers the writes that the store has acknowledged to this process: always the highest numbers; and, while a standby exists that may
 * lack them or the cluster has relaxed enqueues (acknowledged before they are on disk), the last minute's enqueues, claims and verdicts.
 * Entries refer to existing objects; nothing is copied.
 *
 * Age is counted from the last acknowledgement and not from now, so that the writes just before an outage are remembered however long the
 * outage lasts.
 */
export class Memory {
  readonly highs: Highs = { runId: 0, fence: 0, term: 0, sessionId: 0 };
  readonly sessions = new Map<number, RememberedSession>();
  readonly #limits: MemoryLimits;
  /** Fences of claims that handlers settled in their own transactions, whose commits this process does not see. */
  readonly #settledIn = new Set<number>();
  /** True once a standby has been seen or the cluster has relaxed enqueues; undefined while this is unknown. */
  #mayBeLost: boolean | undefined;
  #relaxed = false;
  #kept: Kept[] = [];
  #first = 0;
  #bytes = 0;

  constructor(limits = memoryLimits) {
    this.#limits = limits;
  }

  /**
   * Updates whether a standby is connected. Writes are remembered even while PostgreSQL waits for a standby before it acknowledges them,
   * because that can change between two heartbeats: Patroni stops waiting when its synchronous standby is gone, and writes acknowledged
   * then must be remembered too.
   * @param standby true if a standby is connected. Once true, the state stays true, because a disconnected standby is the one that lacks
   * writes
   * @param relaxed see `relaxes`
   */
  standbys(standby: boolean, relaxed = this.#relaxed): void {
    this.relaxes(relaxed);
    this.#mayBeLost = standby || this.#mayBeLost === true;
    if (!this.keeping) this.#forget(this.#kept.length - this.#first);
  }

  /**
   * Updates whether the cluster has relaxed enqueues, which a crash of the server may lose. Once it has, writes stay remembered: a store
   * that went back to before the first such enqueue reports that it has none.
   */
  relaxes(relaxed: boolean): void {
    this.#relaxed = relaxed;
    if (relaxed) this.#mayBeLost = true;
  }

  get relaxed(): boolean {
    return this.#relaxed;
  }

  /** True while writes are remembered, because the store may lack acknowledged writes or it is unknown whether it may. */
  get keeping(): boolean {
    return this.#mayBeLost !== false;
  }

  raise(highs: Partial<Highs>): void {
    for (const name of Object.keys(highs) as (keyof Highs)[])
      this.highs[name] = Math.max(this.highs[name], highs[name] ?? 0);
  }

  enqueued(writes: readonly EnqueueWrite[], ids: readonly number[], atMs: number, monoMs: number): void {
    if (!this.keeping || writes.length === 0) return;
    let bytes = 0;
    for (const { payload } of writes) bytes += payload?.length ?? 0;
    this.#add({ kind: "enqueued", writes, ids, atMs }, writes.length, bytes, monoMs);
  }

  claimed(sessionId: number, runs: readonly ClaimedRun[], atMs: number, monoMs: number): void {
    if (runs.length === 0) return;
    let bytes = 0;
    for (const run of runs) {
      if (run.fence > this.highs.fence) this.highs.fence = run.fence;
      if (run.runId > this.highs.runId) this.highs.runId = run.runId;
      if (this.keeping && run.payload !== null) bytes += sizeOf(run.payload);
    }
    this.#add({ kind: "claimed", sessionId, runs, atMs }, runs.length, bytes, monoMs);
  }

  settled(settlements: readonly Settlement[], atMs: number, monoMs: number): void {
    if (!this.keeping || settlements.length === 0) return;
    let bytes = 0;
    for (const { verdict } of settlements)
      if (verdict.kind === "ended") bytes += (verdict.result?.length ?? 0) + (verdict.error?.length ?? 0);
    this.#add({ kind: "settled", settlements, atMs }, settlements.length, bytes, monoMs);
  }

  settledIn(fence: number): void {
    this.#settledIn.add(fence);
  }

  /**
   * Called when the handlers of these claims have returned.
   * @returns the fences of the claims that were settled in the handler's own transaction
   */
  takeSettledIn(settlements: readonly Settlement[]): Set<number> {
    if (this.#settledIn.size === 0) return new Set();
    return new Set(settlements.flatMap(({ fence }) => (this.#settledIn.delete(fence) ? [fence] : [])));
  }

  /** Records that claims of this process now belong to another of its sessions. They are recorded as the store has returned them. */
  adopted(oldSessionId: number, newSessionId: number, runs: readonly ClaimedRun[], monoMs: number): void {
    const atMs = Math.max(...[oldSessionId, newSessionId].map((id) => this.sessions.get(id)?.seenMs ?? 0));
    this.claimed(newSessionId, runs, atMs, monoMs);
  }

  /** Records claims that the store returned and that are not remembered yet, because the reply to the claim was lost. */
  booked(sessionId: number, runs: readonly ClaimedRun[], monoMs: number): void {
    if (!this.keeping || runs.length === 0) return;
    const known = new Set<number>();
    for (const { entry } of this.#from())
      if (entry.kind === "claimed") for (const { fence } of entry.runs) known.add(fence);
    // The time of the claims is unknown. The last time that this process read from the store's clock is not much later.
    const atMs = Math.max(0, ...[...this.sessions.values()].map(({ seenMs }) => seenMs));
    const unknown = runs.filter(({ fence }) => !known.has(fence));
    this.claimed(sessionId, unknown, atMs, monoMs);
  }

  opened(sessionId: number, identity: SessionIdentity, atMs: number): void {
    this.raise({ sessionId });
    this.sessions.set(sessionId, { sessionId, identity, seenMs: atMs, beat: 0, ended: undefined });
  }

  beaten(sessionId: number, beat: number, atMs: number): void {
    const known = this.sessions.get(sessionId);
    if (known) Object.assign(known, { seenMs: Math.max(known.seenMs, atMs), beat: Math.max(known.beat, beat) });
    else this.sessions.set(sessionId, { sessionId, identity: undefined, seenMs: atMs, beat, ended: undefined });
  }

  ended(sessionId: number, why: string, atMs: number): void {
    for (const { sessionId: id, ended } of this.sessions.values())
      if (ended && atMs - ended.atMs > 2 * this.#limits.keepMs) this.sessions.delete(id);
    const known = this.sessions.get(sessionId);
    if (known) known.ended = { atMs, why };
  }

  /** Returns the fences of the claims whose verdicts the store has acknowledged, as far as they are remembered. */
  settledFences(): Set<number> {
    const fences = new Set<number>();
    for (const { entry } of this.#from())
      if (entry.kind === "settled") for (const { fence } of entry.settlements) fences.add(fence);
    return fences;
  }

  /** Returns the remembered entries that may be given to the store again, oldest first. */
  entries(nowMonoMs: number): Remembered[] {
    const sinceMs = nowMonoMs - this.#limits.ageMaxMs;
    return [...this.#from()].filter(({ monoMs }) => monoMs >= sinceMs).map(({ entry }) => entry);
  }

  #add(entry: Remembered, items: number, bytes: number, monoMs: number): void {
    if (!this.keeping) return;
    const kept = { entry, monoMs, bytes: bytes + items * bytesOfItem };
    this.#kept.push(kept);
    this.#bytes += kept.bytes;
    let old = 0;
    let bytesLeft = this.#bytes;
    for (const { monoMs: then, bytes: size } of this.#from()) {
      if (monoMs - then <= this.#limits.keepMs && bytesLeft <= this.#limits.bytesMax) break;
      bytesLeft -= size;
      old++;
    }
    this.#forget(old);
  }

  *#from(): Generator<Kept> {
    for (let at = this.#first; at < this.#kept.length; at++) yield this.#kept[at] as Kept;
  }

  #forget(count: number): void {
    for (let left = count; left > 0; left--) {
      this.#bytes -= (this.#kept[this.#first] as Kept).bytes;
      (this.#kept as (Kept | undefined)[])[this.#first++] = undefined;
    }
    if (this.#first * 2 < this.#kept.length) return;
    this.#kept = this.#kept.slice(this.#first);
    this.#first = 0;
  }
}

/** Returns the approximate size of a payload in bytes. */
function sizeOf(value: Json): number {
  let [bytes, looked] = [0, 0];
  const rest: Json[] = [value];
  for (let one = rest.pop(); one !== undefined && looked < valuesLookedAt; one = rest.pop()) {
    looked++;
    bytes += typeof one === "string" ? one.length : 16;
    if (one !== null && typeof one === "object") for (const inner of Object.values(one)) rest.push(inner);
  }
  return looked < valuesLookedAt ? bytes : Math.round((bytes * (looked + rest.length)) / looked);
}
