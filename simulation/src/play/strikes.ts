import type { TaskDefinition } from "../../../scheduler/src/task/task.ts";
import type { Act } from "../plan/act.ts";
import type { Network } from "../world/network.ts";
import type { Server } from "../world/server.ts";
import type { Universe } from "../world/universe.ts";

type Strike = Extract<Act, { kind: "strike" }>;

/** What strikes need from the cluster. */
export interface StrikeHost {
  readonly network: Network;
  readonly universe: Universe;
  readonly server: Server;
  readonly sessionTimeoutMs: number;
  crash(node: string, forMs: number): void;
  pause(node: string, forMs: number): void;
  /** Resumes a suspended process before the planned end of its pause. */
  resume(node: string): void;
  cut(line: string, way: Strike["way"], forMs: number): void;
  /** Returns the last saved definition of the task. */
  definition(task: string): TaskDefinition | undefined;
  /** Saves the task without a grace period, through another node. */
  withoutGrace(node: string, task: string): void;
  leads(node: string): boolean;
  /** True if the node believes that it holds a lock. */
  hasLocks(node: string): boolean;
}

/** Length in ms of the shortest run that is struck, because a shorter run would end before the strike. */
const struckMs = 400;
const leastAheadMs = 20;
/** The usual duration in ms of a step of an operation under good network conditions. */
const stepMs = 60;
/** The least length in ms of a run whose task is edited, so that the run lasts far longer than the strike. */
const editedRunMs = 15_000;
/**
 * The shortest grace period in ms for a strike with an aim. It must be long enough that the claim is taken back and the process returns
 * before the worker stops the handler by itself.
 */
const leastGraceMs = 3_000;
/** Time in ms after a run's start by which the worker has reported the start, so that the store grants the grace period. */
const reportedMs = 1_500;
/** How much longer than allowed a handler must run before the checks notice it, in ms. */
const seenMs = 4_000;
/**
 * How long a process that the service reports as alive again is cut off from the store, in ms: longer than a grace period plus `seenMs`.
 */
const shownAgainCutMs = 12_000;
/** A session is ended within this many session timeouts after its last heartbeat. */
const endedWithin = 1.6;

/** Keeps the strikes of a seed until the right moment, and then carries them out. The cluster reports the moments through the methods. */
export class Strikes {
  readonly #host: StrikeHost;
  readonly #waiting: Strike[] = [];
  /** By node: the state of the grace lock that the node saw last, and since when it has seen this state. */
  readonly #sights = new Map<string, { seen: string; sinceMs: number }>();
  readonly #nodeOfSession = new Map<number, string>();
  /** By node: a function that ends the node's strike; called once another process has ended the node's session. */
  readonly #untilOver = new Map<string, () => void>();
  #healed = false;

  constructor(host: StrikeHost) {
    this.#host = host;
  }

  add(strike: Strike): void {
    this.#waiting.push(strike);
  }

  /** Drops all strikes that have not happened yet. */
  heal(): void {
    this.#healed = true;
  }

  /**
   * Called when a run has started on the node; a strike that waits for a run happens in the middle of it.
   * @returns how long the run must take, in ms: a strike with an aim makes the run last until the checks can see the bug
   */
  began(node: string, lengthMs: number, task: string): number {
    const strike = lengthMs < struckMs ? undefined : this.#struck("run", node, lengthMs, task);
    return strike?.aim === undefined ? lengthMs : Math.max(lengthMs, this.#lastsMs(strike.aim, task));
  }

  /** Called when the node has acquired a lock, which it will hold for `forMs`. */
  held(node: string, forMs: number): void {
    this.#struck("hold", node, forMs);
  }

  /** Called when the node carries out a step of an operation. */
  steps(node: string): void {
    this.#struck("step", node, stepMs);
  }

  /** Called when the server has granted claims to the node. A strike happens before the first of these runs is due. */
  claimed(node: string, rows: readonly Record<string, unknown>[]): void {
    const dueMs = Math.min(
      ...rows.map((row) => (row.runId === null ? Number.POSITIVE_INFINITY : (row.dueMs as number))),
    );
    const aheadMs = dueMs - this.#host.server.wallMs();
    if (aheadMs > leastAheadMs && aheadMs < 2_000) this.#struck("claim", node, aheadMs);
  }

  /** Called when the store has counted a heartbeat of the node's lock session, while the reply is under way. */
  beaten(node: string): void {
    if (this.#host.hasLocks(node)) this.#struck("beat", node, 0);
  }

  /** Called when the store has read a grace lock's row for the node, while the reply is under way. */
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

  /** Called when another process has ended the session. */
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

  /** @param lengthMs duration of the action that is struck; for a look, the time until the holder is taken for dead */
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
