import { randomUUID } from "node:crypto";
import { type Clock, Sleeper, systemClock } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Random } from "../../base/random.ts";
import type { LockNeeds, LockPlace } from "../../cluster/locks.ts";
import type { MembershipProvider, MembershipProviderOptions, Shown } from "../../cluster/membership-provider.ts";
import { RedisConnection } from "./connection.ts";
import { RedisLocks } from "./lock.ts";
import { RedisMembers } from "./members.ts";
import { droppedContender, droppedSession, RedisRegistry, type Renewal } from "./registry.ts";

export interface RedisProviderOptions extends MembershipProviderOptions {
  /** True: rejects if Redis is unreachable, instead of retrying; default false. */
  readonly failFast?: boolean;
  readonly clock?: Clock;
  readonly random?: Random;
}

/**
 * How much earlier than its TTL an entry counts as expired in this process, in ms (at most a quarter of the TTL), because clocks run at
 * different speeds.
 */
const marginMs = 500;
const renewalsPerTtl = 3;
/** The maximum number of lost sessions and candidates that one renewal deletes; further ones expire after their TTL. */
const droppedMost = 100;

/**
 * A coordination service in Redis; `RedisRegistry` describes its guarantees.
 *
 * At least every third of the session timeout, one request renews this process's entry in the list and in the queue, and its
 * answer states the place in the queue and the number of the last message about the list. The time for which an entry is
 * certain is measured from the moment when the request was sent.
 * @throws COORDINATION_REFUSED, COORDINATION_FOREIGN, COORDINATION_UNSUPPORTED, OPTION_INVALID; COORDINATION_UNREACHABLE with
 * `failFast`, or if the signal aborted; and the errors of `nameNew`
 */
export async function openRedisProvider(options: RedisProviderOptions): Promise<MembershipProvider> {
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
  return new RedisProvider(connection, registry, clock, options);
}

type Change = "first" | "sure" | "members";

class RedisProvider implements MembershipProvider {
  readonly title = "Redis";
  readonly serviceId: string;
  readonly #connection: RedisConnection;
  readonly #registry: RedisRegistry;
  readonly #clock: Clock;
  readonly #options: RedisProviderOptions;
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
  /** The time until which this process is certainly first in the queue or `ahead`; never before `#firstUntil`. */
  #aheadUntil = 0;
  #sureUntil = 0;
  #told = { first: false, ahead: false, sure: false };
  #cancelTelling: () => void = () => undefined;
  readonly #sleeper: Sleeper;
  #epoch: string | undefined;
  #following = false;
  #readMembers = false;
  #behind = -1;

  constructor(connection: RedisConnection, registry: RedisRegistry, clock: Clock, options: RedisProviderOptions) {
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
    // Creates a new id each time, so that an entry from an earlier time in the queue is not mistaken for the new entry.
    this.#contender = randomUUID();
    this.#followLine();
    this.#hurry();
  }

  async stepDown(): Promise<void> {
    const contender = this.#contender;
    if (!contender) return;
    this.#contender = undefined;
    this.#firstUntil = this.#aheadUntil = 0; // set to 0 before another process can become the first
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

  /** Opens the locks on a separate connection, so that a slow renewal does not delay their requests. */
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
    // While the subscription was interrupted, this process may have become the first in the queue, so it renews at once.
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
    // The last renewal lists no session. If it fails, the entries expire after their TTL.
    await this.#renewOrDoubt();
    this.#cancelTelling();
    this.#sureUntil = 0;
    this.#tell();
    this.#connection.close();
  }

  /** Renews, or marks the cached state as uncertain if that fails. @returns the time until the next renewal in ms */
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

    // The answer describes the time of the request. Its statements about a session or queue entry that this process has given up since
    // are ignored.
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
    // One ms is added, because the service counts whole milliseconds and a request that is too early would have to be repeated.
    if (this.#contender && answer.doubtMs > 0) due.push(answer.doubtMs + 1);
    if (this.#contender && answer.vacantInMs !== undefined) due.push(answer.vacantInMs + 1);
    return Math.max(0, Math.min(...due) - (this.#clock.monotonic() - began));
  }

  #isShown(until: number): void {
    const mono = this.#clock.monotonic();
    // The answer came after the entry's time was over, so an observer may have seen the entry disappear.
    if (mono >= this.#shownUntil) this.#shownSince = mono;
    this.#shownUntil = until;
  }

  /**
   * Reads the whole list if that is due: at the subscription, after the service has lost its data, or if the list was behind at two
   * renewals in a row, because messages were lost then.
   */
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

  /** Called if the connection is lost or a request has failed: `sure` becomes false; `first` and `ahead` end when their times are over. */
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
