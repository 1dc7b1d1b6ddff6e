import type { OutboxMessage } from "../../alarms/alarm-store.ts";
import { type AlarmRule, againAfterMs, alarmRules, type Finding, giveUpAfterMs } from "../../alarms/alarms.ts";
import { type Clock, limitedTo } from "../../base/clock.ts";
import { isCarillonError, messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Membership } from "../../cluster/membership.ts";
import type { Pulse } from "../../cluster/session-store.ts";
import type { AlarmSettings } from "../../settings/alarms/alarms.ts";
import type { Store } from "../../store/store.ts";
import type { StoreClock } from "../../store/store-clock.ts";
import type { Ping } from "./ping.ts";

/**
 * Delivers a message to a channel. Rejects if the message was not accepted.
 * @param id the message's id, which stays the same when the message is sent again
 */
export type Deliver = (id: string, message: OutboxMessage["message"], signal: AbortSignal) => Promise<void>;

export interface AlarmsOptions {
  store: Store;
  membership: Membership;
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
  settings: AlarmSettings;
  /** The name of this process. */
  node: string;
  channels: Record<string, Deliver>;
  ping?: Ping;
  /** Returns the findings about tasks that this process cannot plan; null if not known yet. */
  unreadable: () => Finding[] | null;
}

/**
 * The shortest interval between two searches for alarms, in ms, except after a change of the cluster clock. A search sums
 * counters over all tasks, so it is not made at each heartbeat.
 */
const lookEveryMs = 2_500;
/** For how long a process reserves a message that it sends, in ms. Until then no other process sends it. */
const takenForMs = 60_000;
/** The time limit for delivering one message, in ms; less than `takenForMs`. */
const deliverWithinMs = 40_000;
const takenAtOnce = 20;
/** The longest pause in ms that a receiver can ask for; a longer pause is shortened to this. */
const longestAskedMs = 3_600_000;

/**
 * Ensures that each problem leads to a message on each of its channels, and to another one when it is over, even if a process
 * dies meanwhile. A message may then arrive twice, with the same id; it is given up if it cannot be sent for a day. The leader
 * evaluates the stored rules and, if it has channels, searches for alarms. Once there has been no leader for `leaderlessMs`, each
 * node with channels searches only for the alarms `leaderless` and `recovery`. Messages wait in the store, and each process sends
 * those for its own channels.
 */
export class Alarms {
  readonly #options: AlarmsOptions;
  readonly #stopping = new AbortController();
  #lookedAt = Number.NEGATIVE_INFINITY;
  #leaderlessAt: number | null = null;
  /** True if the store has alarm rules, according to the heartbeat that started the last search; true before that. */
  #ruled = true;
  /** The version of the cluster clock at the last search. */
  #clockNumber: number | undefined;
  /**
   * The operations in progress: with the key `null` the search for alarms, with a channel's name the delivery on that channel. They are
   * separate so that a channel that hangs delays neither the search nor other channels.
   */
  readonly #flights = new Map<string | null, Promise<void>>();

