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
  ...(["browse", "access", "secondFactors", "audit", "quotas", "answers"] as const),
];
/** In real time. */
const deafAfterMs = 30_000;
/** So much later than asked, in real time, it is worth a look why there is no answer. */
const lookMs = 100;

/**
 * A store that can be waited for: it knows what is asked of it and not answered, and which signals are on their way. Its
 * time is the test's; all else is the real one's.
 */
export class WatchedStore {
  readonly #real: Store;
  readonly #clock: Clock;
  readonly store: Store;
  /** Asked so far: another number says that something was done meanwhile. */
  asked = 0;
  /** Each run that ends leaves its row, also a success of a task that keeps its failures only: for whoever waits to look at it. */
  keepsAll = false;
  #open = 0;
  #beating: Promise<unknown> = Promise.resolve();
  /** When this was last looked at: then it most likely still is. */
  #wasHeldUp = false;
  #answered: (() => void)[] = [];
  /** The latest beat of each session that a signal told of. */
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
        // What a claim brings has a question of its own, which the worker asks before it sets its next timer.
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

  /** Resolves when all that was asked is answered. */
  async answered(): Promise<void> {
    while (this.#open > 0) await this.#nextAnswer();
  }

  /**
   * Resolves when all that was asked is answered, or when everything else waits for a transaction that a caller keeps open: the store
   * answers only once that has ended. @param waiting how many statements of this store wait for such a transaction
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
      // Nothing was asked or answered while the server was asked: its answer is about just these.
      this.#wasHeldUp = held > 0 && held >= this.#open && asked === this.asked && !answer.signal.aborted;
      if (this.#wasHeldUp) return;
    }
  }

  #nextAnswer(): Promise<void> {
    return new Promise<void>((resolve) => this.#answered.push(resolve));
  }

  /**
   * What a session's pulse says now. When this leads, it resolves no sooner than every signal of before has been heard:
   * a leader's beat tells of itself by a signal, and signals come in the order of their commits.
   */
  async look(sessionId: number) {
    // A signal that is sent after its commit comes before this beat's.
    await this.#real.runs.announced();
    const pulse = await this.#beatInTurn(() => this.#real.sessions.beat(sessionId, this.#clock.wall()));
    const own = pulse.members.find((member) => member.sessionId === sessionId);
    if (this.#listening && own && pulse.alive && pulse.leadership.sessionId === sessionId) {
      // Read before this beat was counted.
      const wanted = own.beat + 1;
      const late = new AbortController();
      const deadline = pause(unfakedClock, deafAfterMs, late.signal);
      while ((this.#heard.get(sessionId) ?? 0) < wanted) {
        const heard = new Promise<true>((resolve) => this.#onHeard.push(() => resolve(true)));
        if ((await Promise.race([heard, deadline])) !== true) break; // its connection was lost: signals may be
      }
      late.abort();
    }
    return pulse;
  }

  /**
   * A process makes one heartbeat at a time, and takes an answer that is behind one before it for a sign that the store went back. So
   * ours and the process's go one after the other.
   */
  #beatInTurn<T>(beat: () => Promise<T>): Promise<T> {
    const turn = this.#beating.then(beat, beat);
    this.#beating = turn;
    return turn;
  }

  /** Makes every process on this store look at once, as a signal does that comes when there is nothing new. */
  nudge(): void {
    for (const listener of this.#listeners) listener({ kind: "leadership" });
  }

  #hear(signal: Signal, listener: (signal: Signal) => void): void {
    if (signal.kind === "resync") this.#listening = true;
    if (signal.kind === "beat") this.#heard.set(signal.sessionId, signal.beat);
    else this.asked++; // it may make the engine do something
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
