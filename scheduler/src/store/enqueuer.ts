import type { Clock } from "../base/clock.ts";
import { CarillonError } from "../base/errors.ts";
import type { Enqueued, EnqueueWrite } from "../run/run-record.ts";

const runsPerStatement = 2_000;
/** How long a caller waits who says nothing else. */
export const enqueueTimeoutMs = 30_000;

export interface Patience {
  /** Default 30 s; Infinity: until it is answered. */
  timeoutMs?: number | undefined;
  /** Its reason is what the caller is told. */
  signal?: AbortSignal | undefined;
}

/** As `RunStore.enqueue`, which says what `drawn` is. @param signal nobody waits any more: the next failure ends it */
export type SendEnqueues = (writes: EnqueueWrite[], drawn: number[], signal: AbortSignal) => Promise<Enqueued[]>;

interface Waiting<Answer> {
  write: EnqueueWrite;
  resolve: (answer: Answer) => void;
  reject: (error: unknown) => void;
  /** By the monotonic clock, in whole milliseconds. */
  untilMono: number;
  /** The statement that it travels in; undefined: it has not been sent. */
  flight: Flight<Answer> | undefined;
  /** Its caller was answered. */
  over: boolean;
}

/** A statement under way, and how many wait for it. */
interface Flight<Answer> {
  batch: Waiting<Answer>[];
  waiting: number;
  abandon: AbortController;
}

/** Two at a time where there are many: one is on its way while the other is being written. */
const flightsMost = 2;
const apartAtLeast = 250;

/**
 * Enqueues that are asked for while statements are under way travel together in the next. Each caller waits as long as it will, and a
 * statement is repeated, while the store is away, for as long as somebody waits.
 */
export class Enqueuer<Answer extends Enqueued = Enqueued> {
  readonly #send: SendEnqueues;
  readonly #clock: Clock;
  readonly #answered: (enqueued: Enqueued) => Answer;
  readonly #flights = new Set<Flight<Answer>>();
  /** How many have no answer. */
  #open = 0;
  /** When the next look at who has waited long enough is due, and what cancels it. */
  #look: { atMono: number; cancel: () => void } | undefined;
  /** Those that were not sent, and some that were given up: as many as `#givenUp` says. */
  #waiting: Waiting<Answer>[] = [];
  #givenUp = 0;
  /** What stops listening to the signal of each caller that gave one. */
  readonly #heard = new Map<Waiting<Answer>, () => void>();
  #launching = false;

  /** @param answered makes what callers are given: here, since a promise behind each one's would cost as much as all else */
  constructor(send: SendEnqueues, clock: Clock, answered = (enqueued: Enqueued) => enqueued as Answer) {
    this.#send = send;
    this.#clock = clock;
    this.#answered = answered;
  }

  /** @throws ENQUEUE_TIMEOUT, STOPPED, the signal's reason */
  add(write: EnqueueWrite, patience?: Patience): Promise<Answer> {
    return new Promise((resolve, reject) => {
      // A whole number, and few fields: with a fraction and two fields more a process that enqueues fast took 60 MB more and a
      // tenth more processor time.
      const untilMono = Math.ceil(this.#clock.monotonic()) + (patience?.timeoutMs ?? enqueueTimeoutMs);
      const one: Waiting<Answer> = { write, resolve, reject, untilMono, flight: undefined, over: false };
      if (patience?.signal) {
        if (patience.signal.aborted) return reject(patience.signal.reason);
        this.#hear(one, patience.signal);
      }
      this.#open++;
      this.#lookAt(untilMono);
      this.#waiting.push(one);
      if (!this.#launching && this.#flights.size < flightsMost) this.#launchSoon();
    });
  }

  /** With all that is asked for in this turn. */
  #launchSoon(): void {
    this.#launching = true;
    queueMicrotask(() => {
      this.#launching = false;
      this.#launch();
    });
  }

  #hear(one: Waiting<Answer>, signal: AbortSignal): void {
    const giveUp = () => this.#giveUp(one, signal.reason);
    signal.addEventListener("abort", giveUp, { once: true });
    this.#heard.set(one, () => signal.removeEventListener("abort", giveUp));
  }