  constructor(options: AlarmsOptions) {
    this.#options = options;
    options.membership.onPulse((pulse) => this.#onPulse(pulse));
  }

  /**
   * Replaces the channels for later messages; messages in progress still go to the old channels. Rules and time limits do not change.
   */
  tellBy(channels: Record<string, Deliver>): void {
    this.#options.channels = channels;
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error("this process stops"));
    await Promise.all([...this.#flights.values(), this.#options.ping?.stop()]);
  }

  #onPulse({ led, clock, ruled = true }: Pulse): void {
    const now = this.#options.clock.monotonic();
    if (led) this.#leaderlessAt = null;
    else this.#leaderlessAt ??= now;
    if (this.#options.membership.term() !== null && !this.#stopping.signal.aborted)
      this.#options.ping?.beat(this.#stopping.signal);
    // A change of the cluster clock starts a search at once, because a step of the store's clock raises an alarm.
    const isDue = now - this.#lookedAt >= lookEveryMs || clock.number !== this.#clockNumber;
    if (!isDue || this.#flights.has(null) || this.#stopping.signal.aborted) return;
    this.#lookedAt = now;
    this.#ruled = ruled;
    this.#clockNumber = clock.number;
    this.#fly(null, () => this.#work());
  }

  #fly(name: string | null, work: () => Promise<void>): void {
    if (this.#flights.has(name)) return;
    const ends = work().catch((error: unknown) => {
      // An unreachable store is logged by the store client.
      if (!isCarillonError(error)) this.#options.log.error({ error: messageOf(error) }, "looking for alarms failed");
    });
    this.#flights.set(
      name,
      ends.finally(() => this.#flights.delete(name)),
    );
  }

  async #work(): Promise<void> {
    try {
      await this.#search();
    } finally {
      // Done by every process, not only by the leader, because the leader may not have these channels.
      for (const channel of Object.keys(this.#options.channels)) this.#fly(channel, () => this.#deliver(channel));
    }
  }

  async #search(): Promise<void> {
    const { store, storeClock, settings, membership } = this.#options;
    // A process without channels must not search: it has no rules, so its search would end the alarms of the rules of other processes.
    const all = Object.keys(settings.channels).length > 0 ? this.#rules() : null;
    if (all !== null) {
      const unreadable = this.#options.unreadable();
      const rules = unreadable === null ? all.filter((rule) => rule !== "unreadable") : all;
      await store.alarms.look(rules, settings, settings.rules, storeClock.now(), unreadable ?? []);
    }
    if (this.#ruled && membership.term() !== null) await store.alarms.follow(settings.summaryMs, storeClock.now());
  }

  /** The built-in rules that this process evaluates now; null if it evaluates none. */
  #rules(): AlarmRule[] | null {
    const { membership, settings, clock } = this.#options;
    const wanted = alarmRules.filter((rule) => settings.rules[rule].length > 0);
    if (membership.term() !== null) return wanted;
    const leaderless = this.#leaderlessAt !== null && clock.monotonic() - this.#leaderlessAt >= settings.leaderlessMs;
    // While a store is being recovered there is no leader, so the alarm `recovery` must not depend on one.
    const some = wanted.filter((rule) => rule === "leaderless" || rule === "recovery");
    return leaderless && some.length > 0 ? some : null;
  }

  async #deliver(channel: string): Promise<void> {
    const { store, storeClock } = this.#options;
    for (;;) {
      const deliver = this.#options.channels[channel];
      // Messages of a channel that this process no longer has wait for a process that has it.
      if (deliver === undefined || this.#stopping.signal.aborted) return;
      const now = storeClock.now();
      const messages = await store.alarms.take([channel], now, now + takenForMs, takenAtOnce);
      if (messages.length === 0) return;
      // Each round takes at most `takenAtOnce` messages; further messages are taken in the next round.
      const sent = await Promise.allSettled(messages.map((message) => this.#send(message, deliver)));
      for (const one of sent) if (one.status === "rejected") throw one.reason;
    }
  }

  async #send({ id, channel, attempts, createdMs, message }: OutboxMessage, deliver: Deliver): Promise<void> {
    const { store, storeClock, clock, log, node } = this.#options;
    try {
      // Each cluster numbers its messages from 1. The id also contains the creation time, so that a receiver of messages from several
      // clusters does not confuse them.
      const name = `carillon-alarm-${Math.round(createdMs).toString(36)}-${id}`;
      const send = (signal: AbortSignal) => deliver(name, message, signal);
      await limitedTo(clock, deliverWithinMs, this.#stopping.signal, send);
    } catch (error) {
      const now = storeClock.now();
      // A receiver's answer may contain a NUL character, which PostgreSQL cannot store.
      const text = messageOf(error).replaceAll("\0", "\ufffd").slice(0, 500);
      const over = now - createdMs > giveUpAfterMs;
      const fields = { channel, alarm: id, attempts, error: messageOf(error) };
      if (over) log.error(fields, "an alarm could not be sent for a day, and is given up");
      else log.warn(fields, "an alarm could not be sent; it will be tried again");
      // A receiver that gets too many messages may ask for a pause.
      const askedMs = isCarillonError(error) ? Math.min(error.retryAfterMs ?? 0, longestAskedMs) : 0;
      await store.alarms.unsent(id, text, over ? null : now + Math.max(againAfterMs(attempts), askedMs), {
        attempt: attempts,
        atMs: now,
        node,
      });
      return;
    }
    // If this call fails, the message is sent again once `takenForMs` have passed. It has arrived already, so no failed attempt is
    // recorded.
    await store.alarms.sent(id, storeClock.now(), { attempt: attempts, atMs: storeClock.now(), node });
  }
}
