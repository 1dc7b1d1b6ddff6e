/**
 * A thread of this process that goes on while the event loop stands still, as it does under a handler that computes without a pause. From
 * then on, until the event loop is back, the thread keeps the session, gives back the claims that have not started, and lays leadership
 * down. It ends the session when the standstill exceeds a bound.
 *
 * Makes true: no run is started here under a claim that the thread may have given back. The two share memory, for who stands still
 * answers no message. Before each start this process marks the claim, then looks whether the thread has taken over. The thread takes
 * over, then reads the claims, then the marks, says that it gives back what has none, and does so unless the process is back by then. So
 * of a start and a take-over at one moment, one side sees the other. A process that finds that claims were given back gives back all that
 * waited, and starts none of it.
 *
 * States: *at work*; *stood in for*, from the take-over until this process looks.
 */
export interface StandIn {
  /** How often the thread has taken over. */
  readonly times: number;
  /** How often it has given claims back, or was about to. */
  readonly returns: number;
  /** The thread has taken over, and this process has not looked since. */
  readonly acts: boolean;
  /**
   * Until when the session is sure by the thread's last answered proof of life, by this process's monotonic clock; 0: none was answered
   * since `quiet` told of one.
   */
  sureUntilMono(): number;
  /** Says that the event loop is at work. Where the thread stands in, this process takes over again, and listeners are told. */
  look(): void;
  /** Marks a claim as started. @returns where; `notStarted`: the thread stands in, and the run must not be */
  starts(fence: number): number;
  /** The store has the verdict of what has this mark. */
  ended(mark: number): void;
  /** Told within `look`, before anything else is done here. */
  onBack(listener: (stood: StoodIn) => void): void;
  /**
   * Resolves once the thread asks the store nothing more, or after the time in which such a question is given up.
   * @returns how it stood in since this was called last; null: it did not
   */
  quiet(): Promise<StoodIn | null>;
  /** Tells the thread where this process stands. */
  tell(standing: Partial<Standing>): void;
  close(): Promise<void>;
}

export interface StoodIn {
  /** As the method of this name tells it. */
  sureUntilMono: number;
  /** It laid leadership down, or was about to. */
  resigned: boolean;
  /** `returns` at the last time that listeners were told. */
  returnsBefore: number;
}

export interface Standing {
  sessionId: number;
  /** While it leads. */
  term: number | null;
  /** Which server it works on, as a beat tells: a proof of life that reached another is none. */
  server: string | null;
}

export interface Proven {
  /** False: the session is over. */
  alive: boolean;
  /** No other process is a member that could take what is given back. */
  alone: boolean;
  server: string | null;
  /** Until when the session is sure, by the machine's monotonic clock. */
  sureUntilMs: number;
}

/** The questions of the thread to who keeps the session: the store, or for a remote worker its servers. */
export interface StandInPlace<Claim extends { fence: number } = { fence: number }> {
  /** Proves that the session lives. @param stillMs for so long the event loop has stood still */
  prove(sessionId: number, stillMs: number): Promise<Proven>;
  claims(sessionId: number): Promise<Claim[]>;
  giveBack(sessionId: number, claims: readonly Claim[]): Promise<void>;
  resign(term: number, why: string): Promise<void>;
  /** The standstill has exceeded its bound. */
  end(sessionId: number, boundMs: number): Promise<void>;
  close(): Promise<void>;
}

/** For a process without such a thread: one on virtual time, or that is run from its TypeScript. */
export const noStandIn: StandIn = {
  times: 0,
  returns: 0,
  acts: false,
  sureUntilMono: () => 0,
  look: () => undefined,
  starts: () => unmarked,
  ended: () => undefined,
  onBack: () => undefined,
  quiet: async () => null,
  tell: () => undefined,
  close: async () => undefined,
};

/** In place of a mark: there was no room for it, or nobody to see it. */
export const unmarked = -1;
export const notStarted = -2;

/** Runs at work at once in one process are fewer, by far. With more, the thread gives nothing back. */
const marksMost = 16_384;
const cell = { acts: 0, ticks: 1, times: 2, busy: 3, unmarked: 4, resigned: 5, returns: 6 } as const;

/** The memory that both sides share. */
export class SharedStanding {
  readonly buffer: SharedArrayBuffer;
  readonly #cells: Int32Array;
  /** Microseconds of the machine's monotonic clock. */
  readonly #sure: BigInt64Array;
  readonly #marked: Int32Array;
  readonly #fences: Float64Array;

  constructor(buffer = new SharedArrayBuffer(64 + marksMost * 12)) {
    this.buffer = buffer;
    this.#cells = new Int32Array(buffer, 0, 8);
    this.#sure = new BigInt64Array(buffer, 32, 1);
    this.#fences = new Float64Array(buffer, 64, marksMost);
    this.#marked = new Int32Array(buffer, 64 + marksMost * 8, marksMost);
  }

  get places(): number {
    return marksMost;
  }

  get acts(): boolean {
    return Atomics.load(this.#cells, cell.acts) === 1;
  }

  get ticks(): number {
    return Atomics.load(this.#cells, cell.ticks);
  }

  get times(): number {
    return Atomics.load(this.#cells, cell.times);
  }

  get returns(): number {
    return Atomics.load(this.#cells, cell.returns);
  }

  get busy(): boolean {
    return Atomics.load(this.#cells, cell.busy) === 1;
  }

  set busy(is: boolean) {
    Atomics.store(this.#cells, cell.busy, is ? 1 : 0);
  }

  get resigned(): boolean {
    return Atomics.load(this.#cells, cell.resigned) === 1;
  }

  set resigned(is: boolean) {
    Atomics.store(this.#cells, cell.resigned, is ? 1 : 0);
  }

  /** Milliseconds of the machine's monotonic clock; 0: none. */
  get sureUntilMs(): number {
    return Number(Atomics.load(this.#sure, 0)) / 1_000;
  }

  set sureUntilMs(ms: number) {
    Atomics.store(this.#sure, 0, BigInt(Math.round(ms * 1_000)));
  }

  // ---- the process

  /** For who looks whether it changes; so often that an atomic step would be felt. */
  tick(): void {
    this.#cells[cell.ticks] = ((this.#cells[cell.ticks] as number) + 1) | 0;
  }

  takeBack(): void {
    Atomics.store(this.#cells, cell.acts, 0);
  }

  mark(place: number, fence: number): void {
    this.#fences[place] = fence;
    Atomics.store(this.#marked, place, 1);
  }

  /** Seen late it does no harm: what has ended is given back by nobody. */
  unmark(place: number): void {
    this.#marked[place] = 0;
  }

  /** By so many more, or fewer, there was no place. */
  countUnmarked(more: 1 | -1): void {
    Atomics.add(this.#cells, cell.unmarked, more);
  }

  // ---- the thread

  takeOver(): void {
    this.busy = true;
    this.resigned = false;
    Atomics.add(this.#cells, cell.times, 1);
    Atomics.store(this.#cells, cell.acts, 1);
  }

  /** Claims are about to be given back. @returns whether they may be: the process is not back */
  returning(): boolean {
    Atomics.add(this.#cells, cell.returns, 1);
    return this.acts;
  }

  /** The claims that have started; null: not all of them are marked. */
  started(): Set<number> | null {
    if (Atomics.load(this.#cells, cell.unmarked) > 0) return null;
    const started = new Set<number>();
    for (let place = 0; place < marksMost; place++)
      if (Atomics.load(this.#marked, place) === 1) started.add(this.#fences[place] as number);
    return started;
  }
}
