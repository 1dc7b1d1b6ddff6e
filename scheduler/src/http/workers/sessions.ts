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

/** The data that this server needs in order to settle a claim. */
export interface Holding {
  runId: number;
  taskId: number;
  attempt: number;
  /** How many attempts of the run were lost with their worker's session; absent: none. */
  losses?: number | undefined;
  /** How many times the handler has snoozed the run; absent: never. */
  snoozes?: number | undefined;
  linked: boolean;
  overrides?: Overrides | null | undefined;
  /**
   * When this server claimed the run or read the claim from the store, by the store's clock in ms; 0 if the claim became known by
   * the worker's report. The times that a worker reports are limited to the range from this time to now.
   */
  claimedMs: number;
  /**
   * Since when the run has been waiting only for a worker, in ms; absent if the claim became known only by the worker's report.
   */
  readyMs?: number;
  /** True once the start of the attempt has been reported. */
  isStarted?: boolean;
}

/** A remote worker's session on this server, with its cached claims. */
export class Attached {
  readonly row: RemoteSession;
  readonly groupIds: number[];
  /** Before this time, in ms of the store's clock, no process declares the session dead. */
  sureUntilMs = 0;
  heardMono = 0;
  /** The session's claims, by fence. */
  held = new Map<number, Holding>();
  /**
   * Recently settled claims, by fence, in two generations. They are retained because their log lines may still arrive, and because a list
   * of claims that was read earlier may still contain them.
   */
  settled = new Map<number, Holding>();
  settledBefore = new Map<number, Holding>();
  recalls: SessionRecall[] = [];
  /** The fences of recalls that an answer has contained; they do not end a waiting poll again. */
  told = new Set<number>();
  waiting: WaitingPoll | undefined;
  /** Statements in progress on this server that claim runs for this session. */
  readonly claiming = new Set<Promise<unknown>>();
  claimsBegun = 0;
  /** Runs that were claimed for the session but not delivered; its next answer contains them. */
  ungiven: ClaimedRun[] = [];
  /** True if the session's claims in the store differed from the cached ones at the last heartbeat. */
  suspect = false;
  /** True while the store has not answered this server's last heartbeat for the session in time. */
  unheard = false;

  constructor(row: RemoteSession, groupIds: number[]) {
    this.row = row;
    this.groupIds = groupIds;
  }

  get id(): number {
    return this.row.sessionId;
  }

  /** @param nowMs the time of the claim; used only if `run` has no `claimedMs` */
  hold(run: ClaimedRun, nowMs: number): void {
    const { runId, fence, taskId, attempt, losses, snoozes, linked, overrides, claimedMs = nowMs } = run;
    this.held.set(fence, {
      runId,
      taskId,
      attempt,
      losses,
      snoozes,
      linked,
      overrides,
      claimedMs,
      readyMs: readyMsOf(run),
    });
  }

  /** Returns the cached or recently settled claim; undefined if there is none or its fence belongs to another run. */
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

  /** Caches a claim that another server has made and delivered, when the worker refers to it. */
  heard(fence: number, holding: Holding): void {
    this.held.set(fence, holding);
    this.ungiven = this.ungiven.filter((run) => run.fence !== fence);
  }

  /** Removes cached claims that are not in `book`, the list from the store, because another server has settled them. */
  dropBut(book: readonly ClaimedRun[]): void {
    const onBook = new Set(book.map(({ fence }) => fence));
    for (const fence of [...this.held.keys()]) if (!onBook.has(fence)) this.drop(fence);
  }

  /** Sets whether the session is draining, and ends its waiting poll if that has changed. A draining session gets no runs. */
  drain(draining: boolean): void {
    if (draining === this.row.draining) return;
    this.row.draining = draining;
    this.waiting?.end();
  }

