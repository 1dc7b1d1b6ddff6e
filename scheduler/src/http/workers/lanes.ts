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

export interface LanesOptions {
  store: Store;
  clock: Clock;
  storeClock: StoreClock;
  definitions: Definitions;
  log: Log;
  /** Returns unstarted claims to the store: no worker has received them. */
  release: (session: Attached, runs: ClaimedRun[]) => void;
}

/**
 * A group of sessions that can run the same tasks and claim equally far ahead, so that the result of one claim, runs or none, holds for all
 * of them. With `own`, a single session and the runs addressed to it.
 */
interface Lane {
  readonly groupIds: number[];
  readonly own: boolean;
  readonly tasks: ReadonlySet<string> | null;
  aheadMs: number;
  /** The groups' tasks that these workers cannot run. */
  except: number[];
  exceptStale: boolean;
  /** No claimable run is due before this time. */
  nextDueMs: number;
  /** The query for the next due time, if a claim did not wait for it; later claims of the lane wait for it. */
  asking: Promise<void> | undefined;
  /** Incremented when a run may have become ready, so that the result of a query that began earlier is ignored. */
  heard: number;
  /** The earliest time of the lane's next fairness claim (`turn`), whichever worker requests it. */
  nextTurnMono: number;
  readonly waiting: Map<WaitingPoll, Attached>;
  sweeping: Promise<void> | undefined;
  cancel: () => void;
}

/** Fallback interval: a lane with waiting polls checks the store this often in case a signal was lost. */
const lookMs = 5_000;
/**
 * A lane makes one fairness claim (`turn`) at a time, `turnMs` apart, however many of its workers are full; a claim that would wait longer
 * than `turnWaitMs` returns nothing.
 */
const turnMs = 20;
const turnWaitMs = 1_000;
/** Above this number of lanes, unused lanes are dropped. */
const lanesMax = 1_000;

/**
 * Hands runs that become ready to waiting polls at once, with one statement however many polls wait. If a claim returns fewer runs than
 * requested, its lane counts as empty until a signal arrives or a run falls due, so that polls cause no reads of the store meanwhile.
 */
export class Lanes {
  readonly #options: LanesOptions;
  readonly #lanes = new Map<string, Lane>();
  /** The lanes of single sessions: made when a run is addressed to a session that polls here. */
  readonly #own = new WeakMap<Attached, Lane>();
  readonly #sweeps = new Set<Promise<void>>();
  #closed = false;

  constructor(options: LanesOptions) {
    this.#options = options;
  }

