import { type Clock, pause, unfakedClock } from "../clock.ts";
import type { Signal, Store } from "../store.ts";

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
  ] as const),
  ...(["browse", "access", "audit", "answers"] as const),
];
/** In real time. */
const deafAfterMs = 5_000;

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
    const { beat } = watched.sessions as Store["sessions"];
    const { settle } = watched.claims as Store["claims"];
    this.store = {
      ...(watched as unknown as Pick<Store, (typeof parts)[number]>),
      sessions: Object.assign(Object.create(watched.sessions as object), {
        beat: async (...given: Parameters<typeof beat>) => ({ ...(await beat(...given)), storeMs: clock.wall() }),
      }) as Store["sessions"],
      claims: Object.assign(Object.create(watched.claims as object), {
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
      clock: async () => clock.wall(),
      close: () => real.close(),
    };
  }

  /** Resolves when all that was asked is answered. */
  async answered(): Promise<void> {
    while (this.#open > 0) await new Promise<void>((resolve) => this.#answered.push(resolve));
  }

  /**
   * What a session's pulse says now. When this leads, it resolves no sooner than every signal of before has been heard:
   * a leader's beat tells of itself by a signal, and signals come in the order of their commits.
   */
  async look(sessionId: number) {
    const pulse = await this.#real.sessions.beat(sessionId, this.#clock.wall());
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
          if (result instanceof Promise) this.#count(result);
          return result;
        };
      },
    });
  }

  #count(result: Promise<unknown>): void {
    this.asked++;
    this.#open++;
    const done = () => {
      this.#open--;
      for (const wake of this.#answered.splice(0)) wake();
    };
    result.then(done, done);
  }
}
