import type { OutboxMessage } from "../../alarms/alarm-store.ts";
import {
  type AlarmRule,
  againAfterMs,
  alarmRules,
  type Finding,
  giveUpAfterMs,
  messageText,
} from "../../alarms/alarms.ts";
import type { Clock } from "../../base/clock.ts";
import { isCarillonError, messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Membership } from "../../cluster/membership.ts";
import type { Pulse } from "../../cluster/session-store.ts";
import type { RunNotice } from "../../run/handler.ts";
import type { AlarmSettings } from "../../settings/alarms.ts";
import type { Store } from "../../store/store.ts";
import type { StoreClock } from "../../store/store-clock.ts";

/** Hands a message to people. Rejects when it was not taken. @param id the same whenever the same message is sent */
export type Deliver = (
  id: string,
  message: OutboxMessage["message"] & { subject: string; text: string },
  signal: AbortSignal,
) => Promise<void>;

export interface AlarmsOptions {
  store: Store;
  membership: Membership;
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
  settings: AlarmSettings;
  /** This process's name. */
  node: string;
  channels: Record<string, Deliver>;
  /** Tasks that this process cannot read; null: not known yet. */
  unreadable: () => Finding[] | null;
}

/** Counters are summed over all tasks, so not at each pulse of a short session timeout. */
const lookEveryMs = 2_500;
/** Nobody else sends a message while this process may still be at it. */
const takenForMs = 60_000;
/** Of one message; less than it is taken for. */
const deliverWithinMs = 40_000;
const takenAtOnce = 20;
const lateTasks = 100;

type Late = Finding & { worstMs: number };

/**
 * Makes true: what is wrong is told once on each of its channels, and once when it is over, whichever process dies
 * meanwhile. The leader looks; where nobody leads, whoever notices looks for that alone. Messages wait in the store.
 */
export class Alarms {
  readonly #options: AlarmsOptions;
  readonly #stopping = new AbortController();
  readonly #late = new Map<string, Late>();
  #lookedAt = Number.NEGATIVE_INFINITY;
  #leaderlessAt: number | null = null;
  /** Of the store's clock, as of the last look. */
  #clockNumber: number | undefined;
  /** The look (null), and what is sent to each channel: a channel that hangs holds up neither. */
  readonly #flights = new Map<string | null, Promise<void>>();

