/**
 * Each handler under test records its start, and the measuring process reads the records. A record is four numbers in memory; records are
 * sent in batches some time after the first, so that recording costs almost nothing.
 *
 * Node's wall clock has whole ms, its monotonic clock has µs; a record contains both readings. The wall clock is always rounded down, so
 * the largest difference between the two clocks in a batch is the most exact: it is wrong by at most the time between two records. Each
 * record's wall time is its monotonic time plus that difference. The result is exact only if a record falls close to the start of a
 * millisecond: in a short batch all times may be up to a millisecond too early. Within a batch the two clocks do not drift apart.
 */
export interface Start {
  /** The task's index in the measuring process's list. */
  task: number;
  slotMs: number;
  /** Epoch ms on this machine's clock, with a fraction. */
  atMs: number;
}

const numbersPerNote = 4;
/** A batch is sent this many ms after its first record, when a burst at the start of a second is over. */
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
