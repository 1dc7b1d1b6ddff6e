import type { Enqueued, EnqueueWrite } from "./store.ts";

const runsPerStatement = 2_000;

interface Waiting {
  write: EnqueueWrite;
  resolve: (enqueued: Enqueued) => void;
  reject: (error: unknown) => void;
}

/** Enqueues that are asked for while one statement is under way travel together in the next. */
export class Enqueuer {
  readonly #send: (writes: EnqueueWrite[]) => Promise<Enqueued[]>;
  #waiting: Waiting[] = [];
  #flight: Promise<void> | undefined;

  constructor(send: (writes: EnqueueWrite[]) => Promise<Enqueued[]>) {
    this.#send = send;
  }

  add(write: EnqueueWrite): Promise<Enqueued> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ write, resolve, reject });
      this.#flight ??= this.#run();
    });
  }

  async #run(): Promise<void> {
    await Promise.resolve();
    while (this.#waiting.length > 0) await this.#try(this.#waiting.splice(0, runsPerStatement));
    this.#flight = undefined;
  }

  async #try(batch: Waiting[]): Promise<void> {
    try {
      const answers = await this.#send(batch.map(({ write }) => write));
      batch.forEach(({ resolve }, place) => {
        resolve(answers[place] as Enqueued);
      });
    } catch (error) {
      if (batch.length === 1) return batch[0]?.reject(error);
      // One of them is at fault; each is told its own answer.
      for (const one of batch) await this.#try([one]);
    }
  }
}