  constructor(options: AlarmsOptions) {
    this.#options = options;
    options.membership.onPulse((pulse) => this.#onPulse(pulse));
  }

  /** Messages that are under way go where they were sent. Rules and spans are those of the settings that it was given. */
  tellBy(channels: Record<string, Deliver>): void {
    this.#options.channels = channels;
  }

  /** A run started here. */
  notice({ kind, attempt, startedMs, dueMs, task, runId }: RunNotice): void {
    const lateMs = startedMs - dueMs;
    const { settings } = this.#options;
    if (
      this.#stopping.signal.aborted ||
      kind !== "started" ||
      attempt !== 1 ||
      lateMs <= settings.lateMs ||
      settings.rules.late.length === 0
    )
      return;
    this.#keep({ subject: task, count: 1, runId, worstMs: lateMs });
  }

  #keep({ subject, count, runId, worstMs: lateMs }: Pick<Late, "subject" | "count" | "runId" | "worstMs">): void {
    const before = this.#late.get(subject);
    // Ten thousand starts of one task are one row; of more tasks than this, the first are told.
    if (!before && this.#late.size >= lateTasks) return;
    const worstMs = Math.max(lateMs, before?.worstMs ?? 0);
    const text = `started up to ${Math.round(worstMs / 1_000)} s late`;
    this.#late.set(subject, { rule: "late", subject, count: (before?.count ?? 0) + count, text, runId, worstMs });
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error("this process stops"));
    await Promise.all(this.#flights.values());
  }

  #onPulse({ led, clock }: Pulse): void {
    const now = this.#options.clock.monotonic();
    if (led) this.#leaderlessAt = null;
    else this.#leaderlessAt ??= now;
    // A step of the store's clock is an alarm at once.
    const isDue = now - this.#lookedAt >= lookEveryMs || clock.number !== this.#clockNumber;
    if (!isDue || this.#flights.has(null) || this.#stopping.signal.aborted) return;
    this.#lookedAt = now;
    this.#clockNumber = clock.number;
    this.#fly(null, () => this.#work());
  }

  #fly(name: string | null, work: () => Promise<void>): void {
    if (this.#flights.has(name)) return;
    const ends = work().catch((error: unknown) => {
      // With the store away there is nothing to look at, and the store itself tells of that.
      if (!isCarillonError(error)) this.#options.log.error({ error: messageOf(error) }, "looking for alarms failed");
    });
    this.#flights.set(
      name,
      ends.finally(() => this.#flights.delete(name)),
    );
  }

  async #work(): Promise<void> {
    const { store, storeClock, settings, channels } = this.#options;
    if (this.#late.size > 0) {
      const findings = [...this.#late.values()];
      this.#late.clear();
      try {
        await store.alarms.report(findings, storeClock.now());
      } catch (error) {
        // With the next look, and what is noticed until then.
        for (const one of findings) this.#keep(one);
        throw error;
      }
    }
    const all = this.#rules();
    if (all === null) return;
    const unreadable = this.#options.unreadable();
    const rules = unreadable === null ? all.filter((rule) => rule !== "unreadable") : all;
    await store.alarms.look(rules, settings, settings.rules, storeClock.now(), unreadable ?? []);
    for (const channel of Object.keys(channels)) this.#fly(channel, () => this.#deliver(channel));
  }

  /** null: others look. */
  #rules(): AlarmRule[] | null {
    const { membership, settings, clock } = this.#options;
    const wanted = alarmRules.filter((rule) => settings.rules[rule].length > 0);
    if (membership.term() !== null) return wanted;
    const leaderless = this.#leaderlessAt !== null && clock.monotonic() - this.#leaderlessAt >= settings.leaderlessMs;
    // A store that is being recovered has no leader either.
    const some = wanted.filter((rule) => rule === "leaderless" || rule === "recovery");
    return leaderless && some.length > 0 ? some : null;
  }

  async #deliver(channel: string): Promise<void> {
    const { store, storeClock } = this.#options;
    while (!this.#stopping.signal.aborted) {
      const now = storeClock.now();
      const messages = await store.alarms.take([channel], now, now + takenForMs, takenAtOnce);
      if (messages.length === 0) return;
      // What one of them held back is taken next.
      await Promise.all(messages.map((message) => this.#send(message)));
    }
  }

  async #send({ id, channel, attempts, createdMs, message }: OutboxMessage): Promise<void> {
    const { store, storeClock, clock, log, channels, node } = this.#options;
    const overdue = new AbortController();
    const cancel = clock.after(deliverWithinMs, () => overdue.abort(new Error("it took too long")));
    const signal = AbortSignal.any([overdue.signal, this.#stopping.signal]);
    try {
      // Each cluster counts from 1; a receiver of several must not take one's message for another's.
      const name = `carillon-alarm-${Math.round(createdMs).toString(36)}-${id}`;
      await channels[channel]?.(name, { ...message, ...messageText(message) }, signal);
      await store.alarms.sent(id, storeClock.now(), { attempt: attempts, atMs: storeClock.now(), node });
    } catch (error) {
      const now = storeClock.now();
      // A receiver's answer may hold a NUL, which the store cannot.
      const text = messageOf(error).replaceAll("\0", "\ufffd").slice(0, 500);
      const over = now - createdMs > giveUpAfterMs;
      const fields = { channel, alarm: id, attempts, error: messageOf(error) };
      if (over) log.error(fields, "an alarm could not be sent for a day, and is given up");
      else log.warn(fields, "an alarm could not be sent; it will be tried again");
      await store.alarms.unsent(id, text, over ? null : now + againAfterMs(attempts), {
        attempt: attempts,
        atMs: now,
        node,
      });
    } finally {
      cancel();
    }
  }
}
