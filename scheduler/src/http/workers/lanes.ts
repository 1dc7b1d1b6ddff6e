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
  /** Releases claims unstarted: no worker has received them. */
  release: (session: Attached, runs: ClaimedRun[]) => void;
}

/**
 * Workers that can run the same tasks and claim equally far ahead, so that one worker's result, runs or none, holds for all. Or
 * one worker, and the runs addressed to it.
 */
interface Lane {
  readonly groupIds: number[];
  readonly own: boolean;
  readonly tasks: ReadonlySet<string> | null;
  aheadMs: number;
  /** Tasks of the groups that its workers cannot run. */
  except: number[];
  exceptStale: boolean;
  /** No run that can be claimed is due before this. */
  nextDueMs: number;
  /** A query for the next due time, after a claim that did not wait for its answer; later claims of the lane do wait. */
  asking: Promise<void> | undefined;
  /** Incremented when a run may have become ready, so that a query from before is ignored. */
  heard: number;
  /** The earliest time for the next turn of any of its workers. */
  nextTurnMono: number;
  readonly waiting: Map<WaitingPoll, Attached>;
  sweeping: Promise<void> | undefined;
  cancel: () => void;
}

/** The interval of the safety net below, which wakes a lane with waiting polls in case a signal was lost. */
const lookMs = 5_000;
/**
 * A lane takes one turn at a time, `turnMs` apart, however many of its workers are full; a turn that would wait longer than
 * `turnWaitMs` returns nothing.
 */
const turnMs = 20;
const turnWaitMs = 1_000;
/** Above this number, unused lanes are dropped. */
const lanesMax = 1_000;

/**
 * Hands runs that become ready at once to waiting polls, with one statement however many polls wait. After a claim came back
 * short, its lane counts as empty until a signal arrives or a run falls due, so that polls cause no reads of the store meanwhile.
 */
export class Lanes {
  readonly #options: LanesOptions;
  readonly #lanes = new Map<string, Lane>();
  /** The lanes of sessions to which runs were addressed while they polled here. */
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
      // If a later lane fails, the runs claimed before remain in the store as the session's claims; its worker finds them there.
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

  /** A run with this due time is addressed to this session. */
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

  /** Tasks changed, or signals may have been lost. */
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
    // Something may have been signalled since its own claim.
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

  /** Sweeps when there is something to find, else when it comes due; and now and then in case a signal was lost. */
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

  /** Registers the claim as under way: `readBook` waits for such claims. */
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
    // While this session drains, its result does not hold for other workers.
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
    // A task that was made since this lane looked.
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
