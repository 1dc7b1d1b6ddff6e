import type { TakenTurn } from "../../api/worker-protocol.ts";
import { type Clock, pause } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { ClaimedRun } from "../../run/claim-store.ts";
import type { Definitions } from "../../store/definitions.ts";
import type { Store } from "../../store/store.ts";
import type { StoreClock } from "../../store/store-clock.ts";
import { handlerTask } from "../../task/schedule-of.ts";
import type { Attached } from "./sessions.ts";
import type { WaitingPoll } from "./waiting-poll.ts";

export interface ClaimGroupsOptions {
  store: Store;
  clock: Clock;
  storeClock: StoreClock;
  definitions: Definitions;
  log: Log;
  /** Returns claims to the store that no worker has received. */
  release: (session: Attached, runs: ClaimedRun[]) => void;
}

/**
 * A claim group: sessions that serve the same groups and tasks and claim equally far ahead, so that the result of one claim, runs or none,
 * holds for all of them. With `own`, it consists of one session, and concerns the runs addressed to that session.
 */
interface ClaimGroup {
  readonly groupIds: number[];
  readonly own: boolean;
  readonly tasks: ReadonlySet<string> | null;
  aheadMs: number;
  /** The ids of tasks in these groups for which the workers have no handler. */
  except: number[];
  exceptStale: boolean;
  /** The store has no claimable run that is due before this time, in ms; −Infinity: unknown. */
  nextDueMs: number;
  /** A query for the next due time that is in progress; later claims of the claim group wait for it. */
  asking: Promise<void> | undefined;
  /** Incremented when a run may have become ready. The result of a query that began earlier is then ignored. */
  heard: number;
  /** The earliest time of the next fairness claim (`turn`) of any worker in the claim group, by the monotonic clock. */
  nextTurnMono: number;
  readonly waiting: Map<WaitingPoll, Attached>;
  sweeping: Promise<void> | undefined;
  cancel: () => void;
}

/**
 * A claim group with waiting polls queries the store at this interval, in ms, in case a signal was lost; groups of a single session (`own`)
 * do not.
 */
const lookMs = 5_000;
/**
 * Fairness claims (`turn`: a few runs of each task that waits behind others) of one claim group follow each other at this interval, in ms,
 * however many of its workers are at capacity. A fairness claim that would have to wait longer than `turnWaitMs` returns no runs.
 */
const turnMs = 20;
const turnWaitMs = 1_000;
/** Above this number of claim groups, those without waiting polls are dropped. */
const claimGroupsMax = 1_000;

/**
 * Assigns runs to waiting polls as soon as they are ready. If a claim returns fewer runs than requested, its claim group counts
 * as empty until a signal arrives, a run comes due or `lookMs` have passed; until then, polls cause no queries of the store.
 */
export class ClaimGroups {
  readonly #options: ClaimGroupsOptions;
  readonly #claimGroups = new Map<string, ClaimGroup>();
  /** Claim groups of single sessions, created when a run is addressed to a session that polls here. */
  readonly #own = new WeakMap<Attached, ClaimGroup>();
  readonly #sweeps = new Set<Promise<void>>();
  #closed = false;

  constructor(options: ClaimGroupsOptions) {
    this.#options = options;
  }

  /** Claims up to `want` runs that are ready now or will be due within `aheadMs`. */
  async claim(session: Attached, want: number, aheadMs: number): Promise<ClaimedRun[]> {
    const runs: ClaimedRun[] = [];
    for (const claimGroup of this.#claimGroupsOf(session, aheadMs)) {
      // If a later claim fails, the runs claimed before remain claims of this session in the store, and a later poll delivers them.
      if (runs.length < want && !this.#closed)
        runs.push(...(await this.#claim(claimGroup, session, want - runs.length)));
    }
    return runs;
  }

  /** Claims a few due runs of each task whose runs would otherwise wait behind those of other tasks. */
  async turn(session: Attached, want: number, turn: TakenTurn): Promise<{ runs: ClaimedRun[]; lastTaskId: number }> {
    const { clock } = this.#options;
    const claimGroup = this.#claimGroupOf(session, 0);
    const nowMono = clock.monotonic();
    const inMs = Math.max(0, claimGroup.nextTurnMono - nowMono);
    if (inMs <= turnWaitMs) claimGroup.nextTurnMono = nowMono + inMs + turnMs;
    await pause(clock, Math.min(inMs, turnWaitMs));
    if (this.#closed || inMs > turnWaitMs) return { runs: [], lastTaskId: turn.afterTaskId };
    let lastTaskId = 0;
    const runs = await this.#accounted(session, async () => {
      await this.#learnExcept(claimGroup);
      const nowMs = this.#options.storeClock.now();
      const taken = await this.#options.store.claims.turn({
        ...turn,
        waitingTaskIds: turn.exceptTaskIds,
        exceptTaskIds: [...claimGroup.except],
        sessionId: session.id,
        groupIds: this.#own.has(session) ? [-session.id, ...claimGroup.groupIds] : claimGroup.groupIds,
        untilMs: nowMs,
        limit: want,
        nowMs,
      });
      ({ lastTaskId } = taken);
      return this.#keep(claimGroup, session, taken.runs, nowMs);
    });
    return { runs, lastTaskId };
  }

