/**
 * The side channel: each handler under test notes its start, and the measuring process reads the notes. A note is four numbers in
 * memory; notes are sent in batches while nothing is due, so the probe costs almost nothing.
 *
 * Node's wall clock has whole milliseconds, its monotonic clock has microseconds. A note has both. The wall clock is rounded down,
 * never up, so over the notes of a batch the largest difference of the two is correct to within the time between two notes, and
 * every note's wall time follows with a fraction. This needs the end of a millisecond among the notes: the times of a shorter batch
 * may be up to a millisecond too early. The two clocks do not diverge within a batch.
 */
export interface Start {
  /** The task's place in the measuring process's list. */
  task: number;
  slotMs: number;
  /** Epoch milliseconds by this machine's clock, with a fraction. */
  atMs: number;
}

const numbersPerNote = 4;
/** The delay from the first note of a batch to its sending: late enough that a burst at a second's start is over. */
const sendAfterMs = 150;

export class StartNotes {
  readonly #send: (batch: Float64Array) => void;
  #notes: number[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(send: (batch: Float64Array) => void) {
    this.#send = send;
  }

  note(task: number, slotMs: number): void {
    this.#notes.push(task, slotMs, Date.now(), performance.now());
    this.#timer ??= setTimeout(() => this.flush(), sendAfterMs);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#notes.length === 0) return;
    const batch = Float64Array.from(this.#notes);
    this.#notes = [];
    this.#send(batch);
  }
}

export function startsOf(batch: Float64Array): Start[] {
  let offset = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < batch.length; i += numbersPerNote) {
    offset = Math.max(offset, (batch[i + 2] as number) - (batch[i + 3] as number));
  }
  const starts: Start[] = [];
  for (let i = 0; i < batch.length; i += numbersPerNote) {
    starts.push({
      task: batch[i] as number,
      slotMs: batch[i + 1] as number,
      atMs: (batch[i + 3] as number) + offset,
    });
  }
  return starts;
}
