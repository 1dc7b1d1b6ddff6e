import type { Clock } from "../clock.ts";
import { pause } from "../clock.ts";
import type { Membership } from "../coordination.ts";
import { CarillonError, messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import type { Member, Pulse, SessionIdentity, Store } from "../store.ts";
import type { StoreClock } from "../store-clock.ts";

export interface PostgresCoordinationOptions {
  store: Store;
  clock: Clock;
  storeClock: StoreClock;
  identity: SessionIdentity;
  beatMs: number;
  log: Log;
}

/** Safety between the end of trust here and the earliest moment another may act. */
const marginMs = 500;
/** A beat that failed is tried again this soon: trust is running out. */
const hurryMs = 250;
const clockSamples = 5;

/**
 * Sessions and leadership by rows and heartbeats in the store. A beat is a counter; whoever watches a session takes it
 * for dead when the counter stood still for the session's timeout by the watcher's own monotonic clock, during which
 * the watcher itself never lost sight of the store. Then it ends the session by compare-and-set on that counter, so a
 * beat that arrives first wins. Leadership follows: it is free once its holder's session has ended.
 *
 * @throws NODE_NAME_TAKEN when a live process goes on beating under the same name
 */
export async function joinPostgres(options: PostgresCoordinationOptions, signal?: AbortSignal): Promise<Membership> {
  for (let i = 0; i < clockSamples; i++) await sampleClock(options);
  const sessionId = await openSession(options, signal);
  const membership = new PostgresMembership(options, sessionId);
  await membership.begin();
  return membership;
}

async function sampleClock({ store, clock, storeClock }: PostgresCoordinationOptions): Promise<void> {
  const began = clock.monotonic();
  const storeMs = await store.clock();
  storeClock.sample(began, storeMs, clock.monotonic());
}

/** Opens a session; a former holder of the name gets its timeout to show that it lives. */
async function openSession(options: PostgresCoordinationOptions, signal?: AbortSignal): Promise<number> {
  const { store, clock, storeClock, identity } = options;
  let rival: { member: Member; sinceMono: number } | undefined;
  for (;;) {
    const opened = await store.sessions.open(identity, storeClock.now());
    if ("sessionId" in opened) return opened.sessionId;
    const { taken } = opened;
    if (rival && rival.member.sessionId === taken.sessionId && rival.member.beat !== taken.beat) {
      throw new CarillonError(
        "NODE_NAME_TAKEN",
        `the name ${identity.node} is used by a live process: pid ${taken.pid} on ${taken.host}`,
        { hint: "Give this process another name, or leave the name out and one is made." },
      );
    }
    if (!rival || rival.member.sessionId !== taken.sessionId) {
      rival = { member: taken, sinceMono: clock.monotonic() };
      options.log.info(
        { node: identity.node, pid: taken.pid, host: taken.host },
        "the name is in use; waiting to see whether its holder lives",
      );
    }
    if (clock.monotonic() - rival.sinceMono >= taken.timeoutMs) {
      await store.sessions.end(taken.sessionId, taken.beat, storeClock.now(), "silent while its name was wanted again");
    }
    await pause(clock, hurryMs, signal);
    if (signal?.aborted) throw new CarillonError("STOPPED", "stopped while joining");
  }
}

class PostgresMembership implements Membership {
  readonly node: string;
  readonly #options: PostgresCoordinationOptions;
  readonly #left = new AbortController();
  readonly #silence = new Map<number, { beat: number; sinceMono: number }>();
  readonly #pulseListeners: ((pulse: Pulse) => void)[] = [];
  readonly #rejoinListeners: ((oldSessionId: number, newSessionId: number) => void)[] = [];
  readonly #leadershipListeners: ((term: number | null) => void)[] = [];
  /** Sessions that ended under this process and whose end is not told yet. */
  readonly #lost: number[] = [];
  #sessionId: number;
  #pulse: Pulse | undefined;
  #term: number | null = null;
  #toldTerm: number | null = null;
  #trustedUntil = 0;
  #sawStoreAt = 0;
  #wake: () => void = () => undefined;
  #refreshWanted = false;
  #loop: Promise<void> | undefined;

  constructor(options: PostgresCoordinationOptions, sessionId: number) {
    this.#options = options;
    this.node = options.identity.node;
    this.#sessionId = sessionId;
  }

  get sessionId(): number {
    return this.#sessionId;
  }

  trusted(): boolean {
    return this.doubtMs() === 0;
  }

  doubtMs(): number {
    return Math.max(0, this.#options.clock.monotonic() - this.#trustedUntil);
  }

  term(): number | null {
    return this.trusted() ? this.#term : null;
  }

  refresh(): void {
    this.#refreshWanted = true;
    this.#wake();
  }

  onPulse(listener: (pulse: Pulse) => void): void {
    this.#pulseListeners.push(listener);
  }

  onRejoin(listener: (oldSessionId: number, newSessionId: number) => void): void {
    this.#rejoinListeners.push(listener);
  }

  onLeadership(listener: (term: number | null) => void): void {
    this.#leadershipListeners.push(listener);
  }

  /** The first beat succeeds before anyone sees this membership. */
  async begin(): Promise<void> {
    await this.#beat();
    this.#loop = this.#run();
  }

  async leave(why: string): Promise<void> {
    if (this.#left.signal.aborted) return;
    this.#left.abort();
    this.#wake();
    await this.#loop;
    const { store, storeClock, log } = this.#options;
    try {
      if (this.#term !== null) await store.sessions.resign(this.#term, storeClock.now(), why);
      await store.sessions.end(this.#sessionId, null, storeClock.now(), why);
    } catch (error) {
      // The others find out by silence; nothing is lost but their time.
      log.warn({ error: messageOf(error) }, "could not say goodbye to the store");
    }
    this.#term = null;
    this.#trustedUntil = 0;
    this.#tellTerm();
  }

  async #run(): Promise<void> {
    const { beatMs, log } = this.#options;
    let failing = false;
    while (!this.#left.signal.aborted) {
      await this.#sleep(failing ? Math.min(hurryMs, beatMs) : this.#untilNextLook());
      if (this.#left.signal.aborted) return;
      try {
        await this.#beat();
        if (failing) log.info({ node: this.node }, "this node's session is sure again");
        failing = false;
      } catch (error) {
        if (!failing)
          log.warn(
            { node: this.node, error: messageOf(error) },
            "a heartbeat failed; this node acts only while its session is sure",
          );
        failing = true;
        this.#tellTerm();
      }
    }
  }

  async #beat(): Promise<void> {
    const { store, clock, storeClock, identity, beatMs } = this.#options;
    const began = clock.monotonic();
    const pulse = await store.sessions.beat(this.#sessionId, storeClock.now());
    const ended = clock.monotonic();
    storeClock.sample(began, pulse.storeMs, ended);
    // Blind for longer than two beats: what stood still meanwhile may have been as blind as we were.
    if (ended - this.#sawStoreAt > 2 * beatMs + marginMs) this.#silence.clear();
    this.#sawStoreAt = ended;
    if (!pulse.alive) return this.#rejoin();
    this.#trustedUntil = began + identity.timeoutMs - marginMs;
    for (const lost of this.#lost.splice(0)) {
      for (const listener of this.#rejoinListeners) listener(lost, this.#sessionId);
    }
    this.#pulse = pulse;
    if (pulse.leadership.sessionId !== this.#sessionId || pulse.leadership.term !== this.#term) this.#term = null;
    await this.#bury(pulse);
    await this.#stand(pulse);
    this.#tellTerm();
    for (const listener of this.#pulseListeners) listener(pulse);
  }

  async #rejoin(): Promise<void> {
    const lost = this.#sessionId;
    this.#term = null;
    // Whoever ended the session may act already, however young the last proof of life is.
    this.#trustedUntil = Math.min(this.#trustedUntil, this.#options.clock.monotonic());
    this.#tellTerm();
    this.#options.log.warn({ node: this.node, session: lost }, "this node was taken for dead; joining again");
    this.#sessionId = await openSession(this.#options, this.#left.signal);
    // Told with the first beat that succeeds: should this one fail, what hung from the lost session is not forgotten.
    this.#lost.push(lost);
    await this.#beat();
  }

  /** Ends the sessions that stood still for too long. */
  async #bury(pulse: Pulse): Promise<void> {
    const { store, clock, storeClock, log } = this.#options;
    const mono = clock.monotonic();
    const alive = new Set(pulse.members.map(({ sessionId }) => sessionId));
    for (const sessionId of this.#silence.keys()) if (!alive.has(sessionId)) this.#silence.delete(sessionId);
    for (const member of pulse.members) {
      if (member.sessionId === this.#sessionId) continue;
      const known = this.#silence.get(member.sessionId);
      if (!known || known.beat !== member.beat) {
        this.#silence.set(member.sessionId, { beat: member.beat, sinceMono: mono });
        continue;
      }
      const silentMs = mono - known.sinceMono;
      if (silentMs < member.timeoutMs) continue;
      const why = `silent for ${Math.round(silentMs)} ms, seen by ${this.node}`;
      if (await store.sessions.end(member.sessionId, member.beat, storeClock.now(), why)) {
        log.warn(
          { node: member.node, session: member.sessionId, silentMs: Math.round(silentMs) },
          "a member fell silent; its session is over",
        );
        alive.delete(member.sessionId);
        pulse.members = pulse.members.filter(({ sessionId }) => sessionId !== member.sessionId);
        this.refresh();
      }
    }
  }

  /** Stands for leadership where it is vacant. */
  async #stand({ leadership, members }: Pulse): Promise<void> {
    const { store, storeClock, identity, log } = this.#options;
    if (identity.role !== "node" || this.#left.signal.aborted) return;
    if (leadership.sessionId === this.#sessionId) {
      this.#term = leadership.term;
      return;
    }
    if (leadership.sessionId !== null && members.some(({ sessionId }) => sessionId === leadership.sessionId)) return;
    const term = await store.sessions.campaign(this.#sessionId, this.node, leadership, storeClock.now());
    if (term === null) return this.refresh();
    this.#term = term;
    log.info({ node: this.node, term }, "this node leads");
  }

  #tellTerm(): void {
    const term = this.term();
    if (term === this.#toldTerm) return;
    this.#toldTerm = term;
    for (const listener of this.#leadershipListeners) listener(term);
  }

  /** A beat's interval, or less when a silent member's time is up before. */
  #untilNextLook(): number {
    const { clock, beatMs } = this.#options;
    const mono = clock.monotonic();
    let wait = beatMs;
    for (const member of this.#pulse?.members ?? []) {
      const known = this.#silence.get(member.sessionId);
      // Only one that missed a beat already: the others' time ends after our next look anyhow.
      if (known && mono - known.sinceMono > beatMs) wait = Math.min(wait, known.sinceMono + member.timeoutMs - mono);
    }
    return Math.max(wait, 1);
  }

  async #sleep(ms: number): Promise<void> {
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    if (this.#refreshWanted || this.#left.signal.aborted) woken.abort();
    this.#refreshWanted = false;
    await pause(this.#options.clock, ms, woken.signal);
  }
}
