/**
 * A thread of this process that acts while the event loop stands still, as it does under a handler that computes without a pause. From then
 * on until the event loop runs again, the thread keeps the session alive, gives back the claims that have not started, and resigns
 * leadership. It ends the session when the standstill exceeds a bound.
 *
 * Guarantees that no run starts in this process under a claim that the thread may have given back. The two sides share memory, because a
 * process that stands still answers no message. Before each start this process marks the claim, then checks whether the thread has taken
 * over. The thread first takes over, then reads the claims, then reads the marks. It announces that it gives back the claims without a
 * mark, and does so unless the process is back by then. So if a start and a take-over happen at one moment, at least one side sees the
 * other. A process that finds that claims were given back gives back all its waiting claims, and starts none of them.
 *
 * States: *at work*; *stood in for*, from the take-over until this process looks.
 */
export interface StandIn {
  /** How many times the thread has taken over. */
  readonly times: number;
  /** How many times the thread has given claims back, or was about to. */
  readonly returns: number;
  /** True if the thread has taken over, and this process has not looked since. */
  readonly acts: boolean;
  /**
   * Until when the session is certain, by the thread's last answered proof of life and this process's monotonic clock; 0: no proof was
   * answered since `quiet` last returned a result.
   */
  sureUntilMono(): number;
  /** Reports that the event loop runs. If the thread stands in, this process takes over again and the listeners are called. */
  look(): void;
  /** Marks a claim as started. @returns the mark's index; `notStarted`: the thread stands in, and the run must not start */
  starts(fence: number): number;
  /** Called when the store has the verdict of the run with this mark. */
  ended(mark: number): void;
  /** Calls the listener within `look`, before this process does anything else. */
  onBack(listener: (stood: StoodIn) => void): void;
  /**
   * Resolves once the thread sends the store no more requests, or after the time after which such a request is given up.
   * @returns how the thread stood in since the last call; null: it did not
   */
  quiet(): Promise<StoodIn | null>;
  /** Passes this process's session, term and server to the thread. */
  tell(standing: Partial<Standing>): void;
  close(): Promise<void>;
}

export interface StoodIn {
  /** The value that the method of the same name returns. */
  sureUntilMono: number;
  /** True if the thread resigned leadership, or was about to. */
  resigned: boolean;
  /** The value of `returns` when listeners were last called. */
  returnsBefore: number;
}

export interface Standing {
  sessionId: number;
  /** The term while this process leads. */
  term: number | null;
  /** The server that this process uses, as a pulse returns it: a proof of life that reached another server does not count. */
  server: string | null;
}

export interface Proven {
  /** False: the session is over. */
  alive: boolean;
  /** True: no other process is a member that could take the runs that were given back. */
  alone: boolean;
  server: string | null;
  /** Until when the session is certain, by the machine's monotonic clock. */
  sureUntilMs: number;
}

/** The thread's requests to the place that keeps the session: the store, or for a remote worker its servers. */
export interface StandInPlace<Claim extends { fence: number } = { fence: number }> {
  /** Proves that the session is alive. @param stillMs how long the event loop has stood still */
  prove(sessionId: number, stillMs: number): Promise<Proven>;
  claims(sessionId: number): Promise<Claim[]>;
  giveBack(sessionId: number, claims: readonly Claim[]): Promise<void>;
  resign(term: number, why: string): Promise<void>;
  /** Ends the session, because the standstill has exceeded its bound. */
  end(sessionId: number, boundMs: number): Promise<void>;
  close(): Promise<void>;
}

/** For a process without a stand-in thread: a process on virtual time, or one that runs directly from its TypeScript source. */
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

/** Returned instead of a mark if there was no room for a mark, or if there is no thread to read it. */
export const unmarked = -1;
export const notStarted = -2;

/** Far more than the number of runs that one process executes at once. If there are more runs than marks, the thread gives nothing back. */
const marksMost = 16_384;
const cell = { acts: 0, ticks: 1, times: 2, busy: 3, unmarked: 4, resigned: 5, returns: 6 } as const;

/** The memory that both sides share. */
export class SharedStanding {
  readonly buffer: SharedArrayBuffer;
  readonly #cells: Int32Array;
  /** Until when the session is certain, in microseconds of the machine's monotonic clock. */
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

  /** The same in milliseconds; 0: never. */
  get sureUntilMs(): number {
    return Number(Atomics.load(this.#sure, 0)) / 1_000;
  }

  set sureUntilMs(ms: number) {
    Atomics.store(this.#sure, 0, BigInt(Math.round(ms * 1_000)));
  }

  // ---- the process

  /**
   * Shows the thread that the event loop runs. Also called at each start of a run, where an atomic operation would cost noticeable time.
   */
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

  /** It is harmless if the thread sees this late, because an ended run is not given back. */
  unmark(place: number): void {
    this.#marked[place] = 0;
  }

  /** Changes the number of started runs for which there was no mark. */
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

  /** Called when the thread is about to give claims back. @returns true if it may, because the process is not back */
  returning(): boolean {
    Atomics.add(this.#cells, cell.returns, 1);
    return this.acts;
  }

  /** The fences of the claims that have started; null: not all of them are marked. */
  started(): Set<number> | null {
    if (Atomics.load(this.#cells, cell.unmarked) > 0) return null;
    const started = new Set<number>();
    for (let place = 0; place < marksMost; place++)
      if (Atomics.load(this.#marked, place) === 1) started.add(this.#fences[place] as number);
    return started;
  }
}
