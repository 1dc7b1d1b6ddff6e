import type { Enqueued, EnqueueWrite } from "./store.ts";

const runsPerStatement = 2_000;

interface Waiting {
  write: EnqueueWrite;
  resolve: (enqueued: Enqueued) => void;
  reject: (error: unknown) => void;
}

/** Two at a time where there are many: one is on its way while the other is being written. */
const flightsMost = 2;
const apartAtLeast = 250;

/** Enqueues that are asked for while statements are under way travel together in the next. */
export class Enqueuer {
  readonly #send: (writes: EnqueueWrite[], drawn: number[]) => Promise<Enqueued[]>;
  #waiting: Waiting[] = [];
  #flights = 0;
  #launching = false;

  /** @param send as `RunStore.enqueue`, which says what `drawn` is */
  constructor(send: (writes: EnqueueWrite[], drawn: number[]) => Promise<Enqueued[]>) {
    this.#send = send;
  }

  add(write: EnqueueWrite): Promise<Enqueued> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ write, resolve, reject });
      if (this.#launching || this.#flights === flightsMost) return;
      this.#launching = true;
      queueMicrotask(() => {
        this.#launching = false;
        this.#launch();
      });
    });
  }

  #launch(): void {
    while (this.#waiting.length > 0 && this.#flights < flightsMost) {
      // Of two with one key the first makes the run: they must not overtake each other.
      const apart = this.#waiting.length >= apartAtLeast && !this.#waiting.some(({ write }) => write.key !== null);
      if (this.#flights > 0 && !apart) return;
      const size = apart && this.#flights === 0 ? Math.ceil(this.#waiting.length / flightsMost) : runsPerStatement;
      const batch = this.#waiting.splice(0, Math.min(size, runsPerStatement));
      this.#flights++;
      void this.#try(batch).finally(() => {
        this.#flights--;
        this.#launch();
      });
    }
  }

  async #try(batch: Waiting[], drawn: number[] = []): Promise<void> {
    try {
      const answers = await this.#send(
        batch.map(({ write }) => write),
        drawn,
      );
      batch.forEach(({ resolve }, place) => {
        resolve(answers[place] as Enqueued);
      });
    } catch (error) {
      if (batch.length === 1) return batch[0]?.reject(error);
      // One of them is at fault; each is told its own answer. Under its own number: some may have been made.
      for (const [place, one] of batch.entries()) await this.#try([one], drawn.slice(place, place + 1));
    }
  }
}