  /** Nobody is kept waiting any more. */
  close(): void {
    for (const one of this.#everyone())
      this.#giveUp(one, givenUp("STOPPED", one.flight !== undefined, "this process stops"));
    this.#look?.cancel();
  }

  #everyone(): Waiting<Answer>[] {
    return [...[...this.#flights].flatMap(({ batch }) => batch), ...this.#waiting].filter(({ over }) => !over);
  }

  #lookAt(atMono: number): void {
    if (this.#look ? this.#look.atMono <= atMono : atMono === Number.POSITIVE_INFINITY) return;
    this.#look?.cancel();
    const cancel = this.#clock.after(atMono - this.#clock.monotonic(), () => {
      this.#look = undefined;
      this.#giveUpLate();
    });
    this.#look = { atMono, cancel };
  }

  #giveUpLate(): void {
    const mono = this.#clock.monotonic();
    let next = Number.POSITIVE_INFINITY;
    for (const one of this.#everyone()) {
      if (one.untilMono <= mono) this.#giveUp(one, enqueueTimedOut(one.flight !== undefined));
      else next = Math.min(next, one.untilMono);
    }
    this.#lookAt(next);
  }

  #giveUp(one: Waiting<Answer>, why: unknown): void {
    if (one.over) return;
    const { flight } = one;
    this.#over(one);
    one.reject(why);
    if (!flight) this.#leaveOut();
    else if (flight.waiting === 0) flight.abandon.abort();
  }

  /** One that waits to be sent was given up. They are taken out many at a time, for each costs a look at all. */
  #leaveOut(): void {
    this.#givenUp++;
    if (this.#givenUp * 2 >= this.#waiting.length) this.#dropGivenUp();
  }

  #dropGivenUp(): void {
    if (this.#givenUp === 0) return;
    this.#waiting = this.#waiting.filter(({ over }) => !over);
    this.#givenUp = 0;
  }

  #over(one: Waiting<Answer>): void {
    if (one.over) return;
    one.over = true;
    if (this.#heard.size > 0) {
      this.#heard.get(one)?.();
      this.#heard.delete(one);
    }
    if (one.flight) one.flight.waiting--;
    this.#open--;
    if (this.#open > 0 || !this.#look) return;
    this.#look.cancel();
    this.#look = undefined;
  }

  #launch(): void {
    this.#dropGivenUp();
    while (this.#waiting.length > 0 && this.#flights.size < flightsMost) {
      // The first of two writes with one key makes the run, so they must not overtake each other.
      const apart = this.#waiting.length >= apartAtLeast && !this.#waiting.some(({ write }) => write.key !== null);
      if (this.#flights.size > 0 && !apart) return;
      const size = apart && this.#flights.size === 0 ? Math.ceil(this.#waiting.length / flightsMost) : runsPerStatement;
      const batch = this.#waiting.splice(0, Math.min(size, runsPerStatement));
      const flight = { batch, waiting: batch.length, abandon: new AbortController() };
      this.#flights.add(flight);
      for (const one of batch) one.flight = flight;
      void this.#try(batch, flight.abandon.signal).finally(() => {
        this.#flights.delete(flight);
        this.#launch();
      });
    }
  }

  async #try(batch: Waiting<Answer>[], signal: AbortSignal, drawn: number[] = []): Promise<void> {
    try {
      const answers = await this.#send(
        batch.map(({ write }) => write),
        drawn,
        signal,
      );
      for (let place = 0; place < batch.length; place++) {
        const one = batch[place] as Waiting<Answer>;
        this.#over(one);
        one.resolve(this.#answered(answers[place] as Enqueued));
      }
    } catch (error) {
      const [only] = batch;
      if (only && batch.length === 1) {
        this.#over(only);
        return only.reject(error);
      }
      // One of them is at fault; each is told its own answer. Under its own number: some may have been made.
      for (const [place, one] of batch.entries())
        if (!one.over) await this.#try([one], signal, drawn.slice(place, place + 1));
    }
  }
}

/** @param sent whether the store may have it */
export const enqueueTimedOut = (sent: boolean): CarillonError =>
  givenUp("ENQUEUE_TIMEOUT", sent, "the store did not answer in time");

function givenUp(code: "ENQUEUE_TIMEOUT" | "STOPPED", sent: boolean, why: string): CarillonError {
  const made = sent ? "whether its run was made is not known" : "no run was made";
  return new CarillonError(code, `the enqueue was given up: ${why}; ${made}`, {
    hint: sent ? "Enqueue it again under a key: a run that was made with that key stands for it." : "",
  });
}
