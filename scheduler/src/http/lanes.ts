import type { Clock } from "../clock.ts";
import type { Definitions } from "../definitions.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import type { ClaimedRun, Store } from "../store.ts";
import type { StoreClock } from "../store-clock.ts";
import type { Attached } from "./sessions.ts";
import type { WaitingPoll } from "./waiting-poll.ts";

export interface LanesOptions {
  store: Store;
  clock: Clock;
  storeClock: StoreClock;
  definitions: Definitions;
  log: Log;
  /** Gives claims back unstarted: nobody was given them. */
  release: (session: Attached, runs: ClaimedRun[]) => void;
}

/** Workers that can run the same tasks, equally far ahead: what one of them finds, or does not find, holds for all. */
interface Lane {
  readonly groupIds: number[];
  readonly tasks: ReadonlySet<string> | null;
  readonly aheadMs: number;
  /** Tasks of the groups that its workers cannot run. */
  except: number[];
  exceptStale: boolean;
  /** Nothing can be claimed that is due before. */
  nextDueMs: number;
  /** Raised by what may have made something ready, so that an older look says nothing. */
  heard: number;
  readonly waiting: Map<WaitingPoll, Attached>;
  sweeping: Promise<void> | undefined;
  cancel: () => void;
}

/** The safety net below signals, once a lane in which somebody waits. */
const lookMs = 5_000;
/** Lanes that nobody uses are forgotten above this. */
const lanesMax = 1_000;

/**
 * Makes true: what becomes ready goes at once to a poll that waits for it, for one statement however many wait. A lane
 * in which a claim came back short is known to be empty until something is signalled or comes due, so that polls which
 * come and go meanwhile ask the store nothing.
 */
export class Lanes {
  readonly #options: LanesOptions;
  readonly #lanes = new Map<string, Lane>();
  #closed = false;

  constructor(options: LanesOptions) {
    this.#options = options;
  }

  /** Claims what is there now. */
  async claim(session: Attached, want: number, aheadMs: number): Promise<ClaimedRun[]> {
    return this.#closed ? [] : this.#claim(this.#laneOf(session, aheadMs), session, want);
  }

  /** From now on the poll is given what becomes ready. */
  wait(session: Attached, poll: WaitingPoll, aheadMs: number): void {
    const lane = this.#laneOf(session, aheadMs);
    lane.waiting.set(poll, session);
    poll.onEnd(() => {
      lane.waiting.delete(poll);
      if (lane.waiting.size === 0) lane.cancel();
    });
    // Something may have been signalled since its own claim.
    this.#wake(lane);
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
    await Promise.all([...this.#lanes.values()].map(({ sweeping }) => sweeping));
  }

  #laneOf({ groupIds, row }: Attached, aheadMs: number): Lane {
    const key = JSON.stringify([groupIds, row.tasks, aheadMs]);
    const present = this.#lanes.get(key);
    if (present) return present;
    if (this.#lanes.size >= lanesMax) {
      for (const [old, { waiting }] of this.#lanes) if (waiting.size === 0) this.#lanes.delete(old);
    }
    const lane: Lane = {
      groupIds,
      tasks: row.tasks && new Set(row.tasks),
      aheadMs,
      except: [],
      exceptStale: row.tasks !== null,
      nextDueMs: Number.NEGATIVE_INFINITY,
      heard: 0,
      waiting: new Map(),
      sweeping: undefined,
      cancel: () => undefined,
    };
    this.#lanes.set(key, lane);
    return lane;
  }

  /** Sweeps when there is something to find, else when it comes due; and now and then in case a signal was lost. */
  #wake(lane: Lane): void {
    lane.cancel();
    if (this.#closed || lane.waiting.size === 0 || lane.sweeping) return;
    const { clock, storeClock } = this.#options;
    const inMs = Math.max(0, lane.nextDueMs - lane.aheadMs - storeClock.now());
    if (inMs > 0) {
      lane.cancel = clock.after(Math.min(inMs, lookMs), () => {
        if (inMs > lookMs) lane.nextDueMs = Number.NEGATIVE_INFINITY;
        this.#wake(lane);
      });
      return;
    }
    lane.sweeping = this.#sweep(lane).then(
      () => {
        lane.sweeping = undefined;
        this.#wake(lane);
      },
      (error) => {
        this.#options.log.debug({ error: messageOf(error) }, "claiming for remote workers failed; trying again");
        lane.sweeping = undefined;
        lane.cancel = clock.after(lookMs / 20, () => this.#wake(lane));
      },
    );
  }

  async #sweep(lane: Lane): Promise<void> {
    const { storeClock } = this.#options;
    for (const [poll, session] of lane.waiting) {
      if (this.#closed || lane.nextDueMs > storeClock.now() + lane.aheadMs) return;
      if (!poll.over) await poll.claiming(() => this.#claim(lane, session, poll.want));
    }
  }

  async #claim(lane: Lane, session: Attached, want: number): Promise<ClaimedRun[]> {
    const claiming = this.#claimOnce(lane, session, want);
    session.claimsBegun++;
    session.claiming.add(claiming);
    try {
      return await claiming;
    } finally {
      session.claiming.delete(claiming);
    }
  }

  async #claimOnce(lane: Lane, session: Attached, want: number): Promise<ClaimedRun[]> {
    const { store, storeClock, definitions, release } = this.#options;
    const nowMs = storeClock.now();
    const untilMs = nowMs + lane.aheadMs;
    if (lane.nextDueMs > untilMs) return [];
    if (lane.exceptStale && lane.tasks) {
      lane.exceptStale = false;
      try {
        lane.except = await store.workers.tasksBut(lane.groupIds, [...lane.tasks]);
      } catch (error) {
        lane.exceptStale = true;
        throw error;
      }
    }
    const { heard } = lane;
    const { runs, nextDueMs } = await store.claims.claim({
      sessionId: session.id,
      groupIds: lane.groupIds,
      exceptTaskIds: lane.except,
      untilMs,
      limit: want,
      nowMs,
    });
    if (lane.heard === heard && runs.length < want) lane.nextDueMs = nextDueMs ?? Number.POSITIVE_INFINITY;
    for (const run of runs) session.hold(run, nowMs);
    await definitions.ensure(runs);
    const { tasks } = lane;
    if (!tasks) return runs;
    // A task that was made since this lane looked.
    const foreign = runs.filter(({ taskId }) => !tasks.has(definitions.get(taskId)?.definition.name ?? ""));
    if (foreign.length === 0) return runs;
    lane.exceptStale = true;
    release(session, foreign);
    return runs.filter((run) => !foreign.includes(run));
  }
}
