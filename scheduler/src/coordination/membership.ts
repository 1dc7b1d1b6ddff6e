import { Sleeper } from "../base/clock.ts";
import { type CarillonError, type ErrorCode, isCarillonError, messageOf } from "../base/errors.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Beating, Pulse } from "../cluster/session-store.ts";
import { noStandIn, type StandIn, type StoodIn } from "../cluster/stand-in.ts";
import { ClockWatch, requireTime } from "./clock-watch.ts";
import { answerMs, hurryMs, type JoinOptions, openSession } from "./open-session.ts";
import { placeOf, untilBeat } from "./rhythm.ts";
import { type Backing, marginMs, Trust } from "./trust.ts";

const clockSamples = 5;
/** The interval in ms at which the leader's heartbeat also queries which sweeps are needed, and runs that no worker can run. */
const unservedLookMs = 30_000;
/** A process that cannot join repeats its log message at this interval, in ms. */
const remindMs = 60_000;
const keptOutBy = new Set<ErrorCode>([
  "NODE_NAME_TAKEN",
  "NODE_ADDRESS_TAKEN",
  "SETTINGS_DIFFER",
  "COORDINATION_DIFFERS",
]);

/**
 * Joins the cluster. Sessions and leadership are rows in the store, kept by heartbeats. A session's beat is a counter. A member
 * that watches a session ends it if the counter has not changed for the session's timeout, by the watcher's monotonic clock,
 * while the watcher could reach the store without interruption. The end is a compare-and-set on the counter, so a heartbeat
 * that arrives first wins. The leader's heartbeats are also sent as signals: otherwise watchers would see them only at their
 * own next heartbeat, and notice the leader's death that much later. Leadership is vacant once the leader's session has ended.
 *
 * A coordination service (the provider), if there is one, lists sessions. The row of a listed session states this, and members
 * then judge the session by the list: the first member in the service's queue ends sessions that are no longer listed. A
 * session that is no longer certain to be listed states in its next heartbeat that it relies on the store again, and continues.
 * So an outage of the service can cost only a leadership. To lead, a node must be first in the queue and reach the store. It
 * may then depose a leader that is not first, whose term the store rejects from then on. If the service has lost its data and
 * does not know which node is first, the head of the queue (`ahead`) may take a vacant term.
 *
 * @throws NODE_NAME_TAKEN if a live process has the same name; CLOCK_BACK; STOPPED if the signal aborts; STORE_…
 */
export async function joinCluster(options: JoinOptions, signal?: AbortSignal): Promise<Membership> {
  for (let i = 0; i < clockSamples; i++) await options.storeClock.ask(options.store.clock);
  await requireTime(options);
  const sessionId = await openSession(options, signal);
  const membership = new StoreMembership(options, sessionId);
  await membership.begin();
  return membership;
}

class StoreMembership implements Membership {
  readonly node: string;
  readonly #options: JoinOptions;
  readonly #left = new AbortController();
  readonly #silence = new Map<number, { beat: number; sinceMono: number }>();
  /** Sessions that the service does not list, each with its heartbeat counter when its process was prompted to send a heartbeat. */
  readonly #asked = new Map<number, { beat: number; sinceMono: number }>();
  readonly #pulseListeners: ((pulse: Pulse) => void)[] = [];
  readonly #rejoinListeners: ((oldSessionId: number, newSessionId: number) => void)[] = [];
  readonly #leadershipListeners: ((term: number | null) => void)[] = [];
  /** Ended sessions of this process whose end has not been reported to the listeners yet. */
  readonly #lost: number[] = [];
  readonly #trust: Trust;
  readonly #standIn: StandIn;
  readonly #clockWatch: ClockWatch;
  #sessionId: number;
  #pulse: Pulse | undefined;
  #term: number | null = null;
  /** The reason for handing leadership over, once this process has been asked to do that; null before. */
  #handedOver: string | null = null;
  #toldTerm: number | null = null;
  #sawStoreAt = 0;
  /** When a heartbeat last queried runs that no worker can run, by the monotonic clock. */
  #lookedAt = Number.NEGATIVE_INFINITY;
  readonly #sleeper: Sleeper;
  /** The reason why this process cannot join, and when it was last logged. */
  #keptOut: { message: string; atMono: number } | undefined;
  #loop: Promise<void> | undefined;
  #cancelSilence: () => void = () => undefined;
  #cancelShown: () => void = () => undefined;
  #cancelAnswer: () => void = () => undefined;