  /** Registers a waiting poll, so that it gets runs when they become ready. */
  wait(session: Attached, poll: WaitingPoll): void {
    for (const claimGroup of this.#claimGroupsOf(session, poll.aheadMs)) this.#waitIn(claimGroup, session, poll);
  }

  /** Called when a run that is due at `dueMs` has been addressed to the session. */
  onDirected(session: Attached, dueMs: number): void {
    const { waiting } = session;
    const claimGroup =
      this.#own.get(session) ?? this.#newClaimGroup([-session.id], session, waiting?.aheadMs ?? 0, true);
    this.#own.set(session, claimGroup);
    claimGroup.heard++;
    claimGroup.nextDueMs = Math.min(claimGroup.nextDueMs, dueMs);
    if (waiting && waiting.want > 0 && !waiting.over && !claimGroup.waiting.has(waiting)) {
      claimGroup.aheadMs = waiting.aheadMs;
      this.#waitIn(claimGroup, session, waiting);
    } else this.#wake(claimGroup);
  }

  onReady(dueMs: number): void {
    for (const claimGroup of this.#claimGroups.values()) {
      claimGroup.heard++;
      claimGroup.nextDueMs = Math.min(claimGroup.nextDueMs, dueMs);
      this.#wake(claimGroup);
    }
  }

  /** Called when tasks have changed, or when signals may have been lost. */
  onChanged(): void {
    for (const claimGroup of this.#claimGroups.values()) claimGroup.exceptStale = true;
    this.onReady(Number.NEGATIVE_INFINITY);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const claimGroup of this.#claimGroups.values()) claimGroup.cancel();
    await Promise.allSettled(this.#sweeps);
  }

  #waitIn(claimGroup: ClaimGroup, session: Attached, poll: WaitingPoll): void {
    claimGroup.waiting.set(poll, session);
    poll.onEnd(() => {
      claimGroup.waiting.delete(poll);
      if (claimGroup.waiting.size === 0) claimGroup.cancel();
    });
    // A run may have become ready after the poll's own claim.
    this.#wake(claimGroup);
  }

  /** The claim groups of a session: its own group, if any, comes first, because no other session can claim the runs of that group. */
  #claimGroupsOf(session: Attached, aheadMs: number): ClaimGroup[] {
    const own = this.#own.get(session);
    if (own) own.aheadMs = aheadMs;
    return own ? [own, this.#claimGroupOf(session, aheadMs)] : [this.#claimGroupOf(session, aheadMs)];
  }

  #claimGroupOf(session: Attached, aheadMs: number): ClaimGroup {
    const { groupIds, row } = session;
    const key = JSON.stringify([groupIds, row.tasks, aheadMs]);
    const present = this.#claimGroups.get(key);
    if (present) return present;
    if (this.#claimGroups.size >= claimGroupsMax) {
      for (const [old, { waiting }] of this.#claimGroups) if (waiting.size === 0) this.#claimGroups.delete(old);
    }
    const claimGroup = this.#newClaimGroup(groupIds, session, aheadMs, false);
    this.#claimGroups.set(key, claimGroup);
    return claimGroup;
  }

  #newClaimGroup(groupIds: number[], { row }: Attached, aheadMs: number, own: boolean): ClaimGroup {
    return {
      groupIds,
      own,
      tasks: row.tasks && new Set(row.tasks),
      aheadMs,
      except: [],
      exceptStale: row.tasks !== null && !own,
      nextDueMs: Number.NEGATIVE_INFINITY,
      asking: undefined,
      heard: 0,
      nextTurnMono: Number.NEGATIVE_INFINITY,
      waiting: new Map(),
      sweeping: undefined,
      cancel: () => undefined,
    };
  }

  /** Claims for the waiting polls now if a run may be claimable, otherwise when the next run comes due; at the latest after `lookMs`. */
  #wake(claimGroup: ClaimGroup): void {
    claimGroup.cancel();
    if (this.#closed || claimGroup.waiting.size === 0 || claimGroup.sweeping) return;
    const { clock, storeClock } = this.#options;
    const inMs = Math.max(0, claimGroup.nextDueMs - claimGroup.aheadMs - storeClock.now());
    // Runs addressed to a session are read at each heartbeat, so its own claim group needs no polling.
    if (claimGroup.own && inMs === Number.POSITIVE_INFINITY) return;
    if (inMs > 0) {
      claimGroup.cancel = clock.after(Math.min(inMs, lookMs), () => {
        if (inMs > lookMs && !claimGroup.own) claimGroup.nextDueMs = Number.NEGATIVE_INFINITY;
        this.#wake(claimGroup);
      });
      return;
    }
    const sweeping = this.#sweep(claimGroup);
    claimGroup.sweeping = sweeping;
    this.#sweeps.add(sweeping);
    const over = () => {
      this.#sweeps.delete(sweeping);
      claimGroup.sweeping = undefined;
    };
    sweeping.then(
      () => {
        over();
        this.#wake(claimGroup);
      },
      (error) => {
        this.#options.log.debug({ error: messageOf(error) }, "claiming for remote workers failed; trying again");
        over();
        claimGroup.cancel = clock.after(lookMs / 20, () => this.#wake(claimGroup));
      },
    );
  }

  async #sweep(claimGroup: ClaimGroup): Promise<void> {
    const { storeClock } = this.#options;
    for (const [poll, session] of claimGroup.waiting) {
      await claimGroup.asking;
      if (this.#closed || claimGroup.nextDueMs > storeClock.now() + claimGroup.aheadMs) return;
      if (!poll.over) await poll.claiming(() => this.#claim(claimGroup, session, poll.want));
    }
    await claimGroup.asking;
  }

  #claim(claimGroup: ClaimGroup, session: Attached, want: number): Promise<ClaimedRun[]> {
    return this.#accounted(session, () => this.#claimOnce(claimGroup, session, want));
  }

  /** Registers the claim as in progress, because `readBook` waits until the session has no claim in progress. */
  async #accounted(session: Attached, claim: () => Promise<ClaimedRun[]>): Promise<ClaimedRun[]> {
    const claiming = claim();
    session.claimsBegun++;
    session.claiming.add(claiming);
    try {
      return await claiming;
    } finally {
      session.claiming.delete(claiming);
    }
  }

  async #claimOnce(claimGroup: ClaimGroup, session: Attached, want: number): Promise<ClaimedRun[]> {
    const { store, storeClock } = this.#options;
    await claimGroup.asking;
    const nowMs = storeClock.now();
    const untilMs = nowMs + claimGroup.aheadMs;
    if (claimGroup.nextDueMs > untilMs) return [];
    await this.#learnExcept(claimGroup);
    const { heard } = claimGroup;
    const {
      runs,
      nextDue,
      draining = false,
    } = await store.claims.claim({
      sessionId: session.id,
      groupIds: claimGroup.groupIds,
      exceptTaskIds: claimGroup.except,
      untilMs,
      limit: want,
      nowMs,
    });
    session.drain(draining);
    // A draining session gets no runs, so an empty result does not mean that there are none for other workers.
    if (runs.length < want && !draining) this.#askNext(claimGroup, heard, nextDue);
    return this.#keep(claimGroup, session, runs, nowMs);
  }

