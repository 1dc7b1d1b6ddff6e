import type { Clock } from "../base/clock.ts";
import { CarillonError } from "../base/errors.ts";
import type { Enqueued, EnqueueWrite } from "../run/run-record.ts";

const runsPerStatement = 2_000;
/** The time limit in ms for a caller that sets no timeout. */
export const enqueueTimeoutMs = 30_000;

export interface Patience {
  /** The time limit in ms; default 30 s. Infinity waits until the store responds. */
  timeoutMs?: number | undefined;
  /** If this signal aborts, the call rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/**
 * Sends a batch of enqueues to the store. `RunStore.enqueue` describes `drawn`.
 * @param signal aborted once no caller waits any more; the statement is then not repeated after an error
 */
export type SendEnqueues = (writes: EnqueueWrite[], drawn: number[], signal: AbortSignal) => Promise<Enqueued[]>;

interface Waiting<Answer> {
  write: EnqueueWrite;
  resolve: (answer: Answer) => void;
  reject: (error: unknown) => void;
  /** The end of the caller's timeout by the monotonic clock, in whole ms. */
  untilMono: number;
  /** The statement that contains this enqueue; undefined if it has not been sent. */
  flight: Flight<Answer> | undefined;
  /** True once the caller has got a result or an error. */
  over: boolean;
}

/** A statement in progress, and the number of callers that wait for it. */
interface Flight<Answer> {
  batch: Waiting<Answer>[];
  waiting: number;
  abandon: AbortController;
}

/** If many enqueues wait, up to two statements are in progress, so that one is sent while the server executes the other. */
const flightsMost = 2;
const apartAtLeast = 250;

/**
 * Collects enqueues: those that arrive while statements are in progress are sent together in the next statement. Each caller waits at most
 * until its own timeout. While the store is unreachable, a statement is repeated as long as at least one caller waits for it.
 */
export class Enqueuer<Answer extends Enqueued = Enqueued> {
  readonly #send: SendEnqueues;
  readonly #clock: Clock;
  readonly #answered: (enqueued: Enqueued) => Answer;
  readonly #flights = new Set<Flight<Answer>>();
  /** The number of enqueues whose caller has neither a result nor an error. */
  #open = 0;
  /** The time of the next check for expired timeouts, and the function that cancels this check. */
  #look: { atMono: number; cancel: () => void } | undefined;
  /** Enqueues that have not been sent. `#givenUp` is the number of those among them whose caller does not wait any more. */
  #waiting: Waiting<Answer>[] = [];
  #givenUp = 0;
  /** For each caller with a signal, the function that removes the listener from the signal. */
  readonly #heard = new Map<Waiting<Answer>, () => void>();
  #launching = false;

  /**
   * @param answered creates the callers' results. It is called here, because a further promise per caller would double the cost of an
   * enqueue
   */
  constructor(send: SendEnqueues, clock: Clock, answered = (enqueued: Enqueued) => enqueued as Answer) {
    this.#send = send;
    this.#clock = clock;
    this.#answered = answered;
  }

  /** Enqueues a run with the next statement. @throws ENQUEUE_TIMEOUT, STOPPED, the signal's reason, or the store's error */
  add(write: EnqueueWrite, patience?: Patience): Promise<Answer> {
    return new Promise((resolve, reject) => {
      // The time is a whole number and the object has few fields: with fractional times and two more fields, a process that enqueued fast
      // took 60 MB more memory and a tenth more CPU time.
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

  /** Sends the waiting enqueues in a microtask, so that enqueues made by the same synchronous code share a statement. */
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

  /**
   * Counts an unsent enqueue whose caller does not wait any more. Such enqueues are removed in bulk, because each removal scans the whole
   * list.
   */
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
      // Enqueues with keys are never sent in two statements at once, because the first of two with the same key must create the run.
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
      // One of the enqueues may have caused the error, so each is sent alone and gets its own result. Each is sent with the same reserved
      // id, because its run may have been created.
      for (const [place, one] of batch.entries())
        if (!one.over) await this.#try([one], signal, drawn.slice(place, place + 1));
    }
  }
}

/** @param sent true if the store may have received the enqueue, so that the run may exist */
export const enqueueTimedOut = (sent: boolean): CarillonError =>
  givenUp("ENQUEUE_TIMEOUT", sent, "the store did not answer in time");

function givenUp(code: "ENQUEUE_TIMEOUT" | "STOPPED", sent: boolean, why: string): CarillonError {
  const made = sent ? "whether its run was made is not known" : "no run was made";
  return new CarillonError(code, `the enqueue was given up: ${why}; ${made}`, {
    hint: sent ? "Enqueue it again under a key: a run that was made with that key stands for it." : "",
  });
}
