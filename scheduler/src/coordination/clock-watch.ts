import type { Clock } from "../base/clock.ts";
import { CarillonError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import {
  type ClockBack,
  type ClockVotes,
  type ClusterClock,
  isAdoptable,
  judgeStep,
  shiftAfter,
  timeBackText,
  wallAgrees,
} from "../cluster/clock-votes.ts";
import type { Pulse } from "../cluster/session-store.ts";
import type { Store } from "../store/store.ts";
import type { HeldStep, StoreClock } from "../store/store-clock.ts";

export interface ClockWatchOptions {
  store: Store;
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
  /** Only nodes prompt other nodes to send heartbeats; workers do not, because there may be thousands of them. */
  identity: { role: "node" | "worker" };
  /** How a node reacts at its start if cluster time has gone back; default: `wait`. */
  clockBack?: ClockBack;
}

/**
 * The clock is read up to `readings` times for a reading with an uncertainty of at most `sharpMs` ms; a step is judged by the best of
 * these readings.
 */
const sharpMs = 50;
const readings = 5;

const seconds = (ms: number) => `${(Math.abs(ms) / 1_000).toFixed(1)} s`;
const ahead = (ms: number) => `${seconds(ms)} ${ms > 0 ? "ahead of" : "behind"}`;

/**
 * Judges steps of the store's clock after heartbeats, by the votes of the nodes. A decision to shift cluster time, or to adopt
 * the store's clock, is stored in one row, so that all processes follow it, and a process that starts later does not need to
 * know the steps.
 */
export class ClockWatch {
  readonly #options: ClockWatchOptions;
  #number: number | undefined;
  /**
   * The step that is being judged, the nodes' heartbeat counters when this process first saw it, and how often it has been judged since.
   */
  #seen: { step: HeldStep; beats: ReadonlyMap<number, number>; looks: number } | undefined;

  /** The clock's version, and whether this process led, when it last checked whether cluster time has gone back. */
  #lookedBackIn: string | undefined;
  #toldReachedMs: number | undefined;

  constructor(options: ClockWatchOptions) {
    this.#options = options;
  }

  /**
   * Called after each heartbeat that found the session alive. @param leads true if this process leads: only the leader drops a
   * shift that is no longer needed
   */
  async beaten({ clock }: Pulse, sessionId: number, leads: boolean): Promise<void> {
    this.#tell(clock);
    await this.#lookBack(clock.number, leads);
    const { store, storeClock, clock: machine } = this.#options;
    if (storeClock.held) return this.#judge(sessionId);
    if (this.#seen)
      this.#options.log.info({}, "the store's clock shows again what this machine's monotonic clock expects");
    this.#seen = undefined;
    // The leader reads the nodes' votes only while the clock is shifted and this machine's wall clock agrees with the store's clock.
    const rawMs = storeClock.now() - clock.shiftMs;
    if (clock.shiftMs === 0 || !leads || !wallAgrees(rawMs - machine.wall(), clock.shiftMs)) return;
    const votes = await store.sessions.clockVotes(false);
    if (votes.number !== clock.number || !isAdoptable(votes)) return;
    if (await store.sessions.shiftClock(votes.number, 0, storeClock.now()))
      this.#options.log.warn(
        { stepMs: Math.round(-clock.shiftMs) },
        "the wall clocks of most nodes agree with the store's clock: it is adopted, and cluster time steps",
      );
  }

  async #judge(sessionId: number): Promise<void> {
    const { store, storeClock, clock, log, identity } = this.#options;
    for (let n = 0; n < readings && (storeClock.held?.errorMs ?? 0) > sharpMs; n++) await storeClock.ask(store.clock);
    const step = storeClock.held;
    if (!step) return;
    const known = this.#seen?.step.sinceMono === step.sinceMono ? this.#seen : undefined;
    const looks = (known?.looks ?? 0) + 1;
    // A node prompts the other nodes to send heartbeats at its 1st, 2nd, 4th, 8th … attempt to judge the step.
    const prompts = identity.role === "node" && (looks & (looks - 1)) === 0;
    const votes = await store.sessions.clockVotes(prompts);
    // Another process has decided meanwhile; the next heartbeat returns the decision.
    if (votes.number !== step.number) return;
    const beats = known?.beats ?? new Map(votes.votes.map(({ sessionId: id, beat }) => [id, beat]));
    const stepMs = Math.round(step.stepMs);
    if (!known)
      log.warn(
        { stepMs },
        "the store's clock does not show what this machine's monotonic clock expects; asking the others",
      );
    this.#seen = { step, beats, looks };
    const wallOffMs = storeClock.now() + step.stepMs - votes.shiftMs - clock.wall();
    const found = { sessionId, stepMs: step.stepMs, wallOffMs, beats };
    const verdict = judgeStep(found, votes);
    if (verdict === "follow") {
      storeClock.follow(step);
      this.#seen = undefined;
      log.warn(
        { stepMs },
        "most nodes agree with the store's clock: this machine's monotonic clock was wrong, or stood still",
      );
    } else if (verdict) await this.#decide(votes, step, verdict);
  }

  async #decide({ shiftMs, number }: ClockVotes, { stepMs }: HeldStep, verdict: "stepped" | "adopt"): Promise<void> {
    const { store, storeClock, log } = this.#options;
    const next = verdict === "adopt" ? 0 : shiftAfter(shiftMs, stepMs);
    if (!(await store.sessions.shiftClock(number, next, storeClock.now()))) return;
    if (verdict === "adopt" && shiftAfter(shiftMs, stepMs) !== 0)
      log.warn(
        { stepMs: Math.round(stepMs) },
        "the store's clock stepped, and the wall clocks of most nodes agree with its new time: it is adopted, and cluster time steps",
      );
  }

  /**
   * Checks whether cluster time has gone back: at a node's first heartbeat, when the node begins or ceases to lead, and after
   * each decision about the clock.
   */
  async #lookBack(number: number, leads: boolean): Promise<void> {
    const { store, storeClock, log, identity } = this.#options;
    const state = `${number} ${leads}`;
    if (identity.role !== "node" || this.#lookedBackIn === state) return;
    const nowMs = storeClock.now();
    const back = await store.sessions.noteTimeBack(nowMs);
    this.#lookedBackIn = state;
    if (!back || back.replanned || back.reachedMs === this.#toldReachedMs) return;
    this.#toldReachedMs = back.reachedMs;
    log.error(back, `${timeBackText(back, nowMs)}; wait, or plan from now on by \`carillon clock replan\``);
  }

  /** Logs in each process when cluster time begins to be shifted against the store's clock, when the shift changes, and when it ends. */
  #tell({ number, shiftMs }: ClusterClock): void {
    const first = this.#number === undefined;
    if (this.#number === number) return;
    this.#number = number;
    const { log } = this.#options;
    if (shiftMs !== 0)
      log.error(
        { shiftMs: Math.round(shiftMs) },
        `the store's clock is ${ahead(-shiftMs)} cluster time, which goes on without it; set the store's clock right, or run \`carillon clock adopt\` if it is right`,
      );
    else if (!first) log.info({}, "cluster time is the store's clock again");
  }
}

/**
 * Refuses to start a node if cluster time has gone back, `carillon clock replan` was not run since, and the setting
 * `clockBack` is `refuse`.
 * @throws CLOCK_BACK
 */
export async function requireTime({ store, storeClock, identity, clockBack }: ClockWatchOptions): Promise<void> {
  if (clockBack !== "refuse" || identity.role !== "node") return;
  const nowMs = storeClock.now();
  const back = await store.sessions.noteTimeBack(nowMs);
  if (!back || back.replanned) return;
  throw new CarillonError("CLOCK_BACK", timeBackText(back, nowMs), {
    hint: "This node does not start then, as `clockBack` says. Set the clock of the store's machine right (NTP) if it is wrong; if it is right, plan from now on by `carillon clock replan`.",
  });
}
