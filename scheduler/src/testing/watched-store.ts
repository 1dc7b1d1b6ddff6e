import { type Clock, pause, unfakedClock } from "../base/clock.ts";
import type { Signal } from "../cluster/signal-store.ts";
import type { Store } from "../store/store.ts";

const parts = [
  ...(["sessions", "tasks", "plans", "runs", "claims", "history"] as const),
  ...([
    "graceLocks",
    "locks",
    "deadLetters",
    "operations",
    "calendars",
    "groups",
    "routes",
    "flow",
    "secrets",
    "workers",
    "alarms",
    "applied",
    "figures",
    "drains",
  ] as const),
  ...(["browse", "access", "secondFactors", "audit", "quotas", "answers", "events"] as const),
];
/** Milliseconds of real time. */
const deafAfterMs = 30_000;
/** If there is no answer for this long, in real time, the server is queried for the reason. */
const lookMs = 100;

/**
 * A store that tests can wait for: it tracks unanswered calls, and signals under way. Its time is the test's; everything else is the real
 * store's.
 */
export class WatchedStore {
  readonly #real: Store;
  readonly #clock: Clock;
  readonly store: Store;
  /** The number of calls so far: if it has changed, something was done meanwhile. */
  asked = 0;
  /** If true, each run that ends leaves its row, even a success of a task that keeps only failures, so that the test can read it. */
  keepsAll = false;
  #open = 0;
  #beating: Promise<unknown> = Promise.resolve();
  /** True if the last check found statements held up: they probably still are. */
  #wasHeldUp = false;
  #answered: (() => void)[] = [];
  /** The latest beat of each session, as received by signals. */
  readonly #heard = new Map<number, number>();
  #listening = false;
  #onHeard: (() => void)[] = [];
  readonly #listeners = new Set<(signal: Signal) => void>();

  constructor(real: Store, clock: Clock) {
    this.#real = real;
    this.#clock = clock;
    const watched = Object.fromEntries(parts.map((part) => [part, this.#watch(real[part] as object)]));
    const { settle, claim } = watched.claims as Store["claims"];
    this.store = {
      ...(watched as unknown as Pick<Store, (typeof parts)[number]>),
      sessions: Object.assign(Object.create(watched.sessions as object), {
        beat: (...given: Parameters<Store["sessions"]["beat"]>) => {
          const beaten = this.#beatInTurn(async () => ({
            ...(await real.sessions.beat(...given)),
            storeMs: clock.wall(),
          }));
          return this.#counted(beaten);
        },
      }) as Store["sessions"],
      claims: Object.assign(Object.create(watched.claims as object), {
        // A claim's answer has a further query, which the worker sends before it sets its next timer; both are tracked.
        claim: async (...given: Parameters<typeof claim>) => {
          const claimed = await claim(...given);
          return { ...claimed, nextDue: () => this.#counted(claimed.nextDue()) };
        },
        settle: (...[sessionId, settlements, nowMs]: Parameters<typeof settle>) =>
          settle(sessionId, this.keepsAll ? settlements.map(({ unkept: _, ...kept }) => kept) : settlements, nowMs),
      }) as Store["claims"],
      signals: {
        listen: async (listener, signal) => {
          this.#listeners.add(listener);
          await real.signals.listen((heard) => this.#hear(heard, listener), signal);
          this.#listeners.delete(listener);
        },
      },
      clock: async () => ({ ms: clock.wall(), shiftMs: 0, number: 0 }),
      close: () => real.close(),
    };
  }

  /** Resolves when no call is unanswered. */
  async answered(): Promise<void> {
    while (this.#open > 0) await this.#nextAnswer();
  }

  /**
   * Resolves when no call is unanswered, or when all unanswered ones wait for a transaction that a caller keeps open, because the store
   * answers them only after it. @param waiting returns how many statements of this store wait for such a transaction
   */
  async answeredOrHeldUp(waiting: () => Promise<number>): Promise<void> {
    let afterMs = this.#wasHeldUp ? 1 : lookMs;
    this.#wasHeldUp = false;
    while (this.#open > 0) {
      const { asked } = this;
      const answer = new AbortController();
      void this.#nextAnswer().then(() => answer.abort());
      await pause(unfakedClock, afterMs, answer.signal);
      afterMs = lookMs;
      if (answer.signal.aborted) continue;
      const held = await waiting();
      // No call was made or answered during the query of the server, so its result is about exactly these calls.
      this.#wasHeldUp = held > 0 && held >= this.#open && asked === this.asked && !answer.signal.aborted;
      if (this.#wasHeldUp) return;
    }
  }

  #nextAnswer(): Promise<void> {
    return new Promise<void>((resolve) => this.#answered.push(resolve));
  }

  /**
   * Reads the session's present pulse. If the session leads, this resolves only after every earlier signal has been received: a leader's
   * beat sends a signal, and signals arrive in the order of their commits.
   */
  async look(sessionId: number) {
    // Waits for signals that are sent after their commit, so that they arrive before the signal of this beat.
    await this.#real.runs.announced();
    const pulse = await this.#beatInTurn(() => this.#real.sessions.beat(sessionId, this.#clock.wall()));
    const own = pulse.members.find((member) => member.sessionId === sessionId);
    if (this.#listening && own && pulse.alive && pulse.leadership.sessionId === sessionId) {
      // The pulse was read before this beat was counted.
      const wanted = own.beat + 1;
      const late = new AbortController();
      const deadline = pause(unfakedClock, deafAfterMs, late.signal);
      while ((this.#heard.get(sessionId) ?? 0) < wanted) {
        const heard = new Promise<true>((resolve) => this.#onHeard.push(() => resolve(true)));
        if ((await Promise.race([heard, deadline])) !== true) break; // the connection for signals was lost, and signals may be lost with it
      }
      late.abort();
    }
    return pulse;
  }

  /**
   * A process makes one heartbeat at a time, and takes an answer older than the previous one as a sign that the store went back in time. So
   * the beats of this class and those of the process are made one after the other.
   */
  #beatInTurn<T>(beat: () => Promise<T>): Promise<T> {
    const turn = this.#beating.then(beat, beat);
    this.#beating = turn;
    return turn;
  }

  /** Wakes every process on this store by a signal that contains no news. */
  nudge(): void {
    for (const listener of this.#listeners) listener({ kind: "leadership" });
  }

  #hear(signal: Signal, listener: (signal: Signal) => void): void {
    if (signal.kind === "resync") this.#listening = true;
    if (signal.kind === "beat") this.#heard.set(signal.sessionId, signal.beat);
    else this.asked++; // the signal may start work in the engine
    listener(signal);
    for (const wake of this.#onHeard.splice(0)) wake();
  }

  #watch<Part extends object>(part: Part): Part {
    return new Proxy(part, {
      get: (target, name, receiver) => {
        const value: unknown = Reflect.get(target, name, receiver);
        if (typeof value !== "function") return value;
        return (...given: unknown[]) => {
          const result: unknown = Reflect.apply(value, target, given);
          return result instanceof Promise ? this.#counted(result) : result;
        };
      },
    });
  }

  #counted<T>(result: Promise<T>): Promise<T> {
    this.asked++;
    this.#open++;
    const done = () => {
      this.#open--;
      for (const wake of this.#answered.splice(0)) wake();
    };
    result.then(done, done);
    return result;
  }
}