  constructor(options: JoinOptions, sessionId: number) {
    this.#options = options;
    this.#sleeper = new Sleeper(options.clock);
    this.#clockWatch = new ClockWatch(options);
    this.node = options.identity.node;
    this.#sessionId = sessionId;
    this.#trust = new Trust(options.identity.timeoutMs - marginMs);
    this.#standIn = options.standIn ?? noStandIn;
  }

  get sessionId(): number {
    return this.#sessionId;
  }

  trusted(mono = this.#options.clock.monotonic()): boolean {
    return mono < this.#trustedUntil(mono);
  }

  doubtMs(): number {
    const mono = this.#options.clock.monotonic();
    return Math.max(0, mono - this.#trustedUntil(mono));
  }

  #trustedUntil(mono: number): number {
    // The stand-in thread's heartbeats count too, because the other members see them as heartbeats of this session.
    return Math.max(this.#trust.until(this.#options.provider, mono), this.#standIn.sureUntilMono());
  }

  term(): number | null {
    if (this.#term === null || this.#handedOver !== null || this.#standIn.acts || !this.trusted()) return null;
    const { provider, clock } = this.#options;
    return !provider || (provider.ahead() && this.#trust.heardUntil() >= clock.monotonic()) ? this.#term : null;
  }

  refresh(): void {
    this.#sleeper.wake();
  }

  heard(sessionId: number, beat: number): void {
    if (sessionId === this.#sessionId || (this.#silence.get(sessionId)?.beat ?? 0) >= beat) return;
    this.#silence.set(sessionId, { beat, sinceMono: this.#options.clock.monotonic() });
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

  /** Resolves after the first successful heartbeat, so that callers never see a membership without one. */
  async begin(): Promise<void> {
    const { provider } = this.#options;
    provider?.onChange((what) => this.#onProviderChange(what));
    this.#options.storeClock.onHold(() => this.refresh());
    this.#standIn.onBack((stood) => this.#onBack(stood));
    this.#announce();
    await this.#beat();
    this.#loop = this.#run();
  }

  async handOver(why: string): Promise<void> {
    this.#handedOver ??= why;
    this.#tellTerm();
    const { provider, log } = this.#options;
    try {
      if (this.#term !== null) await this.#resign(this.#term, why);
    } catch (error) {
      // The next heartbeat tries to resign again, and so does `leave`.
      log.debug({ error: messageOf(error) }, "leadership could not be handed over yet");
    }
    // The service is called after the store, so that the next node in the queue finds leadership vacant.
    await provider?.stepDown();
  }

  async #resign(term: number, why: string): Promise<void> {
    const { store, storeClock } = this.#options;
    await store.sessions.resign(term, storeClock.now(), why);
    if (this.#term === term) this.#term = null;
  }

  async leave(why: string, abandoned?: AbortSignal): Promise<void> {
    if (this.#left.signal.aborted) return;
    this.#left.abort();
    this.#sleeper.wake();
    await this.#loop;
    this.#cancelSilence();
    this.#cancelShown();
    this.#cancelAnswer();
    const { store, storeClock, log, provider } = this.#options;
    try {
      if (this.#term !== null) await this.#resign(this.#term, why);
      await store.sessions.end(this.#sessionId, null, storeClock.now(), why);
    } catch (error) {
      // If the session could not be ended here, other members end it after its timeout, or once the service no longer lists it.
      const fields = { error: messageOf(error) };
      if (abandoned?.aborted) log.debug(fields, "did not say goodbye to the store");
      else log.warn(fields, "could not say goodbye to the store");
    }
    this.#term = null;
    this.#trust.over(0);
    this.#tellTerm();
    // The service is called after the store, so that the next node in the queue finds leadership vacant.
    await provider?.leave();
  }

  /**
   * Handles an event of the service. Changes of the member list concern only the first in its queue; other events concern every process.
   */
  #onProviderChange(what: "first" | "sure" | "members"): void {
    this.#tellTerm();
    if (what !== "members" || this.#options.provider?.first()) this.refresh();
  }

  /**
   * Called when the event loop runs again after the stand-in thread had taken over. Sends a heartbeat, which writes to the session's row
   * whether the store or the service now decides if the session is alive.
   */
  #onBack({ resigned }: StoodIn): void {
    if (resigned) this.#term = null;
    this.#tellTerm();
    this.refresh();
  }

  #announce(): void {
    const { provider, identity } = this.#options;
    this.#standIn.tell({ sessionId: this.#sessionId });
    const { node, role, host, pid, version, groups = [], labels = {}, capacity = null } = identity;
    provider?.announce({ sessionId: this.#sessionId, node, role, host, pid, version, groups, labels, capacity });
  }

  async #run(): Promise<void> {
    const { beatMs, log } = this.#options;
    let failing = false;
    while (!this.#left.signal.aborted) {
      await this.#sleeper.sleep(this.#keptOut ? beatMs : failing ? Math.min(hurryMs, beatMs) : this.#untilNextLook());
      if (this.#left.signal.aborted) return;
      try {
        await this.#beat();
        if (failing) log.info({ node: this.node }, "this node's session is sure again");
        failing = false;
        this.#keptOut = undefined;
      } catch (error) {
        if (this.#left.signal.aborted) return;
        if (isCarillonError(error) && keptOutBy.has(error.code)) this.#tellKeptOut(error);
        else if (!failing)
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
    const { store, clock, storeClock, beatMs, identity, provider } = this.#options;
    // Only the process or its stand-in thread sends heartbeats, never both, so that each result is judged with its own heartbeat.
    const stood = await this.#standIn.quiet();
    if (stood) this.#trust.stoodIn(stood.sureUntilMono);
    const { times } = this.#standIn;
    const began = clock.monotonic();
    const backing = this.#backing();
    const looks = this.#term !== null && began - this.#lookedAt >= unservedLookMs;
    this.#trust.beating(backing, began);
    const pulse = await store.sessions.beat(this.#sessionId, storeClock.now(), {
      witnessed: backing === "provider",
      everyone: provider?.first() ?? false,
      wallMs: clock.wall(),
      unserved: looks,
    });
    if (this.#standIn.times !== times) return this.#beat();
    const ended = clock.monotonic();
    if (looks) this.#lookedAt = began;
    storeClock.sample(began, { ms: pulse.storeMs, ...pulse.clock }, ended);
    // After an outage that this process may share with the silent members, the time of their silence is counted from zero again.
    if (ended - this.#sawStoreAt > Math.min(2 * beatMs + marginMs, identity.timeoutMs)) {
      this.#silence.clear();
      this.#asked.clear();
    }
    this.#sawStoreAt = ended;
    if (!pulse.alive) return this.#rejoin();
    this.#trust.beaten(backing, began);
    await this.#clockWatch.beaten(pulse, this.#sessionId, this.#term !== null);
    this.#awaitSilence();
    this.#watchShown();
    for (const lost of this.#lost.splice(0)) {
      for (const listener of this.#rejoinListeners) listener(lost, this.#sessionId);
    }
    this.#pulse = pulse;
    this.#standIn.tell({ server: pulse.server ?? null });
    if (pulse.leadership.sessionId !== this.#sessionId || pulse.leadership.term !== this.#term) this.#term = null;
    await this.#bury(pulse);
    await this.#stand(pulse);
    this.#tellTerm();
    for (const listener of this.#pulseListeners) listener(pulse);
  }

  /** Starts a timer that leaves the service's queue if the store is out of reach for too long, so that another node can lead. */
  #awaitSilence(): void {
    const { provider, clock } = this.#options;
    this.#cancelSilence();
    if (!provider) return;
    this.#cancelSilence = clock.after(this.#trust.heardUntil() - clock.monotonic(), () => {
      this.#tellTerm();
      void provider.stepDown(); // never rejects; the next successful heartbeat enters the queue again
    });
  }

  /** Sends a heartbeat shortly before the service may no longer list the session, so that the session relies on the store in time. */
  #watchShown(): void {
    const { provider, clock, identity } = this.#options;
    this.#cancelShown();
    if (!provider || this.#trust.told !== "provider") return;
    const leftMs = provider.shownUntil() - this.#leadMs() - clock.monotonic();
    this.#cancelShown = clock.after(Math.min(leftMs, identity.timeoutMs), () => {
      if (this.#backing() === "provider") this.#watchShown();
      else this.refresh();
    });
  }

  /**
   * The session relies on the store again this many ms before the service may no longer list it; the store must answer in that
   * time. While the service answers, each answer postpones that moment, even if the service's session timeout is shorter.
   */
  #leadMs(): number {
    return Math.min(this.#options.identity.timeoutMs / 8, 1_000);
  }

  async #rejoin(): Promise<void> {
    const lost = this.#sessionId;
    this.#term = null;
    this.#trust.over(this.#options.clock.monotonic());
    this.#tellTerm();
    if (!this.#keptOut)
      this.#options.log.warn({ node: this.node, session: lost }, "this node was taken for dead; joining again");
    this.#sessionId = await this.#reopen();
    // The lost session stays in this list until a heartbeat succeeds, because the listeners are told of it only then.
    this.#lost.push(lost);
    this.#announce();
    await this.#beat();
  }

  /** Opens another session. Compares the settings before it inserts the row, so that failed attempts leave no row, and again afterwards. */
  async #reopen(): Promise<number> {
    const { agree, store, storeClock } = this.#options;
    const { signal } = this.#left;
    await agree?.(Number.POSITIVE_INFINITY, signal);
    const sessionId = await openSession(this.#options, signal);
    try {
      await agree?.(sessionId, signal);
      return sessionId;
    } catch (error) {
      await store.sessions.end(sessionId, null, storeClock.now(), "its settings differ from the others'");
      throw error;
    }
  }

  #tellKeptOut({ code, message, hint }: CarillonError): void {
    const mono = this.#options.clock.monotonic();
    const told = this.#keptOut;
    if (told?.message === message && mono - told.atMono < remindMs) return;
    this.#keptOut = { message, atMono: mono };
    this.#options.log.error(
      { node: this.node, code, advice: hint },
      `${message}; this process is kept out: it leads, plans and claims nothing, and tries again`,
    );
  }

  /** Returns `provider` if the service certainly lists the session for at least `#leadMs()` longer, otherwise `store`. */
  #backing(): Backing {
    const { provider, clock } = this.#options;
    return provider?.sure() && provider.shownUntil() - this.#leadMs() > clock.monotonic() ? "provider" : "store";
  }

  /** Ends the sessions of members that have sent no heartbeat for their timeout, and those that the service no longer lists. */
  async #bury(pulse: Pulse): Promise<void> {
    const mono = this.#options.clock.monotonic();
    const alive = new Set(pulse.members.map(({ sessionId }) => sessionId));
    for (const sessionId of this.#silence.keys()) if (!alive.has(sessionId)) this.#silence.delete(sessionId);
    for (const member of pulse.members) {
      // The heartbeats of a listed member are not watched. An old entry of such a member would cut each pause between heartbeats to 1 ms.
      if (member.witnessed) this.#silence.delete(member.sessionId);
      if (member.sessionId === this.#sessionId || member.witnessed) continue;
      const known = this.#silence.get(member.sessionId);
      if (!known || known.beat !== member.beat) {
        this.#silence.set(member.sessionId, { beat: member.beat, sinceMono: mono });
        continue;
      }
      const silentMs = mono - known.sinceMono;
      if (silentMs < member.timeoutMs) continue;
      await this.#end(pulse, member, `silent for ${Math.round(silentMs)} ms, seen by ${this.node}`);
    }
    await this.#buryGone(pulse);
  }

  /**
   * If this node is first in the queue, ends sessions that the service no longer lists; it queries the service after the store, so that it
   * misses no change. It first prompts each of these sessions to send a heartbeat, and does not end a session that sends it.
   */
  async #buryGone(pulse: Pulse): Promise<void> {
    const { provider, log } = this.#options;
    if (!provider?.first()) return this.#asked.clear();
    const shown = provider.shown();
    if (!shown) return; // the list is still being read; `onChange` follows
    const missing = pulse.members.filter(
      ({ sessionId, witnessed }) => witnessed && sessionId !== this.#sessionId && !shown.has(sessionId),
    );
    for (const sessionId of this.#asked.keys())
      if (!missing.some((member) => member.sessionId === sessionId)) this.#asked.delete(sessionId);
    if (missing.length === 0) return;
    const gone = await provider.gone(missing.map(({ sessionId }) => sessionId)).catch((error) => {
      log.warn({ error: messageOf(error) }, `${provider.title} does not say who is gone`);
      return [] as number[]; // a failed query counts no member as gone; the next heartbeat queries again
    });
    for (const member of missing) {
      if (gone.includes(member.sessionId) && (await this.#isSilent(member)))
        await this.#end(pulse, member, `not shown by ${provider.title} any more, seen by ${this.node}`);
    }
  }

  /** Prompts the session once per count of its heartbeats. @returns true if it sent no heartbeat within `answerMs` after the prompt */
  async #isSilent({ sessionId, node, beat, timeoutMs }: Beating): Promise<boolean> {
    const { store, clock, log, provider } = this.#options;
    const asked = this.#asked.get(sessionId);
    if (asked?.beat === beat) return clock.monotonic() - asked.sinceMono >= answerMs(timeoutMs);
    if (asked) {
      this.#asked.delete(sessionId);
      log.warn(
        { node, session: sessionId },
        `${provider?.title} does not show a member whose beats reach the store; it is not taken for dead. Does another program write there?`,
      );
      return false;
    }
    this.#asked.set(sessionId, { beat, sinceMono: clock.monotonic() });
    await store.sessions.prompt(sessionId);
    this.#cancelAnswer();
    this.#cancelAnswer = clock.after(answerMs(timeoutMs), () => this.refresh());
    return false;
  }

  async #end(pulse: Pulse, member: Beating, why: string): Promise<void> {
    const { store, storeClock, log } = this.#options;
    if (!(await store.sessions.end(member.sessionId, member.beat, storeClock.now(), why))) return;
    log.warn({ node: member.node, session: member.sessionId, why }, "a member is gone; its session is over");
    pulse.members = pulse.members.filter(({ sessionId }) => sessionId !== member.sessionId);
    if (pulse.leadership.sessionId === member.sessionId) pulse.led = false;
    this.refresh();
  }

  /** Takes a vacant term or, as the first in the queue, that of a leader that is not first; resigns if it may not lead. */
  async #stand({ leadership, led }: Pulse): Promise<void> {
    const { store, storeClock, identity, log, provider } = this.#options;
    if (identity.role !== "node" || identity.settings?.observer || this.#left.signal.aborted) return;
    const mine = leadership.sessionId === this.#sessionId;
    if (this.#handedOver !== null) {
      if (mine) await this.#resign(leadership.term, this.#handedOver);
      return;
    }
    provider?.contend();
    if (provider && !provider.ahead()) {
      this.#term = null;
      if (mine) await store.sessions.resign(leadership.term, storeClock.now(), `not first in ${provider.title}'s line`);
      return;
    }
    if (mine) {
      this.#term = leadership.term;
      return;
    }
    // A node that is only `ahead` takes no term from a leader: two nodes that are both `ahead` could otherwise depose each other.
    if (led && !provider?.first()) return;
    const term = await store.sessions.campaign(this.#sessionId, this.node, leadership, storeClock.now(), led);
    if (term === null) {
      this.refresh();
      return;
    }
    this.#term = term;
    log.info({ node: this.node, term }, "this node leads");
  }

  #tellTerm(): void {
    const term = this.term();
    if (term === this.#toldTerm) return;
    this.#toldTerm = term;
    this.#standIn.tell({ term });
    for (const listener of this.#leadershipListeners) listener(term);
  }

  /** The time in ms until the next heartbeat; shorter if a member without heartbeats reaches its timeout earlier. */
  #untilNextLook(): number {
    const { clock } = this.#options;
    const mono = clock.monotonic();
    let wait = this.#untilBeat();
    // Until the nodes have judged a step of the store's clock, heartbeats follow each other at a short interval.
    if (this.#options.storeClock.held) wait = Math.min(wait, hurryMs);
    for (const member of this.#pulse?.members ?? []) {
      const known = this.#silence.get(member.sessionId);
      // Only members without a heartbeat between the last two reads matter: the timeout of any other member ends after the next heartbeat.
      if (known && known.sinceMono < this.#sawStoreAt) wait = Math.min(wait, known.sinceMono + member.timeoutMs - mono);
    }
    return Math.max(wait, 1);
  }

  #untilBeat(): number {
    const { storeClock, beatMs, shownBeatMs = beatMs, identity } = this.#options;
    // A process that the service lists sends heartbeats rarely, unless it leads: a leader needs the store's answers. It sends one at once
    // if the row does not say yet that the service lists the session (members then watch its heartbeats), or if trust was interrupted.
    if (this.#backing() === "provider" && this.#term === null)
      return this.#trust.told === "provider" && this.trusted() ? shownBeatMs : 0;
    const nodes = (this.#pulse?.members ?? []).flatMap(({ role, sessionId }) => (role === "node" ? [sessionId] : []));
    return untilBeat(storeClock.now(), beatMs, placeOf(this.#sessionId, identity.role, nodes));
  }
}
