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
    "hooks",
    "workers",
    "alarms",
    "applied",
    "figures",
    "drains",
  ] as const),
  ...(["browse", "access", "secondFactors", "audit", "quotas", "answers", "events", "statistics"] as const),
];
/** How long `look` waits for its own signal before it assumes that signals are lost, in milliseconds of real time. */
const deafAfterMs = 30_000;
/** If there is no answer for this long, in milliseconds of real time, the server is queried for the reason. */
const lookMs = 100;

/**
 * A store that a test can wait for: it counts unanswered calls and waits for signals in transit. Its clock is the test's; everything else
 * is passed on to the real store.
 */
export class WatchedStore {
  readonly #real: Store;
  readonly #clock: Clock;
  readonly store: Store;
  /** The number of calls so far. If it changes, something was done meanwhile. */
  asked = 0;
  /** True if each run that ends must leave its row, even a success of a task that stores only failures, so that the test can read it. */
  keepsAll = false;
  #open = 0;
  #beating: Promise<unknown> = Promise.resolve();
  /** True if the last check found statements that wait for a caller's transaction. They probably still wait. */
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
        // After a claim the worker sends a further query, `nextDue`, before it sets its next timer, so both are counted.
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

  /** Resolves when all calls have been answered. */
  async answered(): Promise<void> {
    while (this.#open > 0) await this.#nextAnswer();
  }

  /**
   * Resolves when all calls have been answered, or when all others wait for a transaction that a caller keeps open, because the store
   * answers them only after its end.
   * @param waiting returns the number of this store's statements that wait for such a transaction
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
      // No call was made or answered while the server was queried, so the result is about exactly these calls.
      this.#wasHeldUp = held > 0 && held >= this.#open && asked === this.asked && !answer.signal.aborted;
      if (this.#wasHeldUp) return;
    }
  }

  #nextAnswer(): Promise<void> {
    return new Promise<void>((resolve) => this.#answered.push(resolve));
  }

  /**
   * Reads the present pulse of the session. If the session leads, this resolves only after every earlier signal has been received, or after
   * `deafAfterMs`: a leader's heartbeat sends a signal, and signals arrive in the order of their commits.
   */
  async look(sessionId: number) {
    // Waits until runs whose transactions are committed have been signalled, so that their signals arrive before that of this heartbeat.
    await this.#real.runs.announced();
    const pulse = await this.#beatInTurn(() => this.#real.sessions.beat(sessionId, this.#clock.wall()));
    const own = pulse.members.find((member) => member.sessionId === sessionId);
    if (this.#listening && own && pulse.alive && pulse.leadership.sessionId === sessionId) {
      // The pulse contains the number of the heartbeat before this one.
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
   * Sends one heartbeat after the other, both those of this class and those of the process. The process takes an answer that is older than
   * the previous one as a sign that the store went back in time.
   */
  #beatInTurn<T>(beat: () => Promise<T>): Promise<T> {
    const turn = this.#beating.then(beat, beat);
    this.#beating = turn;
    return turn;
  }

  /** Wakes this store's listeners by a signal that reports no change. */
  nudge(): void {
    for (const listener of this.#listeners) listener({ kind: "leadership" });
  }

  #hear(signal: Signal, listener: (signal: Signal) => void): void {
    if (signal.kind === "resync") this.#listening = true;
    if (signal.kind === "beat") this.#heard.set(signal.sessionId, signal.beat);
    else this.asked++; // the signal may make the engine start work
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
