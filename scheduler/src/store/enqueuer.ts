import type { Clock } from "../base/clock.ts";
import { CarillonError } from "../base/errors.ts";
import type { Enqueued, EnqueueWrite } from "../run/run-record.ts";

const runsPerStatement = 2_000;
/** The time limit, in ms, for a caller that sets no timeout. */
export const enqueueTimeoutMs = 30_000;

export interface Patience {
  /** Default 30 s; Infinity waits until the store answers. */
  timeoutMs?: number | undefined;
  /** When it aborts, the call rejects with its reason. */
  signal?: AbortSignal | undefined;
}

/**
 * Sends a batch, like `RunStore.enqueue`, which describes `drawn`.
 * @param signal aborted once no caller waits any more; the next failure then ends the statement
 */
export type SendEnqueues = (writes: EnqueueWrite[], drawn: number[], signal: AbortSignal) => Promise<Enqueued[]>;

interface Waiting<Answer> {
  write: EnqueueWrite;
  resolve: (answer: Answer) => void;
  reject: (error: unknown) => void;
  /** When the caller's timeout ends, by the monotonic clock in whole milliseconds. */
  untilMono: number;
  /** The statement in which this enqueue is sent; undefined: it has not been sent. */
  flight: Flight<Answer> | undefined;
  /** True once its caller has a result. */
  over: boolean;
}

/** A statement under way, and the number of callers that wait for it. */
interface Flight<Answer> {
  batch: Waiting<Answer>[];
  waiting: number;
  abandon: AbortController;
}

/** If many enqueues wait, at most two statements are under way at once, so that one is sent while the server executes the other. */
const flightsMost = 2;
const apartAtLeast = 250;

/**
 * Collects enqueues: those that arrive while statements are under way are sent together in the next statement. Each caller waits until its
 * own timeout. While the store is away, a statement is repeated for as long as at least one caller waits.
 */
export class Enqueuer<Answer extends Enqueued = Enqueued> {
  readonly #send: SendEnqueues;
  readonly #clock: Clock;
  readonly #answered: (enqueued: Enqueued) => Answer;
  readonly #flights = new Set<Flight<Answer>>();
  /** The number of enqueues without a result. */
  #open = 0;
  /** The time of the next check for expired timeouts, and the function that cancels it. */
  #look: { atMono: number; cancel: () => void } | undefined;
  /** Enqueues that have not been sent. `#givenUp` counts those among them that were given up. */
  #waiting: Waiting<Answer>[] = [];
  #givenUp = 0;
  /** For each caller with a signal: the function that removes the listener from the signal. */
  readonly #heard = new Map<Waiting<Answer>, () => void>();
  #launching = false;

  /**
   * @param answered makes the callers' results. It is applied here, because one more promise per caller would cost as much as everything
   * else
   */
  constructor(send: SendEnqueues, clock: Clock, answered = (enqueued: Enqueued) => enqueued as Answer) {
    this.#send = send;
    this.#clock = clock;
    this.#answered = answered;
  }

  /** @throws ENQUEUE_TIMEOUT, STOPPED, the signal's reason */
  add(write: EnqueueWrite, patience?: Patience): Promise<Answer> {
    return new Promise((resolve, reject) => {
      // A whole number and few fields: with fractions and two more fields, a process that enqueues fast took 60 MB of memory and a tenth of
      // processor time more.
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

  /** Sends the waiting enqueues at the end of this turn of the event loop, so that they share a statement. */
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

  /** Rejects all callers that still wait. */
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

  /** Notes that an unsent enqueue was given up. Such enqueues are removed in bulk, because each removal scans the whole list. */
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
      // The first of two writes with one key makes the run, so writes with keys are never in two statements at once.
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
      // One of the enqueues is at fault, so each is sent alone and gets its own result. Each keeps its drawn number, because its run may
      // exist already.
      for (const [place, one] of batch.entries())
        if (!one.over) await this.#try([one], signal, drawn.slice(place, place + 1));
    }
  }
}

/** @param sent true if the store may have received the enqueue */
export const enqueueTimedOut = (sent: boolean): CarillonError =>
  givenUp("ENQUEUE_TIMEOUT", sent, "the store did not answer in time");

function givenUp(code: "ENQUEUE_TIMEOUT" | "STOPPED", sent: boolean, why: string): CarillonError {
  const made = sent ? "whether its run was made is not known" : "no run was made";
  return new CarillonError(code, `the enqueue was given up: ${why}; ${made}`, {
    hint: sent ? "Enqueue it again under a key: a run that was made with that key stands for it." : "",
  });
}
