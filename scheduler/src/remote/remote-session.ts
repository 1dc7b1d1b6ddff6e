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
  /** The worker's name; null: a random name is generated. */
  name: string | null;
  join: Omit<JoinRequest, "name" | "instance" | "former">;
  timeoutMs: number;
  failFast: boolean;
  /** The number of claims in this process. */
  held: () => number;
  /** Keeps the session alive while the event loop is blocked. */
  standIn: StandIn;
}

const firstPauseMs = 100;
const longestPauseMs = 2_000;
const nothing = () => undefined;

/**
 * The membership of a worker whose session a server keeps alive. An answer states for how long the session is sure, counted from the
 * earliest moment at which the answer can have been written: when the poll was sent, plus the time that the server reports it took. So
 * neither this machine's clock nor a slow network extends the trust. While no claim is held, no trust is needed: idle polls are far apart,
 * and an answer that brings runs also states for how long they are sure.
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
  /** Set once the key is revoked; every later poll rejects with this error. */
  #keyGone: CarillonError | undefined;
  #complained = false;

  constructor(options: RemoteSessionOptions) {
    this.#options = options;
    this.#node = options.name ?? madeName();
    // The thread keeps the trust that it was last given until it stands in again.
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

  /** @param listener called once, when the servers refuse this session's key: it was revoked, and will never be valid again */
  onKeyGone(listener: (error: CarillonError) => void): void {
    this.#onKeyGone = listener;
  }

  // A remote worker receives no pulses, sees no members, and never leads.
  readonly refresh = nothing;
  readonly heard = nothing;
  readonly onPulse = nothing;
  readonly onLeadership = nothing;
  readonly handOver = async () => undefined;

  /** @throws KEY_…, NODE_NAME_TAKEN, OPTION_INVALID; with `failFast` also SERVER_UNREACHABLE */
  async begin(signal: AbortSignal): Promise<void> {
    await this.#join(undefined, signal);
  }

  /** @throws as Line.post; KEY_UNKNOWN once the key was revoked; SESSION_LOST after a new session has replaced the lost one */
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

  /** Repeats a poll until a server answers it; only for polls that may be repeated. */
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

  /** Requests that still have to be sent continue, but from now on with a time limit. */
  close(): void {
    this.#closing.abort();
  }

  async leave(_why: string, abandoned?: AbortSignal): Promise<void> {
    // The revocation of the key has already ended the sessions.
    if (this.#keyGone) return;
    try {
      await this.poll({ leave: true });
    } catch (error) {
      // If this fails, servers detect the end by the worker's silence; only time is lost.
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

  /** Logs once why the worker cannot join, while the attempts continue. */
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

  /** Every answer lists all open recalls. */
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
      // Callers that wait for the rejoin get its error; without callers it would be an unhandled rejection.
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
    // Since when servers report the name as taken: a server that has just started must first watch the former holder for a session timeout.
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
        // A valid key is accepted within a second or two, whatever other clients send from its address, so the attempt is repeated.
        const passing =
          error.code === "SERVER_UNREACHABLE" || error.code === "KEY_THROTTLED"
            ? !failFast || former !== undefined
            : // A former holder of the name gets its timeout to show that it lives.
              error.code === "NODE_NAME_TAKEN" &&
              (former !== undefined || clock.monotonic() - (takenMono ?? 0) < 2 * timeoutMs);
        if (error.code === "NODE_NAME_TAKEN" && name === null && former === undefined) this.#node = madeName();
        // A worker that had joined keeps trying, except with a revoked key, which is never valid again.
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

/** @throws STOPPED if the signal aborts first */
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
