/**
 * A stand-in thread, which acts for this process while the event loop is blocked, for example by a handler that computes for a long time.
 * Until the event loop runs again, the thread keeps the session alive, returns the claims that have not started, and resigns leadership. It
 * ends the session if the event loop is blocked for longer than a limit.
 *
 * Guarantee: no run starts in this process under a claim that the thread may have returned. The process and the thread share memory,
 * because a blocked process answers no messages. Before each start, the process first marks the claim and then checks whether the thread
 * has taken over. The thread first takes over, then reads the claims, then reads the marks. It announces that it will return the claims
 * without a mark, and returns them unless the process has resumed by then. So if a start and a take-over coincide, at least one side sees
 * the other. A process that finds that claims were returned also returns all its other waiting claims, and starts none of them.
 *
 * States: *at work*; *stood in for*, from the take-over until this process calls `look`.
 */
export interface StandIn {
  /** How many times the thread has taken over so far. */
  readonly times: number;
  /** How many times the thread has announced so far that it will return claims. */
  readonly returns: number;
  /** True if the thread acts for this process: it has taken over, and this process has not called `look` since. */
  readonly acts: boolean;
  /**
   * The time of this process's monotonic clock until which the session is certainly alive, by the thread's last successful heartbeat; 0 if
   * the thread has had none since `quiet` last returned a result.
   */
  sureUntilMono(): number;
  /**
   * Reports that the event loop runs. If the thread has taken over, the process takes back its role and calls the listeners of `onBack`.
   */
  look(): void;
  /** Marks a claim as started. @returns the index of the mark, or `notStarted` if the thread has taken over: then the run must not start */
  starts(fence: number): number;
  /** Removes the mark; called once the store has recorded the run's result. */
  ended(mark: number): void;
  /** Registers a listener that `look` calls when this process takes back its role, before the process does anything else. */
  onBack(listener: (stood: StoodIn) => void): void;
  /**
   * Resolves once the thread has no request to the store in progress, or after the time limit of such a request.
   * @returns what the thread did since the last call; null if it did not take over
   */
  quiet(): Promise<StoodIn | null>;
  /** Passes this process's session, term and server to the thread. */
  tell(standing: Partial<Standing>): void;
  close(): Promise<void>;
}

export interface StoodIn {
  /** See `StandIn.sureUntilMono`. */
  sureUntilMono: number;
  /** True if the thread resigned leadership or may have done so. */
  resigned: boolean;
  /** The value of `returns` when this process last took back its role. */
  returnsBefore: number;
}

export interface Standing {
  sessionId: number;
  /** The current term while this process leads; otherwise null. */
  term: number | null;
  /**
   * The database server that this process uses, as the answer to a heartbeat names it. If a heartbeat of the thread reached another server,
   * it is ignored.
   */
  server: string | null;
}

export interface Proven {
  /** False if the session has ended. */
  alive: boolean;
  /** True if there is no other member that could run the returned claims; then the thread returns none. */
  alone: boolean;
  server: string | null;
  /** The time until which the session is certainly alive, in ms of the machine's monotonic clock. */
  sureUntilMs: number;
}

/** The thread's requests to the store, or to the servers in the case of a remote worker. */
export interface StandInPlace<Claim extends { fence: number } = { fence: number }> {
  /** Sends a heartbeat for the session. @param stillMs for how long the event loop has been blocked, in ms */
  prove(sessionId: number, stillMs: number): Promise<Proven>;
  claims(sessionId: number): Promise<Claim[]>;
  giveBack(sessionId: number, claims: readonly Claim[]): Promise<void>;
  resign(term: number, why: string): Promise<void>;
  /** Ends the session, because the event loop has been blocked for longer than `boundMs`. */
  end(sessionId: number, boundMs: number): Promise<void>;
  close(): Promise<void>;
}

/** Used by a process without a stand-in thread: one on virtual time in tests, or one that runs directly from its TypeScript source. */
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

/**
 * Returned by `starts` instead of a mark's index: `unmarked` if no mark was free or no thread reads the marks, `notStarted` if the run must
 * not start.
 */
export const unmarked = -1;
export const notStarted = -2;

/** The number of marks; far more than one process runs at once. If more runs than that have started, the thread returns no claims. */
const marksMost = 16_384;
const cell = { acts: 0, ticks: 1, times: 2, busy: 3, unmarked: 4, resigned: 5, returns: 6 } as const;

/** The memory that the process and the stand-in thread share. */
export class SharedStanding {
  readonly buffer: SharedArrayBuffer;
  readonly #cells: Int32Array;
  /** The time until which the session is certainly alive, in microseconds of the machine's monotonic clock. */
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

  /** The time until which the session is certainly alive, in ms of the machine's monotonic clock; 0 if there was no heartbeat. */
  get sureUntilMs(): number {
    return Number(Atomics.load(this.#sure, 0)) / 1_000;
  }

  set sureUntilMs(ms: number) {
    Atomics.store(this.#sure, 0, BigInt(Math.round(ms * 1_000)));
  }

  // ---- called by the process

  /**
   * Shows the thread that the event loop runs. The write is not atomic, because it is also executed at each start of a run, where an atomic
   * operation would take noticeable time.
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

  /** The write is not atomic: the thread may see it late without harm, because an ended run is not returned. */
  unmark(place: number): void {
    this.#marked[place] = 0;
  }

  /** Adds `more` to the number of started runs that have no mark. */
  countUnmarked(more: 1 | -1): void {
    Atomics.add(this.#cells, cell.unmarked, more);
  }

  // ---- called by the thread

  takeOver(): void {
    this.busy = true;
    this.resigned = false;
    Atomics.add(this.#cells, cell.times, 1);
    Atomics.store(this.#cells, cell.acts, 1);
  }

  /** Called before the thread returns claims. @returns true if the thread may return them, because the process is still blocked */
  returning(): boolean {
    Atomics.add(this.#cells, cell.returns, 1);
    return this.acts;
  }

  /** The fences of the claims that have started; null if some started run has no mark, so that the set would be incomplete. */
  started(): Set<number> | null {
    if (Atomics.load(this.#cells, cell.unmarked) > 0) return null;
    const started = new Set<number>();
    for (let place = 0; place < marksMost; place++)
      if (Atomics.load(this.#marked, place) === 1) started.add(this.#fences[place] as number);
    return started;
  }
}
