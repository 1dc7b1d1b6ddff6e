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
/** How often a leader looks for runs that wait in vain for a worker, in ms; it logs runs that have waited for a minute. */
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
 * Sessions and leadership by rows and heartbeats in the store. A beat is a counter. A member that watches a session presumes it
 * dead when the counter stood still for the session's timeout by the watcher's own monotonic clock, during which the watcher
 * itself never lost sight of the store. Then it ends the session by compare-and-set on that counter, so a beat that arrives first
 * wins. The leader's beats are also announced by signals: if watchers saw them only with their own next beat, half a timeout
 * later perhaps, they would notice its death as much later. Leadership follows: it is free once its holder's session has ended.
 *
 * With a witness (a coordination service), a session that the witness shows says so in its row and is judged by that: the member
 * that is first in the witness's line ends sessions that the witness no longer shows. A session that is in doubt of the witness
 * says in its next beat that it relies on the store again, and goes on. So a service that is away costs only the leader, whose
 * work the rescuers do. To lead, a node must be first in line and reach the store; it may then depose a leader that
 * is not, and from then on the store refuses the old term's number. If the witness has lost its memory and cannot say yet which
 * node is first, the node that is ahead takes a vacant term.
 *
 * @throws NODE_NAME_TAKEN when a live process goes on beating under the same name; CLOCK_BACK
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
  /** Sessions that the witness does not show, each with its beat at the moment when its process was asked to beat. */
  readonly #asked = new Map<number, { beat: number; sinceMono: number }>();
  readonly #pulseListeners: ((pulse: Pulse) => void)[] = [];
  readonly #rejoinListeners: ((oldSessionId: number, newSessionId: number) => void)[] = [];
  readonly #leadershipListeners: ((term: number | null) => void)[] = [];
  /** Sessions of this process that have ended, and whose end has not been reported yet. */
  readonly #lost: number[] = [];
  readonly #trust: Trust;
  readonly #standIn: StandIn;
  readonly #clockWatch: ClockWatch;
  #sessionId: number;
  #pulse: Pulse | undefined;
  #term: number | null = null;
  /** The reason given for handing over; set once this process has been asked to hand over leadership. */
  #handedOver: string | null = null;
  #toldTerm: number | null = null;
  #sawStoreAt = 0;
  /** When a beat last looked for runs that wait in vain. */
  #lookedAt = Number.NEGATIVE_INFINITY;
  readonly #sleeper: Sleeper;
  /** Why this process is not a member, and when that was last logged. */
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
    // The stand-in's proofs of life count too: its beat makes the other members judge the session by the stand-in's beats.
    return Math.max(this.#trust.until(this.#options.witness, mono), this.#standIn.sureUntilMono());
  }

  term(): number | null {
    if (this.#term === null || this.#handedOver !== null || this.#standIn.acts || !this.trusted()) return null;
    const { witness, clock } = this.#options;
    return !witness || (witness.ahead() && this.#trust.heardUntil() >= clock.monotonic()) ? this.#term : null;
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

  /** Resolves after the first successful beat, so that callers never see a membership that has not beaten. */
  async begin(): Promise<void> {
    const { witness } = this.#options;
    witness?.onChange((what) => this.#onWitness(what));
    this.#options.storeClock.onHold(() => this.refresh());
    this.#standIn.onBack((stood) => this.#onBack(stood));
    this.#announce();
    await this.#beat();
    this.#loop = this.#run();
  }

  async handOver(why: string): Promise<void> {
    this.#handedOver ??= why;
    this.#tellTerm();
    const { witness, log } = this.#options;
    try {
      if (this.#term !== null) await this.#resign(this.#term, why);
    } catch (error) {
      // The next beat tries again to resign, and at last `leave` does.
      log.debug({ error: messageOf(error) }, "leadership could not be handed over yet");
    }
    // The witness is called after the store, so that the next in line finds leadership vacant.
    await witness?.stepDown();
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
    const { store, storeClock, log, witness } = this.#options;
    try {
      if (this.#term !== null) await this.#resign(this.#term, why);
      await store.sessions.end(this.#sessionId, null, storeClock.now(), why);
    } catch (error) {
      // Without this call, other members find the session silent; the only cost is that wait.
      const fields = { error: messageOf(error) };
      if (abandoned?.aborted) log.debug(fields, "did not say goodbye to the store");
      else log.warn(fields, "could not say goodbye to the store");
    }
    this.#term = null;
    this.#trust.over(0);
    this.#tellTerm();
    // The witness is called after the store, so that the next in line finds leadership vacant.
    await witness?.leave();
  }

  /** Changes of the member list matter only to the first in the witness's line; other events change this process's own state. */
  #onWitness(what: "first" | "sure" | "members"): void {
    this.#tellTerm();
    if (what !== "members" || this.#options.witness?.first()) this.refresh();
  }

  /** Called when the event loop runs again: the next beat records whether the store or the witness backs the session from now on. */
  #onBack({ resigned }: StoodIn): void {
    if (resigned) this.#term = null;
    this.#tellTerm();
    this.refresh();
  }

  #announce(): void {
    const { witness, identity } = this.#options;
    this.#standIn.tell({ sessionId: this.#sessionId });
    const { node, role, host, pid, version, groups = [], labels = {}, capacity = null } = identity;
    witness?.announce({ sessionId: this.#sessionId, node, role, host, pid, version, groups, labels, capacity });
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
    const { store, clock, storeClock, beatMs, identity, witness } = this.#options;
    // Either this process or its stand-in beats for the session, never both: with two beats at once, other members could go by either.
    const stood = await this.#standIn.quiet();
    if (stood) this.#trust.stoodIn(stood.sureUntilMono);
    const { times } = this.#standIn;
    const began = clock.monotonic();
    const backing = this.#backing();
    const looks = this.#term !== null && began - this.#lookedAt >= unservedLookMs;
    this.#trust.beating(backing, began);
    const pulse = await store.sessions.beat(this.#sessionId, storeClock.now(), {
      witnessed: backing === "witness",
      everyone: witness?.first() ?? false,
      wallMs: clock.wall(),
      unserved: looks,
    });
    if (this.#standIn.times !== times) return this.#beat();
    const ended = clock.monotonic();
    if (looks) this.#lookedAt = began;
    storeClock.sample(began, { ms: pulse.storeMs, ...pulse.clock }, ended);
    // After an interruption of over two beats or a timeout, silences are counted anew: silent members may have been cut off as well.
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

  /**
   * If this node is first in line but cut off from the store, it steps down, so that another can lead. A timer, because a beat may hang.
   */
  #awaitSilence(): void {
    const { witness, clock } = this.#options;
    this.#cancelSilence();
    if (!witness) return;
    this.#cancelSilence = clock.after(this.#trust.heardUntil() - clock.monotonic(), () => {
      this.#tellTerm();
      void witness.stepDown(); // never rejects; the next answered beat stands for leadership again
    });
  }

  /** While the row names the witness as backing, a beat withdraws that shortly before the backing ends, so that there is no gap. */
  #watchShown(): void {
    const { witness, clock, identity } = this.#options;
    this.#cancelShown();
    if (!witness || this.#trust.told !== "witness") return;
    const leftMs = witness.shownUntil() - this.#leadMs() - clock.monotonic();
    this.#cancelShown = clock.after(Math.min(leftMs, identity.timeoutMs), () => {
      if (this.#backing() === "witness") this.#watchShown();
      else this.refresh();
    });
  }

  /**
   * How long before the end of the witness's backing a process turns to the store, which has to answer by then, in ms. While the service
   * answers, much more time than this is left, even if the service's sessions are shorter than this process's.
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
    // The loss is reported with the first successful beat: if this beat fails, the work that depended on the lost session is not forgotten.
    this.#lost.push(lost);
    this.#announce();
    await this.#beat();
  }

  /**
   * Opens another session. The other members' settings may have changed, so they are compared before a row is made, and a process that
   * cannot join leaves no row behind at each retry; they are compared again afterwards, for members that join at this moment.
   */
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

  /** Returns `witness` only while the witness certainly shows the session and will do so for a while; else `store`. */
  #backing(): Backing {
    const { witness, clock } = this.#options;
    return witness?.sure() && witness.shownUntil() - this.#leadMs() > clock.monotonic() ? "witness" : "store";
  }

  /** Ends the sessions that stood still for too long. */
  async #bury(pulse: Pulse): Promise<void> {
    const mono = this.#options.clock.monotonic();
    const alive = new Set(pulse.members.map(({ sessionId }) => sessionId));
    for (const sessionId of this.#silence.keys()) if (!alive.has(sessionId)) this.#silence.delete(sessionId);
    for (const member of pulse.members) {
      // A silence that was counted before a service showed the member would never end, and this process would beat without a pause.
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
   * As the first in line, ends sessions that the witness no longer shows. It queries the witness after the store, so that it misses no
   * change. Each session is first asked to beat; a session that beats lives, whatever the witness shows.
   */
  async #buryGone(pulse: Pulse): Promise<void> {
    const { witness, log } = this.#options;
    if (!witness?.first()) return this.#asked.clear();
    const shown = witness.shown();
    if (!shown) return; // the member list is still being read; a notification follows
    const missing = pulse.members.filter(
      ({ sessionId, witnessed }) => witnessed && sessionId !== this.#sessionId && !shown.has(sessionId),
    );
    for (const sessionId of this.#asked.keys())
      if (!missing.some((member) => member.sessionId === sessionId)) this.#asked.delete(sessionId);
    if (missing.length === 0) return;
    const gone = await witness.gone(missing.map(({ sessionId }) => sessionId)).catch((error) => {
      log.warn({ error: messageOf(error) }, `${witness.title} does not say who is gone`);
      return [] as number[]; // without an answer no member counts as gone; the next look queries again
    });
    for (const member of missing) {
      if (gone.includes(member.sessionId) && (await this.#isSilent(member)))
        await this.#end(pulse, member, `not shown by ${witness.title} any more, seen by ${this.node}`);
    }
  }

  /** @returns true if the session has not beaten since it was asked to, for the longest time that an answer takes */
  async #isSilent({ sessionId, node, beat, timeoutMs }: Beating): Promise<boolean> {
    const { store, clock, log, witness } = this.#options;
    const asked = this.#asked.get(sessionId);
    if (asked?.beat === beat) return clock.monotonic() - asked.sinceMono >= answerMs(timeoutMs);
    if (asked) {
      this.#asked.delete(sessionId);
      log.warn(
        { node, session: sessionId },
        `${witness?.title} does not show a member whose beats reach the store; it is not taken for dead. Does another program write there?`,
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

  /** Tries to become the leader where leadership is vacant. */
  async #stand({ leadership, led }: Pulse): Promise<void> {
    const { store, storeClock, identity, log, witness } = this.#options;
    if (identity.role !== "node" || identity.settings?.observer || this.#left.signal.aborted) return;
    const mine = leadership.sessionId === this.#sessionId;
    if (this.#handedOver !== null) {
      if (mine) await this.#resign(leadership.term, this.#handedOver);
      return;
    }
    witness?.contend();
    if (witness && !witness.ahead()) {
      this.#term = null;
      if (mine) await store.sessions.resign(leadership.term, storeClock.now(), `not first in ${witness.title}'s line`);
      return;
    }
    if (mine) {
      this.#term = leadership.term;
      return;
    }
    // A node that is only ahead takes only a vacant term: if it could depose a leader, two nodes that both believe to be ahead could depose
    // each other in turn.
    if (led && !witness?.first()) return;
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

  /** Returns the wait until the next beat in ms, shortened if a silent member's timeout ends before. */
  #untilNextLook(): number {
    const { clock } = this.#options;
    const mono = clock.monotonic();
    let wait = this.#untilBeat();
    // Beats come soon until the nodes have judged a step of the store's clock.
    if (this.#options.storeClock.held) wait = Math.min(wait, hurryMs);
    for (const member of this.#pulse?.members ?? []) {
      const known = this.#silence.get(member.sessionId);
      // Only members that stood still between the last two looks matter: for the others the timeout ends after the next look anyway.
      if (known && known.sinceMono < this.#sawStoreAt) wait = Math.min(wait, known.sinceMono + member.timeoutMs - mono);
    }
    return Math.max(wait, 1);
  }

  #untilBeat(): number {
    const { storeClock, beatMs, shownBeatMs = beatMs, identity } = this.#options;
    // A process shown by a service proves its life there and beats rarely, except a leader, which needs the store's answers. It beats
    // rarely only once the other members have read from its row that the service shows it (until then they count its silence in the store),
    // and only while its trust has had no gap.
    if (this.#backing() === "witness" && this.#term === null)
      return this.#trust.told === "witness" && this.trusted() ? shownBeatMs : 0;
    const nodes = (this.#pulse?.members ?? []).flatMap(({ role, sessionId }) => (role === "node" ? [sessionId] : []));
    return untilBeat(storeClock.now(), beatMs, placeOf(this.#sessionId, identity.role, nodes));
  }
}
