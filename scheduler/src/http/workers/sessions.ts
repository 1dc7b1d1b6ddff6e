import type { RemoteSession, SessionRecall } from "../../access/worker-store.ts";
import type { Clock } from "../../base/clock.ts";
import { CarillonError, messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { ClaimedRun } from "../../run/claim-store.ts";
import type { Overrides } from "../../run/enqueue-options.ts";
import { readyMsOf } from "../../run/handling/lateness.ts";
import type { Store } from "../../store/store.ts";
import type { StoreClock } from "../../store/store-clock.ts";
import type { WaitingPoll } from "./waiting-poll.ts";

/** The facts needed to settle a claim that was given out here. */
export interface Holding {
  runId: number;
  taskId: number;
  attempt: number;
  /** How many of this run's attempts were lost with their worker's session. Absent: none. */
  losses?: number | undefined;
  /** How often the handler postponed the run. Absent: never. */
  snoozes?: number | undefined;
  linked: boolean;
  overrides?: Overrides | null | undefined;
  /** By the store's clock. The times that a worker reports are limited to the range from this time to now. */
  claimedMs: number;
  /** Since when the run waited only for a worker. Absent: this server has not claimed it, and does not know. */
  readyMs?: number;
  /** True once the start of the try was counted. */
  isStarted?: boolean;
}

/** A remote worker's session with the claims that this server has cached: those in the store when this server last read them. */
export class Attached {
  readonly row: RemoteSession;
  readonly groupIds: number[];
  /** By the store's clock: the session is not presumed dead before this time. */
  sureUntilMs = 0;
  heardMono = 0;
  /** Held claims by fence. */
  held = new Map<number, Holding>();
  /**
   * Fences that were settled recently, in two generations, because logs of them may still arrive and the cached list of claims may still
   * contain them.
   */
  settled = new Map<number, Holding>();
  settledBefore = new Map<number, Holding>();
  recalls: SessionRecall[] = [];
  /** The fences of recalls that an answer has delivered: they do not end a waiting poll again. */
  told = new Set<number>();
  waiting: WaitingPoll | undefined;
  /** Claim statements for this session that are under way on this server. */
  readonly claiming = new Set<Promise<unknown>>();
  claimsBegun = 0;
  /** Runs claimed for the session that no answer could deliver: its next answer delivers them. */
  ungiven: ClaimedRun[] = [];
  /** True if, one beat ago, the store's claims of this session differed from those cached here. */
  suspect = false;

  constructor(row: RemoteSession, groupIds: number[]) {
    this.row = row;
    this.groupIds = groupIds;
  }

  get id(): number {
    return this.row.sessionId;
  }

  hold(run: ClaimedRun, nowMs: number): void {
    const { runId, fence, taskId, attempt, losses, snoozes, linked, overrides } = run;
    this.held.set(fence, {
      runId,
      taskId,
      attempt,
      losses,
      snoozes,
      linked,
      overrides,
      claimedMs: nowMs,
      readyMs: readyMsOf(run),
    });
  }

  /** Undefined if the fence belongs to another run. */
  known({ runId, fence }: Pick<ClaimedRun, "runId" | "fence">): Holding | undefined {
    const holding = this.held.get(fence) ?? this.settled.get(fence) ?? this.settledBefore.get(fence);
    return holding?.runId === runId ? holding : undefined;
  }

  /** Adds the store's claims that this server has not cached yet, and returns them. */
  learn(book: readonly ClaimedRun[], nowMs: number): ClaimedRun[] {
    const unknown = book.filter((run) => !this.known(run));
    for (const run of unknown) this.hold(run, nowMs);
    return unknown;
  }

  get fenceSum(): number {
    let sum = 0;
    for (const fence of this.held.keys()) sum += fence;
    return sum;
  }

  /** Caches a claim made on another server, which the worker referred to; it need not be delivered. */
  heard(fence: number, holding: Holding): void {
    this.held.set(fence, holding);
    this.ungiven = this.ungiven.filter((run) => run.fence !== fence);
  }

  /** Drops cached claims that the store no longer has: another server settled them. */
  dropBut(book: readonly ClaimedRun[]): void {
    const onBook = new Set(book.map(({ fence }) => fence));
    for (const fence of [...this.held.keys()]) if (!onBook.has(fence)) this.drop(fence);
  }

  /** Sets draining, and ends the waiting poll: while it drains, no lane claims for the session. */
  drain(draining: boolean): void {
    if (draining === this.row.draining) return;
    this.row.draining = draining;
    this.waiting?.end();
  }

  drop(fence: number): void {
    const holding = this.held.get(fence);
    if (holding === undefined) return;
    this.held.delete(fence);
    this.settled.set(fence, holding);
  }
}

export interface SessionsOptions {
  store: Store;
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
  /** Called when a run with this due time is addressed to the session. */
  onDirected: (session: Attached, dueMs: number) => void;
}

/** Safety margin between the end of a worker's trust in its session and the earliest time at which the session may be presumed dead. */
const marginMs = 500;
const longestBeatMs = 2_000;
const beatsPerTimeout = 3;

export const sessionOver = (sessionId: number) =>
  new CarillonError("SESSION_LOST", `session ${sessionId} has ended`, {
    hint: "Join again, and name it as `former`: what was not taken back yet moves to the new session.",
  });

const foreign = (sessionId: number) =>
  new CarillonError("KEY_FORBIDDEN", `session ${sessionId} was opened with another key`);

/**
 * Keeps the sessions of workers that poll here alive, whether a poll waits or has just been answered; for thousands of sessions that costs
 * one statement per beat. A session without a waiting poll, and without a poll since the last beat, gets no beat: it then expires like that
 * of a dead process.
 */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #attached = new Map<number, Attached>();
  /** Attachments under way, by session and key id. */
  readonly #attaching = new Map<string, Promise<Attached>>();
  #cancel: (() => void) | undefined;
  #beatenMono: number;
  #closed = false;

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#beatenMono = options.clock.monotonic();
  }

  /** @throws SESSION_LOST; KEY_FORBIDDEN if another key opened the session */
  async get(sessionId: number, keyId: number): Promise<Attached> {
    const present = this.#attached.get(sessionId);
    if (present && present.row.keyId !== keyId) throw foreign(sessionId);
    const sure = present && present.sureUntilMs > this.#options.storeClock.now() + present.row.timeoutMs / 4;
    const session = sure ? present : await this.#attachOnce(sessionId, keyId);
    session.heardMono = this.#options.clock.monotonic();
    this.#arm();
    return session;
  }

  get all(): Iterable<Attached> {
    return this.#attached.values();
  }

  /** A run with this due time is addressed to the session with this number; the session may be attached here or not. */
  directed(sessionId: number, dueMs: number): void {
    const session = this.#attached.get(sessionId);
    if (session) this.#options.onDirected(session, dueMs);
  }

  /** Called when the worker has left. */
  forget(session: Attached): void {
    this.#attached.delete(session.id);
    session.waiting?.end();
  }

  /** Called when the key was revoked, which ended its sessions: their waiting polls are answered. */
  endOf(keyId: number): void {
    for (const session of this.#attached.values()) {
      if (session.row.keyId !== keyId) continue;
      session.row.ended = true;
      this.forget(session);
    }
  }

  /** Called when a recall was signalled, for any session. */
  async lookForRecalls(): Promise<void> {
    const holders = [...this.#attached.values()].filter(({ held }) => held.size > 0);
    if (holders.length === 0) return;
    const found = new Map<number, SessionRecall[]>();
    for (const recall of await this.#options.store.workers.recalls(holders.map(({ id }) => id))) {
      const its = found.get(recall.sessionId);
      if (its) its.push(recall);
      else found.set(recall.sessionId, [recall]);
    }
    for (const session of holders) {
      session.recalls = found.get(session.id) ?? [];
      if (session.told.size > 0)
        session.told = new Set(session.recalls.flatMap(({ fence }) => (session.told.has(fence) ? [fence] : [])));
      if (session.recalls.some(({ fence }) => !session.told.has(fence))) session.waiting?.end();
    }
  }

  /** Reads the store's claims of the session at a moment when no claim for the session is under way on this server. */
  async readBook(session: Attached): Promise<ClaimedRun[]> {
    for (;;) {
      const begun = session.claimsBegun;
      await Promise.allSettled(session.claiming);
      const book = await this.#options.store.claims.heldBy(session.id);
      if (session.claimsBegun === begun) return book;
    }
  }

  close(): void {
    this.#closed = true;
    this.#cancel?.();
    for (const session of this.#attached.values()) session.waiting?.end();
  }

  // Shares one attachment: a worker may send several polls at once to a server that has not attached its session yet.
  #attachOnce(sessionId: number, keyId: number): Promise<Attached> {
    const both = `${sessionId} ${keyId}`;
    const under = this.#attaching.get(both);
    if (under) return under;
    const attaching = this.#attach(sessionId, keyId).finally(() => this.#attaching.delete(both));
    this.#attaching.set(both, attaching);
    return attaching;
  }

  async #attach(sessionId: number, keyId: number): Promise<Attached> {
    const { store, storeClock } = this.#options;
    const beganMs = storeClock.now();
    const row = await store.workers.attach(sessionId, keyId, beganMs);
    if (row && row.keyId !== keyId) throw foreign(sessionId);
    const present = this.#attached.get(sessionId);
    if (!row || row.ended) {
      if (present) this.forget(present);
      throw sessionOver(sessionId);
    }
    if (present) {
      this.#beaten(present, beganMs);
      present.drain(row.draining);
      return present;
    }
    const groupIds = await Promise.all(row.groups.map((name) => store.tasks.group(name)));
    const session = new Attached(row, groupIds);
    for (const run of await store.claims.heldBy(sessionId)) session.hold(run, storeClock.now());
    this.#beaten(session, beganMs);
    this.#attached.set(sessionId, session);
    await this.#lookForDirected([session]);
    return session;
  }

  /**
   * A server may claim runs for a poll that its worker has given up on, so the answer is lost. If the store has had a claim for two beats
   * that this server has not cached, the session's next answer therefore delivers it. Conversely, the worker may have settled a claim
   * through another server: a cached claim that the store no longer has is dropped.
   */
  async #compareBooks(sessions: Attached[]): Promise<void> {
    const sums = await this.#options.store.workers.heldSums(sessions.map(({ id }) => id));
    for (const session of sessions) {
      const differs = (sums.get(session.id) ?? 0) !== session.fenceSum && session.claiming.size === 0;
      if (differs && session.suspect) {
        const book = await this.readBook(session);
        session.dropBut(book);
        session.ungiven.push(...session.learn(book, this.#options.storeClock.now()));
        if (session.ungiven.length > 0 && session.waiting?.want) session.waiting.end();
      }
      session.suspect = differs;
    }
  }

  async #lookForDirected(sessions: Attached[]): Promise<void> {
    const found = await this.#options.store.workers.directed(sessions.map(({ id }) => id));
    for (const { sessionId, dueMs } of found) this.directed(sessionId, dueMs);
  }

  #beaten(session: Attached, beganMs: number): void {
    session.sureUntilMs = Math.max(session.sureUntilMs, beganMs + session.row.timeoutMs - marginMs);
  }

  #arm(): void {
    if (this.#cancel || this.#closed || this.#attached.size === 0) return;
    let everyMs = longestBeatMs;
    for (const { row } of this.#attached.values()) everyMs = Math.min(everyMs, row.timeoutMs / beatsPerTimeout);
    this.#cancel = this.#options.clock.after(everyMs, () => {
      void this.#beat().finally(() => {
        this.#cancel = undefined;
        this.#arm();
      });
    });
  }

  async #beat(): Promise<void> {
    const { store, clock, storeClock, log } = this.#options;
    const mono = clock.monotonic();
    const due: Attached[] = [];
    for (const session of this.#attached.values()) {
      session.settledBefore = session.settled;
      if (session.settled.size > 0) session.settled = new Map();
      if (session.waiting || session.heardMono >= this.#beatenMono) due.push(session);
      // The worker polls another server or is dead; the store's check for silent sessions decides.
      else if (mono - session.heardMono > 2 * session.row.timeoutMs) this.#attached.delete(session.id);
    }
    if (due.length === 0) return;
    const beganMs = storeClock.now();
    try {
      const alive = await store.workers.beat(
        due.map(({ id }) => id),
        beganMs,
      );
      this.#beatenMono = mono;
      for (const session of due) {
        const draining = alive.get(session.id);
        if (draining !== undefined) {
          this.#beaten(session, beganMs);
          session.drain(draining);
        } else {
          session.row.ended = true;
          this.forget(session);
        }
      }
      await this.lookForRecalls();
      await this.#compareBooks(due);
      await this.#lookForDirected(due);
    } catch (error) {
      // Without beats, the workers' trust in their sessions expires; a worker that notices polls another server.
      log.debug({ error: messageOf(error), sessions: due.length }, "remote workers could not be beaten for");
    }
  }
}
