import type { TaskDefinition } from "../../../scheduler/src/task/task.ts";
import type { Act } from "../plan/act.ts";
import type { Network } from "../world/network.ts";
import type { Server } from "../world/server.ts";
import type { Universe } from "../world/universe.ts";

type Strike = Extract<Act, { kind: "strike" }>;

/** Carries out a strike. */
export interface StrikeHost {
  readonly network: Network;
  readonly universe: Universe;
  readonly server: Server;
  readonly sessionTimeoutMs: number;
  crash(node: string, forMs: number): void;
  pause(node: string, forMs: number): void;
  /** Ends a pause before its time. */
  resume(node: string): void;
  cut(line: string, way: Strike["way"], forMs: number): void;
  /** The task as it was saved last. */
  definition(task: string): TaskDefinition | undefined;
  /** Saves the task without a grace, on another node. */
  withoutGrace(node: string, task: string): void;
  leads(node: string): boolean;
  /** By its own belief. */
  hasLocks(node: string): boolean;
}

/** The shortest run that is struck: a shorter run would end before the strike. */
const struckMs = 400;
const leastAheadMs = 20;
/** The usual duration of a step of an operation in fair weather. */
const stepMs = 60;
/** Least length of a run whose task is edited: the run outlasts the strike by far. */
const editedRunMs = 15_000;
/** Least grace for an aimed strike: the reaper reclaims, and the process is back, before the worker stops the handler by itself. */
const leastGraceMs = 3_000;
/** This long after a run's start its worker has reported the start, so the store grants the task's grace. */
const reportedMs = 1_500;
/** A handler runs longer than allowed by this time, so that the checks notice it. */
const seenMs = 4_000;
/** Length of the cut from the store for a process that the service shows again: more than a grace and `seenMs`. */
const shownAgainCutMs = 12_000;
/** A session is ended within this many timeouts of its last beat: watchers look every half timeout. */
const endedWithin = 1.6;

/** Holds the strikes of a seed until their moment comes, and carries them out. The cluster reports the moments. */
export class Strikes {
  readonly #host: StrikeHost;
  readonly #waiting: Strike[] = [];
  /** The last state of the grace lock that each node saw, and the time since when. */
  readonly #sights = new Map<string, { seen: string; sinceMs: number }>();
  readonly #nodeOfSession = new Map<number, string>();
  /** By node: ends its strike, once another process has ended its session. */
  readonly #untilOver = new Map<string, () => void>();
  #healed = false;

  constructor(host: StrikeHost) {
    this.#host = host;
  }

  add(strike: Strike): void {
    this.#waiting.push(strike);
  }

  /** Drops all strikes that still wait. */
  heal(): void {
    this.#healed = true;
  }

