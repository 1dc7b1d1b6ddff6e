import { randomBytes } from "node:crypto";
import type { GivenRecall, JoinRequest, PollAnswer, PollRequest } from "../api/worker-protocol.ts";
import { type Clock, pause } from "../base/clock.ts";
import { CarillonError, isCarillonError, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { madeName } from "../base/node-name.ts";
import type { Random } from "../base/random.ts";
import type { Membership } from "../cluster/membership.ts";
import type { StandIn } from "../cluster/stand-in.ts";
import type { StoreClock } from "../store/store-clock.ts";
import { type Line, writtenMono } from "./line.ts";

export interface RemoteSessionOptions {
  line: Line;
  clock: Clock;
  storeClock: StoreClock;
  random: Random;
  log: Log;
  /** The worker's name; null if a random name shall be generated. */
  name: string | null;
  join: Omit<JoinRequest, "name" | "instance" | "former">;
  timeoutMs: number;
  failFast: boolean;
  /** Returns the number of claims that this process has. */
  held: () => number;
  /** A thread that keeps the session alive while the event loop is blocked. */
  standIn: StandIn;
}

const firstPauseMs = 100;
const longestPauseMs = 2_000;
const nothing = () => undefined;

/**
 * The membership of a remote worker, whose session a server keeps alive. Each response says for how long the session is certainly valid.
 * This time counts from the earliest moment at which the server can have written the response: the time of sending plus the server's
 * processing time. So neither this machine's clock nor a slow network makes the session seem valid for too long. Without claims, the
 * validity does not matter: polls are then far apart, and a response with runs says how long the session is valid for them.
 */
export class RemoteSession implements Membership {
  readonly #options: RemoteSessionOptions;
  readonly #rejoinListeners: ((lost: number, session: number) => void)[] = [];
  readonly #closing = new AbortController();
  #node: string;
  #sessionId = 0;
  #sureUntilMono = 0;
  #rejoining: Promise<void> | undefined;
  #recalls: GivenRecall[] = [];
  #onRecall: () => void = () => undefined;
  #onKeyGone: (error: CarillonError) => void = () => undefined;
  /** The servers' error once the key has been revoked; every later poll rejects with it. */
  #keyGone: CarillonError | undefined;
  #complained = false;

  constructor(options: RemoteSessionOptions) {
    this.#options = options;
    this.#node = options.name ?? madeName();
    // The thread knows until when the session is valid, so this value is adopted when the event loop runs again.
    options.standIn.onBack(({ sureUntilMono }) => this.#sureUntil(sureUntilMono));
  }

  get node(): string {
    return this.#node;
  }

  get sessionId(): number {
    return this.#sessionId;
  }

  get recalls(): GivenRecall[] {
    return this.#recalls;
  }

  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  trusted(mono?: number): boolean {
    return this.doubtMs(mono) === 0;
  }

  doubtMs(mono = this.#options.clock.monotonic()): number {
    const { held, standIn } = this.#options;
    if (this.#keyGone) return held() === 0 ? 0 : Number.POSITIVE_INFINITY;
    if (standIn.acts) this.#sureUntil(standIn.sureUntilMono());
    return held() === 0 ? 0 : Math.max(0, mono - this.#sureUntilMono);
  }

  term(): number | null {
    return null;
  }

  onRejoin(listener: (lost: number, session: number) => void): void {
    this.#rejoinListeners.push(listener);
  }

  onRecall(listener: () => void): void {
    this.#onRecall = listener;
  }

  /** @param listener called once if the servers reject this session's key, which means that it was revoked */
  onKeyGone(listener: (error: CarillonError) => void): void {
    this.#onKeyGone = listener;
  }

  // A remote worker gets no pulses, does not see the other members, and is never the leader.
  readonly refresh = nothing;
  readonly heard = nothing;
  readonly onPulse = nothing;
  readonly onLeadership = nothing;
  readonly handOver = async () => undefined;

  /** Joins the cluster. @throws KEY_…, NODE_NAME_TAKEN, OPTION_INVALID; with `failFast` also SERVER_UNREACHABLE */
  async begin(signal: AbortSignal): Promise<void> {
    await this.#join(undefined, signal);
  }

  /**
   * Sends a poll for the current session.
   * @throws the errors of `Line.post`; KEY_UNKNOWN once the key was revoked; SESSION_LOST once a new session has replaced a lost one
   */
  async poll(part: Omit<PollRequest, "session" | "join">, signal?: AbortSignal): Promise<PollAnswer> {
    if (this.#keyGone) throw this.#keyGone;
    if (this.#rejoining) await unless(signal, this.#rejoining);
    const session = this.#sessionId;
    try {
      return await this.#post({ session, ...part }, session, signal);
    } catch (error) {
      if (isCarillonError(error, "SESSION_LOST")) await unless(signal, this.#rejoin(session));
      if (isCarillonError(error, "KEY_UNKNOWN")) this.#loseKey(error);
      if (isCarillonError(error, "KEY_THROTTLED")) this.#complain(error);
      throw error;
    }
  }

  /** Repeats a poll until a server has responded. Use it only for polls that may be repeated safely. */
  async pollUntilAnswered(part: Omit<PollRequest, "session" | "join">): Promise<PollAnswer> {
    for (let waitMs = firstPauseMs; ; waitMs = Math.min(2 * waitMs, longestPauseMs)) {
      try {
        return await this.poll(part);
      } catch (error) {
        const passing =
          isCarillonError(error) &&
          (error.code === "SERVER_UNREACHABLE" || error.code === "SESSION_LOST" || error.code === "KEY_THROTTLED");
        if (!passing || this.#closing.signal.aborted) throw error;
      }
      await this.#pause(waitMs);
    }
  }

  /** Ends the repetition of failed polls: a poll that waits for its repetition is sent once more, and rejects if it fails again. */
  close(): void {
    this.#closing.abort();
  }

  async leave(_why: string, abandoned?: AbortSignal): Promise<void> {
    // Revoking the key has already ended its sessions.
    if (this.#keyGone) return;
    try {
      await this.poll({ leave: true });
    } catch (error) {
      // If the request fails, the servers end the session after its timeout, so only time is lost.
      const fields = { error: messageOf(error) };
      if (abandoned?.aborted) this.#options.log.debug(fields, "did not say goodbye to a server");
      else this.#options.log.warn(fields, "could not say goodbye to a server");
    }
  }

  async #post(request: PollRequest, session: number | null, signal?: AbortSignal): Promise<PollAnswer> {
    const { line, storeClock } = this.#options;
    const answered = await line.post(request, signal);
    const { answer } = answered;
    const atMono = writtenMono(answered);
    storeClock.sample(atMono, answer.nowMs, answered.endedMono);
    if (session === this.#sessionId || session === null) this.#sureUntil(atMono + answer.sureForMs);
    this.#complained = false;
    this.#hear(answer.recalls);
    return answer;
  }

  #sureUntil(mono: number): void {
    this.#sureUntilMono = Math.max(this.#sureUntilMono, mono);
  }

  /** Logs the reason why the worker cannot join, and not again until a server has responded. The attempts continue. */
  #complain({ code, hint, message }: CarillonError): void {
    if (this.#complained) return;
    this.#complained = true;
    this.#options.log.error({ node: this.#node, code, hint }, `${message}; this worker is locked out`);
  }

  #loseKey(error: CarillonError): void {
    if (this.#keyGone) return;
    this.#keyGone = error;
    this.#options.log.error(
      { node: this.#node, code: error.code, hint: error.hint },
      `${error.message}; this worker stops, and what it runs is taken back`,
    );
    this.#onKeyGone(error);
  }

  /**
   * Replaces the known recalls by those of a response, which lists all open recalls. Notifies the listener if there are new
   * recalls.
   */
  #hear(recalls: GivenRecall[]): void {
    const before = new Set(this.#recalls.map(({ fence }) => fence));
    this.#recalls = recalls;
    if (recalls.some(({ fence }) => !before.has(fence))) this.#onRecall();
  }

  #rejoin(lost: number): Promise<void> {
    if (lost !== this.#sessionId) return this.#rejoining ?? Promise.resolve();
    if (!this.#rejoining) {
      this.#rejoining = this.#follow(lost).finally(() => {
        this.#rejoining = undefined;
      });
      // Callers that wait for the rejoin get its error. The empty handler avoids an unhandled rejection when there are no such callers.
      this.#rejoining.catch(() => undefined);
    }
    return this.#rejoining;
  }

  async #follow(lost: number): Promise<void> {
    const { log } = this.#options;
    this.#sureUntilMono = 0;
    await this.#options.standIn.quiet();
    log.warn({ node: this.#node, session: lost }, "this worker was taken for dead; joining again");
    await this.#join(lost, this.#closing.signal);
    for (const listener of this.#rejoinListeners) listener(lost, this.#sessionId);
  }

  async #join(former: number | undefined, signal: AbortSignal): Promise<void> {
    const { clock, join, failFast, name, timeoutMs } = this.#options;
    const instance = randomBytes(12).toString("base64url");
    // The monotonic time since which servers report the name as taken. A server that has just started accepts the name only after it has
    // watched the former session with this name for a session timeout.
    let takenMono: number | undefined;
    for (let waitMs = firstPauseMs; ; waitMs = Math.min(2 * waitMs, longestPauseMs)) {
      if (signal.aborted) throw new CarillonError("STOPPED", "stopped while joining");
      try {
        const request = { name: this.#node, instance, timeoutMs, ...join, ...(former === undefined ? {} : { former }) };
        this.#sessionId = (await this.#post({ join: request }, null, signal)).session;
        this.#options.standIn.tell({ sessionId: this.#sessionId });
        return;
      } catch (error) {
        if (!isCarillonError(error)) throw error;
        if (error.code === "SERVER_UNREACHABLE") takenMono = undefined;
        if (error.code === "NODE_NAME_TAKEN") takenMono ??= clock.monotonic();
        // The attempt is repeated after KEY_THROTTLED too, because a server accepts a valid key again within a second or two, whatever
        // other clients send from the same address.
        const passing =
          error.code === "SERVER_UNREACHABLE" || error.code === "KEY_THROTTLED"
            ? !failFast || former !== undefined
            : // The first join retries NODE_NAME_TAKEN for two session timeouts, so that a former session with this name can expire.
              error.code === "NODE_NAME_TAKEN" &&
              (former !== undefined || clock.monotonic() - (takenMono ?? 0) < 2 * timeoutMs);
        if (error.code === "NODE_NAME_TAKEN" && name === null && former === undefined) this.#node = madeName();
        // A worker that has joined before continues to try, except with a revoked key, which never becomes valid again.
        else if (error.code === "KEY_UNKNOWN" && former !== undefined) {
          this.#loseKey(error);
          throw error;
        } else if (!passing && former === undefined) throw error;
        if (!passing) this.#complain(error);
      }
      await this.#pause(waitMs, signal);
    }
  }

  #pause(waitMs: number, signal = this.#closing.signal): Promise<void> {
    return pause(this.#options.clock, waitMs * (0.5 + this.#options.random.next() / 2), signal);
  }
}

/** Waits for the promise. @throws STOPPED if the signal aborts first */
async function unless<T>(signal: AbortSignal | undefined, awaited: Promise<T>): Promise<T> {
  if (!signal) return awaited;
  const over = new AbortController();
  const stopped = new Promise<never>((_, reject) => {
    const stop = () => reject(new CarillonError("STOPPED", "the poll was given up"));
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true, signal: over.signal });
  });
  try {
    return await Promise.race([awaited, stopped]);
  } finally {
    over.abort();
  }
}
