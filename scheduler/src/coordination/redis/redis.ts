import { randomUUID } from "node:crypto";
import { type Clock, Sleeper, systemClock } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Random } from "../../base/random.ts";
import type { LockNeeds, LockPlace } from "../../cluster/locks.ts";
import type { Shown, Witness, WitnessOptions } from "../../cluster/witness.ts";
import { RedisConnection } from "./connection.ts";
import { RedisLocks } from "./lock.ts";
import { RedisMembers } from "./members.ts";
import { droppedContender, droppedSession, RedisRegistry, type Renewal } from "./registry.ts";

export interface RedisWitnessOptions extends WitnessOptions {
  /** True: reject if Redis cannot be reached, instead of trying again; default false. */
  readonly failFast?: boolean;
  readonly clock?: Clock;
  readonly random?: Random;
}

/** The safety margin, in ms, by which trust ends before the TTL (at most a quarter of the TTL), because clocks run at different speeds. */
const marginMs = 500;
const renewalsPerTtl = 3;
/** The most lost sessions or contenders that renewals drop; more of them expire by themselves. */
const droppedMost = 100;

/**
 * A witness on Redis. RedisRegistry describes its guarantees.
 *
 * One renewal every third of the session timeout reports that this process is alive and in line, and its answer brings everything that this
 * process must know. Trust is measured from the moment when the renewal began.
 * @throws COORDINATION_REFUSED, COORDINATION_FOREIGN, COORDINATION_UNSUPPORTED, OPTION_INVALID; COORDINATION_UNREACHABLE with `failFast`,
 * or when the signal aborted
 */
export async function openRedisWitness(options: RedisWitnessOptions): Promise<Witness> {
  const { clock = systemClock, clusterId, sessionTimeoutMs } = options;
  let registry: RedisRegistry | undefined;
  const connection = await RedisConnection.open({
    ...options,
    timeoutMs: Math.ceil(sessionTimeoutMs / renewalsPerTtl),
    probe: (connection) => {
      registry = new RedisRegistry(connection, clock, clusterId, sessionTimeoutMs);
      return registry.knowService(options.nameNew);
    },
  });
  if (!registry) throw new Error("a connection was opened without its probe");
  return new RedisWitness(connection, registry, clock, options);
}

type Change = "first" | "sure" | "members";

class RedisWitness implements Witness {
  readonly title = "Redis";
  readonly serviceId: string;
  readonly #connection: RedisConnection;
  readonly #registry: RedisRegistry;
  readonly #clock: Clock;
  readonly #options: RedisWitnessOptions;
  readonly #members: RedisMembers;
  readonly #listeners: ((what: Change) => void)[] = [];
  readonly #left = new AbortController();
  readonly #beating: Promise<void>;
  #shown: Shown | undefined;
  #contender: string | undefined;
  readonly #dropped = new Set<string>();
  #shownUntil = 0;
  #shownSince = 0;
  #firstUntil = 0;
  /** Until when this process is first in line or "ahead"; never before `#firstUntil`. */
  #aheadUntil = 0;
  #sureUntil = 0;
  #told = { first: false, ahead: false, sure: false };
  #cancelTelling: () => void = () => undefined;
  readonly #sleeper: Sleeper;
  #epoch: string | undefined;
  #following = false;
  #readMembers = false;
  #behind = -1;

  constructor(connection: RedisConnection, registry: RedisRegistry, clock: Clock, options: RedisWitnessOptions) {
    this.#connection = connection;
    this.#registry = registry;
    this.serviceId = registry.serviceId;
    this.#clock = clock;
    this.#sleeper = new Sleeper(clock);
    this.#options = options;
    this.#members = new RedisMembers(options.log);
    connection.onLost = () => this.#doubt();
    this.#beating = this.#beat();
  }