  /**
   * Reports that a run has begun on the node; a strike that waits for a run happens in the middle of it.
   * @returns the length that the run is to have: an aimed strike makes it last until the checks can see the bug
   */
  began(node: string, lengthMs: number, task: string): number {
    const strike = lengthMs < struckMs ? undefined : this.#struck("run", node, lengthMs, task);
    return strike?.aim === undefined ? lengthMs : Math.max(lengthMs, this.#lastsMs(strike.aim, task));
  }

  /** Reports that the node has acquired a lock and keeps it for `forMs`. */
  held(node: string, forMs: number): void {
    this.#struck("hold", node, forMs);
  }

  /** Reports that the node carries out a step of an operation. */
  steps(node: string): void {
    this.#struck("step", node, stepMs);
  }

  /** The server has granted claims to the node; a strike comes before the earliest of them is due. */
  claimed(node: string, rows: readonly Record<string, unknown>[]): void {
    const dueMs = Math.min(
      ...rows.map((row) => (row.runId === null ? Number.POSITIVE_INFINITY : (row.dueMs as number))),
    );
    const aheadMs = dueMs - this.#host.server.wallMs();
    if (aheadMs > leastAheadMs && aheadMs < 2_000) this.#struck("claim", node, aheadMs);
  }

  /** The store has counted a beat of the node's lock session, and the answer is on its way. */
  beaten(node: string): void {
    if (this.#host.hasLocks(node)) this.#struck("beat", node, 0);
  }

  /** The store has read a grace lock's row for the node, and the answer is on its way. */
  looked(node: string, { holder, beat, timeoutMs }: Record<string, unknown>): void {
    const { nowMs } = this.#host.universe;
    const seen = `${holder} ${beat}`;
    const before = this.#sights.get(node);
    if (before?.seen !== seen) this.#sights.set(node, { seen, sinceMs: nowMs });
    else if (holder !== null) this.#struck("look", node, (timeoutMs as number) - (nowMs - before.sinceMs));
  }

  opened(node: string, sessionId: number): void {
    this.#nodeOfSession.set(sessionId, node);
  }

  /** Reports that another process has ended the session. */
  over(sessionId: number): void {
    const node = this.#nodeOfSession.get(sessionId);
    const end = node === undefined ? undefined : this.#untilOver.get(node);
    if (node === undefined || end === undefined) return;
    this.#untilOver.delete(node);
    const { universe, network } = this.#host;
    universe.after(network.between(50, 500), () => {
      if (!this.#healed) end();
    });
  }

  /** @param lengthMs of the action that is struck; for a look, the time until the holder is regarded as dead */
  #struck(at: Strike["at"], node: string, lengthMs: number, task?: string): Strike | undefined {
    const place = this.#healed
      ? -1
      : this.#waiting.findIndex((strike) => strike.at === at && this.#suits(strike, node, lengthMs, task));
    const [strike] = place < 0 ? [] : this.#waiting.splice(place, 1);
    if (!strike) return undefined;
    const { network, universe, sessionTimeoutMs } = this.#host;
    const inMs = this.#inMs(strike, lengthMs);
    universe.after(inMs, () => {
      if (!this.#healed) this.#carryOut(strike, node);
    });
    const soon = strike.aim === "taken back" ? sessionTimeoutMs / 2 : sessionTimeoutMs;
    if (strike.edited && task !== undefined)
      universe.after(inMs + network.between(0, soon), () => this.#host.withoutGrace(node, task));
    return strike;
  }

  #suits({ at, aim, edited, forMs }: Strike, node: string, lengthMs: number, task?: string): boolean {
    if (at === "look") return forMs > lengthMs;
    if (at !== "run" || task === undefined) return true;
    if (aim === undefined) return !edited || lengthMs > editedRunMs;
    const definition = this.#host.definition(task);
    if (!definition || definition.timeoutMs !== null) return false;
    return aim === "word ends"
      ? definition.graceMs === 0 && !this.#host.leads(node)
      : definition.graceMs >= leastGraceMs;
  }

  #lastsMs(aim: NonNullable<Strike["aim"]>, task: string): number {
    const { sessionTimeoutMs } = this.#host;
    if (aim === "word ends") return sessionTimeoutMs + seenMs;
    const graceMs = this.#host.definition(task)?.graceMs ?? 0;
    return reportedMs + sessionTimeoutMs * endedWithin + graceMs + seenMs;
  }

  #inMs({ at, aim, edited }: Strike, lengthMs: number): number {
    const { network } = this.#host;
    if (aim === "shown again" || aim === "taken back") return network.between(reportedMs / 2, reportedMs);
    if (aim === "word ends") return network.between(0, leastAheadMs);
    if (at === "claim") return network.between(leastAheadMs / 2, lengthMs);
    if (at === "look") return 0;
    return lengthMs * (edited ? network.between(0.15, 0.3) : network.between(0.02, 0.7));
  }

  #carryOut({ how, aim, way, forMs }: Strike, node: string): void {
    const host = this.#host;
    const line = `${node} ${aim === "word ends" ? "coordination" : "store"}`;
    if (how === "crash") host.crash(node, forMs);
    else if (how === "pause") host.pause(node, forMs);
    else host.cut(line, way, forMs);
    if (aim === "taken back") this.#untilOver.set(node, () => host.network.cut(line, "none"));
    if (aim === "shown again")
      this.#untilOver.set(node, () => {
        host.cut(line, way, shownAgainCutMs);
        host.resume(node);
      });
  }
}