  #askNext(claimGroup: ClaimGroup, heard: number, nextDue: () => Promise<number | null>): void {
    const asking = nextDue().then(
      (nextDueMs) => {
        if (claimGroup.heard === heard) claimGroup.nextDueMs = nextDueMs ?? Number.POSITIVE_INFINITY;
      },
      // `nextDueMs` remains unchanged, so the next claim queries the store.
      (error) => this.#options.log.debug({ error: messageOf(error) }, "when the next run is due could not be read"),
    );
    claimGroup.asking = asking;
    this.#sweeps.add(asking);
    void asking.finally(() => {
      this.#sweeps.delete(asking);
      if (claimGroup.asking === asking) claimGroup.asking = undefined;
    });
  }

  async #learnExcept(claimGroup: ClaimGroup): Promise<void> {
    if (!claimGroup.exceptStale || !claimGroup.tasks) return;
    claimGroup.exceptStale = false;
    try {
      claimGroup.except = await this.#options.store.workers.tasksBut(claimGroup.groupIds, [...claimGroup.tasks]);
    } catch (error) {
      claimGroup.exceptStale = true;
      throw error;
    }
  }

  /** Returns the claimed runs that the worker can run, and releases the others. */
  async #keep(claimGroup: ClaimGroup, session: Attached, runs: ClaimedRun[], nowMs: number): Promise<ClaimedRun[]> {
    const { definitions, release } = this.#options;
    for (const run of runs) session.hold(run, nowMs);
    await definitions.ensure(runs);
    const { tasks } = claimGroup;
    if (!tasks) return runs;
    // Tasks that were created after `except` was read may be among the claimed runs, although the workers have no handlers for them.
    const foreign = runs.filter(({ taskId }) => {
      const known = definitions.get(taskId);
      return !known || !tasks.has(handlerTask(known.definition));
    });
    if (foreign.length === 0) return runs;
    claimGroup.exceptStale = !claimGroup.own;
    release(session, foreign);
    return runs.filter((run) => !foreign.includes(run));
  }
}