  announce(shown: Shown): void {
    if (this.#left.signal.aborted) return;
    const before = this.#shown;
    if (before && before.sessionId !== shown.sessionId) {
      this.#drop(droppedSession(before.sessionId));
      this.#shownUntil = 0;
    }
    this.#dropped.delete(droppedSession(shown.sessionId));
    this.#shown = { ...shown };
    this.#hurry();
  }

  shownUntil(): number {
    return this.#shownUntil;
  }

  shownSince(): number {
    return this.#shownSince;
  }

  sure(): boolean {
    return this.#clock.monotonic() < this.#sureUntil;
  }

  async gone(sessionIds: readonly number[]): Promise<number[]> {
    return sessionIds.length === 0 ? [] : this.#registry.gone(sessionIds);
  }

  shown(): ReadonlySet<number> | undefined {
    this.#followMembers();
    return this.#members.version < 0 ? undefined : this.#members.shown;
  }

  async described(sessionId: number): Promise<Shown | undefined> {
    const text = await this.#registry.described(sessionId);
    return text === undefined ? undefined : (JSON.parse(text) as Shown);
  }

  contend(): void {
    if (this.#contender || this.#left.signal.aborted) return;
    // A new name each time, so that an entry left from an earlier stay in the line does not count as this contender.
    this.#contender = randomUUID();
    this.#followLine();
    this.#hurry();
  }

  async stepDown(): Promise<void> {
    const contender = this.#contender;
    if (!contender) return;
    this.#contender = undefined;
    this.#firstUntil = this.#aheadUntil = 0; // cleared before another process can be first
    this.#tell();
    this.#drop(droppedContender(contender));
    await this.#renewOrDoubt();
  }

  first(): boolean {
    return this.#clock.monotonic() < this.#firstUntil;
  }

  ahead(): boolean {
    return this.#clock.monotonic() < this.#aheadUntil;
  }

  onChange(listener: (what: Change) => void): void {
    this.#listeners.push(listener);
  }

  /** Locks use a connection of their own, so that a slow renewal does not delay their requests. */
  locks({ era, nextBase }: LockNeeds): Promise<LockPlace> {
    const { clusterId, url, log, signal, clock, random, failFast, sessionTimeoutMs } = this.#options;
    const common = { clusterId, url, log, signal, clock, random, failFast, ttlMs: sessionTimeoutMs };
    return RedisLocks.open({ ...common, era, fenceBase: nextBase });
  }

  async leave(): Promise<void> {
    if (!this.#left.signal.aborted) {
      if (this.#shown) this.#drop(droppedSession(this.#shown.sessionId));
      if (this.#contender) this.#drop(droppedContender(this.#contender));
      this.#shown = this.#contender = undefined;
      this.#shownUntil = this.#firstUntil = this.#aheadUntil = 0;
      this.#left.abort();
      this.#hurry();
      this.#tell();
    }
    await this.#beating;
  }

  #drop(name: string): void {
    if (this.#dropped.size < droppedMost) this.#dropped.add(name);
  }

  #followLine(): void {
    const message = (contender: string) => {
      if (contender === this.#contender) this.#hurry();
    };
    // While no messages arrived, this process may have become the first in line.
    this.#connection.follow(this.#registry.firstChannel, message, () => this.#hurry());
  }

  #followMembers(): void {
    if (this.#following || this.#left.signal.aborted) return;
    this.#following = true;
    const message = (text: string) => {
      if (this.#members.message(text)) this.#call("members");
    };
    const following = () => {
      this.#readMembers = true;
      this.#hurry();
    };
    this.#connection.follow(this.#registry.channel, message, following);
  }

  async #beat(): Promise<void> {
    while (!this.#left.signal.aborted) await this.#sleeper.sleep(await this.#renewOrDoubt());
    // The last renewal shows no session; if it fails, all entries expire by themselves.
    await this.#renewOrDoubt();
    this.#cancelTelling();
    this.#sureUntil = 0;
    this.#tell();
    this.#connection.close();
  }

  /** @returns how long until the next renewal is due, ms */
  async #renewOrDoubt(): Promise<number> {
    try {
      return await this.#renew();
    } catch (error) {
      if (this.#told.sure) this.#options.log(messageOf(error));
      this.#doubt();
      return this.#connection.retryMs();
    }
  }

  async #renew(): Promise<number> {
    const { sessionTimeoutMs } = this.#options;
    const asked: Renewal = { shown: this.#shown, contender: this.#contender, dropped: [...this.#dropped] };
    const began = this.#clock.monotonic();
    const answer = await this.#registry.renew(asked);
    for (const name of asked.dropped) this.#dropped.delete(name);

    // The answer describes the state at the time of the request: meanwhile this process may be shown under another session or have stepped
    // down.
    const until = began + sessionTimeoutMs - Math.min(marginMs, sessionTimeoutMs / 4);
    this.#sureUntil = until;
    if (asked.shown && asked.shown.sessionId === this.#shown?.sessionId) this.#isShown(until);
    if (asked.contender && asked.contender === this.#contender) {
      this.#firstUntil = answer.place === "first" ? until : 0;
      this.#aheadUntil = answer.place === "behind" ? 0 : until;
    }
    this.#tell();

    await this.#lookAtMembers(answer.epoch, answer.version);
    const due = [sessionTimeoutMs / renewalsPerTtl];
    // Rounded up, because the service counts whole milliseconds and a request that is too early would have to be repeated.
    if (this.#contender && answer.doubtMs > 0) due.push(answer.doubtMs + 1);
    if (this.#contender && answer.vacantInMs !== undefined) due.push(answer.vacantInMs + 1);
    return Math.max(0, Math.min(...due) - (this.#clock.monotonic() - began));
  }

  #isShown(until: number): void {
    const mono = this.#clock.monotonic();
    // The answer came so late that the session may have disappeared in between.
    if (mono >= this.#shownUntil) this.#shownSince = mono;
    this.#shownUntil = until;
  }

  /** Makes up for lost messages: if the member list is behind at two renewals in a row, messages were lost. */
  async #lookAtMembers(epoch: string, version: number): Promise<void> {
    if (epoch !== this.#epoch) {
      if (this.#epoch !== undefined) this.#members.forget();
      this.#epoch = epoch;
      this.#readMembers = true;
    }
    if (!this.#following || this.#left.signal.aborted) return;
    const { version: known } = this.#members;
    if (known >= version || this.#readMembers) this.#behind = -1;
    else if (this.#behind < 0) this.#behind = version;
    else if (known < this.#behind) {
      this.#behind = -1;
      this.#readMembers = true;
      this.#connection.refollow();
    }
    if (!this.#readMembers) return;
    this.#readMembers = false;
    try {
      const read = await this.#registry.members();
      this.#members.reset(read.version, read.shown);
    } catch (error) {
      this.#readMembers = true;
      throw error;
    }
    this.#call("members");
  }

  /** The connection is gone, or a request failed: trust runs out by itself, but the cached state is no longer current. */
  #doubt(): void {
    this.#sureUntil = 0;
    this.#tell();
  }

  #tell(): void {
    const before = this.#told;
    const now = { first: this.first(), ahead: this.ahead(), sure: this.sure() };
    this.#told = now;
    if (before.first !== now.first || before.ahead !== now.ahead) this.#call("first");
    if (before.sure !== now.sure) this.#call("sure");
    this.#cancelTelling();
    const mono = this.#clock.monotonic();
    const ends = [this.#firstUntil, this.#aheadUntil, this.#sureUntil].filter((end) => end > mono);
    if (ends.length > 0) this.#cancelTelling = this.#clock.after(Math.min(...ends) - mono, () => this.#tell());
  }

  #call(what: Change): void {
    for (const listener of this.#listeners) listener(what);
  }

  #hurry(): void {
    this.#sleeper.wake();
  }
}