  /** Called when the store has not answered a heartbeat in time: refuses the waiting poll, and further ones until it answers. */
  refuse(): void {
    this.unheard = true;
    this.waiting?.refuse(storeSilent());
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
  /** Called when a run that is due at `dueMs` has been addressed to the session. */
  onDirected: (session: Attached, dueMs: number) => void;
}

/**
 * Time in ms between the moment when a worker stops relying on its session and the earliest moment when the session may be declared dead.
 */
const marginMs = 500;
const longestBeatMs = 2_000;
const beatsPerTimeout = 3;

export const sessionOver = (sessionId: number) =>
  new CarillonError("SESSION_LOST", `session ${sessionId} has ended`, {
    hint: "Join again, and name it as `former`: what was not taken back yet moves to the new session.",
  });

/** The interval of a session's heartbeats in ms. If a heartbeat is not answered within this time, the session's waiting poll is refused. */
const beatMsOf = ({ timeoutMs }: { timeoutMs: number }) => Math.min(longestBeatMs, timeoutMs / beatsPerTimeout);

export const storeSilent = () =>
  new CarillonError("STORE_UNREACHABLE", "the store did not answer this server's heartbeat for its workers", {
    hint: "Go to another server, or try again.",
  });

const foreign = (sessionId: number) =>
  new CarillonError("KEY_FORBIDDEN", `session ${sessionId} was opened with another key`);

/**
 * Sends the heartbeats of the sessions that poll here, while a poll waits or if one has been answered since the last heartbeat; one
 * statement serves thousands of sessions. A session without such a poll gets no heartbeat, so it expires like that of a dead process.
 */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #attached = new Map<number, Attached>();
  /** Sessions that are being read from the store, by session and key id. */
  readonly #attaching = new Map<string, Promise<Attached>>();
  #cancel: (() => void) | undefined;
  #beatenMono: number;
  #closed = false;

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#beatenMono = options.clock.monotonic();
  }

  /**
   * Returns the session; reads it from the store if it is not cached, or not certain to remain alive for a quarter of its
   * timeout.
   * @throws SESSION_LOST; KEY_FORBIDDEN if another key opened it
   */
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

  /** Called when a run that is due at `dueMs` has been addressed to this session, which may poll another server. */
  directed(sessionId: number, dueMs: number): void {
    const session = this.#attached.get(sessionId);
    if (session) this.#options.onDirected(session, dueMs);
  }

  /** Called when the worker has left or its session has ended. */
  forget(session: Attached): void {
    this.#attached.delete(session.id);
    session.waiting?.end();
  }

  /** Called when the key was revoked, which has ended its sessions: answers their waiting polls. */
  endOf(keyId: number): void {
    for (const session of this.#attached.values()) {
      if (session.row.keyId !== keyId) continue;
      session.row.ended = true;
      this.forget(session);
    }
  }

  /** Reads the recalls of all sessions with claims, and ends waiting polls that must deliver one. Called when any recall is signalled. */
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

  /** Reads the session's claims from the store at a time when this server has no claim in progress for the session. */
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

  // Concurrent polls of a session that this server has not cached yet share one read.
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
   * Compares the cached claims with those in the store. An answer may be lost if the worker has stopped waiting for it; so a claim that the
   * store has at two heartbeats in a row and that is not cached is delivered with the session's next answer. Conversely, a cached claim
   * that the store no longer has is dropped, because the worker has settled it through another server.
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
    session.unheard = false;
    session.sureUntilMs = Math.max(session.sureUntilMs, beganMs + session.row.timeoutMs - marginMs);
  }

  #arm(): void {
    if (this.#cancel || this.#closed || this.#attached.size === 0) return;
    let everyMs = longestBeatMs;
    for (const { row } of this.#attached.values()) everyMs = Math.min(everyMs, beatMsOf(row));
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
      // The worker polls another server or is dead; if it is dead, other members end the session after its timeout.
      else if (mono - session.heardMono > 2 * session.row.timeoutMs) this.#attached.delete(session.id);
    }
    if (due.length === 0) return;
    const beganMs = storeClock.now();
    // Another server may still reach the store, but a worker does not switch to it while its poll waits here. So the poll is refused in
    // time.
    const refusals = [...new Set(due.map(({ row }) => beatMsOf(row)))].map((afterMs) =>
      clock.after(afterMs, () => {
        for (const session of due) if (beatMsOf(session.row) === afterMs) session.refuse();
      }),
    );
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
      for (const session of due) session.refuse();
      log.debug({ error: messageOf(error), sessions: due.length }, "remote workers could not be beaten for");
    } finally {
      for (const cancel of refusals) cancel();
    }
  }
}