  /** Claims the runs that are ready now. */
  async claim(session: Attached, want: number, aheadMs: number): Promise<ClaimedRun[]> {
    const runs: ClaimedRun[] = [];
    for (const lane of this.#lanesOf(session, aheadMs)) {
      // If a later lane fails, the store keeps the runs claimed before as the session's claims, and the worker finds them there.
      if (runs.length < want && !this.#closed) runs.push(...(await this.#claim(lane, session, want - runs.length)));
    }
    return runs;
  }

  /** Claims a few due runs of each task that would otherwise wait behind other tasks. */
  async turn(session: Attached, want: number, turn: TakenTurn): Promise<{ runs: ClaimedRun[]; lastTaskId: number }> {
    const { clock } = this.#options;
    const lane = this.#laneOf(session, 0);
    const nowMono = clock.monotonic();
    const inMs = Math.max(0, lane.nextTurnMono - nowMono);
    if (inMs <= turnWaitMs) lane.nextTurnMono = nowMono + inMs + turnMs;
    await pause(clock, Math.min(inMs, turnWaitMs));
    if (this.#closed || inMs > turnWaitMs) return { runs: [], lastTaskId: turn.afterTaskId };
    let lastTaskId = 0;
    const runs = await this.#accounted(session, async () => {
      await this.#learnExcept(lane);
      const nowMs = this.#options.storeClock.now();
      const taken = await this.#options.store.claims.turn({
        ...turn,
        waitingTaskIds: turn.exceptTaskIds,
        exceptTaskIds: [...lane.except],
        sessionId: session.id,
        groupIds: this.#own.has(session) ? [-session.id, ...lane.groupIds] : lane.groupIds,
        untilMs: nowMs,
        limit: want,
        nowMs,
      });
      ({ lastTaskId } = taken);
      return this.#keep(lane, session, taken.runs, nowMs);
    });
    return { runs, lastTaskId };
  }

  /** Registers the poll: it receives runs as they become ready. */
  wait(session: Attached, poll: WaitingPoll): void {
    for (const lane of this.#lanesOf(session, poll.aheadMs)) this.#waitIn(lane, session, poll);
  }

  /** Called when a run with this due time is addressed to the session. */
  onDirected(session: Attached, dueMs: number): void {
    const { waiting } = session;
    const lane = this.#own.get(session) ?? this.#newLane([-session.id], session, waiting?.aheadMs ?? 0, true);
    this.#own.set(session, lane);
    lane.heard++;
    lane.nextDueMs = Math.min(lane.nextDueMs, dueMs);
    if (waiting && waiting.want > 0 && !waiting.over && !lane.waiting.has(waiting)) {
      lane.aheadMs = waiting.aheadMs;
      this.#waitIn(lane, session, waiting);
    } else this.#wake(lane);
  }

  onReady(dueMs: number): void {
    for (const lane of this.#lanes.values()) {
      lane.heard++;
      lane.nextDueMs = Math.min(lane.nextDueMs, dueMs);
      this.#wake(lane);
    }
  }

  /** Called when tasks have changed, or when signals may have been lost. */
  onChanged(): void {
    for (const lane of this.#lanes.values()) lane.exceptStale = true;
    this.onReady(Number.NEGATIVE_INFINITY);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const lane of this.#lanes.values()) lane.cancel();
    await Promise.allSettled(this.#sweeps);
  }

  #waitIn(lane: Lane, session: Attached, poll: WaitingPoll): void {
    lane.waiting.set(poll, session);
    poll.onEnd(() => {
      lane.waiting.delete(poll);
      if (lane.waiting.size === 0) lane.cancel();
    });
    // A signal may have arrived since the poll's own claim.
    this.#wake(lane);
  }

  /** The session's own lane first: only this session can claim the runs in it. */
  #lanesOf(session: Attached, aheadMs: number): Lane[] {
    const own = this.#own.get(session);
    if (own) own.aheadMs = aheadMs;
    return own ? [own, this.#laneOf(session, aheadMs)] : [this.#laneOf(session, aheadMs)];
  }

  #laneOf(session: Attached, aheadMs: number): Lane {
    const { groupIds, row } = session;
    const key = JSON.stringify([groupIds, row.tasks, aheadMs]);
    const present = this.#lanes.get(key);
    if (present) return present;
    if (this.#lanes.size >= lanesMax) {
      for (const [old, { waiting }] of this.#lanes) if (waiting.size === 0) this.#lanes.delete(old);
    }
    const lane = this.#newLane(groupIds, session, aheadMs, false);
    this.#lanes.set(key, lane);
    return lane;
  }

  #newLane(groupIds: number[], { row }: Attached, aheadMs: number, own: boolean): Lane {
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

  /** Sweeps now if a run may be claimable, else when the next run falls due; and every `lookMs` in case a signal was lost. */
  #wake(lane: Lane): void {
    lane.cancel();
    if (this.#closed || lane.waiting.size === 0 || lane.sweeping) return;
    const { clock, storeClock } = this.#options;
    const inMs = Math.max(0, lane.nextDueMs - lane.aheadMs - storeClock.now());
    // Each beat reports runs addressed to a session, so its own lane needs no polling.
    if (lane.own && inMs === Number.POSITIVE_INFINITY) return;
    if (inMs > 0) {
      lane.cancel = clock.after(Math.min(inMs, lookMs), () => {
        if (inMs > lookMs && !lane.own) lane.nextDueMs = Number.NEGATIVE_INFINITY;
        this.#wake(lane);
      });
      return;
    }
    const sweeping = this.#sweep(lane);
    lane.sweeping = sweeping;
    this.#sweeps.add(sweeping);
    const over = () => {
      this.#sweeps.delete(sweeping);
      lane.sweeping = undefined;
    };
    sweeping.then(
      () => {
        over();
        this.#wake(lane);
      },
      (error) => {
        this.#options.log.debug({ error: messageOf(error) }, "claiming for remote workers failed; trying again");
        over();
        lane.cancel = clock.after(lookMs / 20, () => this.#wake(lane));
      },
    );
  }

  async #sweep(lane: Lane): Promise<void> {
    const { storeClock } = this.#options;
    for (const [poll, session] of lane.waiting) {
      await lane.asking;
      if (this.#closed || lane.nextDueMs > storeClock.now() + lane.aheadMs) return;
      if (!poll.over) await poll.claiming(() => this.#claim(lane, session, poll.want));
    }
    await lane.asking;
  }

  #claim(lane: Lane, session: Attached, want: number): Promise<ClaimedRun[]> {
    return this.#accounted(session, () => this.#claimOnce(lane, session, want));
  }

  /** Registers the claim as under way, because `readBook` waits until the session has no such claim. */
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

  async #claimOnce(lane: Lane, session: Attached, want: number): Promise<ClaimedRun[]> {
    const { store, storeClock } = this.#options;
    await lane.asking;
    const nowMs = storeClock.now();
    const untilMs = nowMs + lane.aheadMs;
    if (lane.nextDueMs > untilMs) return [];
    await this.#learnExcept(lane);
    const { heard } = lane;
    const {
      runs,
      nextDue,
      draining = false,
    } = await store.claims.claim({
      sessionId: session.id,
      groupIds: lane.groupIds,
      exceptTaskIds: lane.except,
      untilMs,
      limit: want,
      nowMs,
    });
    session.drain(draining);
    // A draining session claims nothing, so its empty result does not hold for other workers.
    if (runs.length < want && !draining) this.#askNext(lane, heard, nextDue);
    return this.#keep(lane, session, runs, nowMs);
  }

  #askNext(lane: Lane, heard: number, nextDue: () => Promise<number | null>): void {
    const asking = nextDue().then(
      (nextDueMs) => {
        if (lane.heard === heard) lane.nextDueMs = nextDueMs ?? Number.POSITIVE_INFINITY;
      },
      // The due time is unknown, so the next claim reads the store.
      (error) => this.#options.log.debug({ error: messageOf(error) }, "when the next run is due could not be read"),
    );
    lane.asking = asking;
    this.#sweeps.add(asking);
    void asking.finally(() => {
      this.#sweeps.delete(asking);
      if (lane.asking === asking) lane.asking = undefined;
    });
  }

  async #learnExcept(lane: Lane): Promise<void> {
    if (!lane.exceptStale || !lane.tasks) return;
    lane.exceptStale = false;
    try {
      lane.except = await this.#options.store.workers.tasksBut(lane.groupIds, [...lane.tasks]);
    } catch (error) {
      lane.exceptStale = true;
      throw error;
    }
  }

  /** Keeps the claimed runs that the worker can run, and releases the rest. */
  async #keep(lane: Lane, session: Attached, runs: ClaimedRun[], nowMs: number): Promise<ClaimedRun[]> {
    const { definitions, release } = this.#options;
    for (const run of runs) session.hold(run, nowMs);
    await definitions.ensure(runs);
    const { tasks } = lane;
    if (!tasks) return runs;
    // Runs of tasks that were created after this lane last listed the tasks its workers cannot run.
    const foreign = runs.filter(({ taskId }) => {
      const known = definitions.get(taskId);
      return !known || !tasks.has(handlerTask(known.definition));
    });
    if (foreign.length === 0) return runs;
    lane.exceptStale = !lane.own;
    release(session, foreign);
    return runs.filter((run) => !foreign.includes(run));
  }
}
