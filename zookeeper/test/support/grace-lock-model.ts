import type { Holding, LockClock, LockPlace, LockRecord, Sight } from "../../src/recipes/grace-lock/place.ts";

/** A clock that advances only when a test calls `pass`. */
export class ModelClock implements LockClock {
  #nowMs = 0;
  #timers: { atMs: number; fire: () => void }[] = [];

  monotonic(): number {
    return this.#nowMs;
  }

  wall(): number {
    return 1_700_000_000_000 + this.#nowMs;
  }

  after(ms: number, fire: () => void): () => void {
    const timer = { atMs: this.#nowMs + ms, fire };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Advances in steps of 1 ms; after each step waits (see `settled`), then calls `each`. */
  async pass(ms: number, each: () => void = () => undefined): Promise<void> {
    for (let passed = 0; passed < ms; passed++) {
      this.#nowMs += 1;
      const due = this.#timers.filter(({ atMs }) => atMs <= this.#nowMs);
      this.#timers = this.#timers.filter((timer) => !due.includes(timer));
      for (const { fire } of due) fire();
      await settled();
      each();
    }
  }
}

/** Waits three turns of the event loop, which are enough for the work that needs no timer. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** The model of the service that stores the lock. The tests' checks use its data. */
export class ModelService {
  readonly clock: ModelClock;
  readonly timeoutMs: number;
  readonly places: ModelPlace[] = [];
  /**
   * Each time the lock was taken: by which owner and life, when, with which fence, the record before, and since when the lock was vacant
   * (undefined: it had never been taken, or was released).
   */
  readonly takes: {
    owner: string;
    life: string;
    atMs: number;
    fence: bigint;
    previous?: LockRecord;
    vacantMs?: number;
  }[] = [];
  record: LockRecord | undefined;
  version = 0;
  holder: ModelHolding | undefined;
  vacantMs: number | undefined;
  #fence = 0n;

  constructor(clock: ModelClock, timeoutMs: number) {
    this.clock = clock;
    this.timeoutMs = timeoutMs;
  }

  place(): ModelPlace {
    const place = new ModelPlace(this);
    this.places.push(place);
    return place;
  }

  nextFence(): bigint {
    this.#fence += 1n;
    return this.#fence;
  }

  /** Deletes the holder's node, because it was replaced or its session ended. */
  vacate(holding: ModelHolding): void {
    if (this.holder !== holding) return;
    this.holder = undefined;
    this.vacantMs = this.clock.monotonic();
    this.tell();
  }

  tell(): void {
    for (const place of this.places) place.tell();
  }
}

/**
 * The model of one process's connection to the service. `cut` interrupts it. While it is not cut, its session stays alive unless `expire`
 * is called.
 */
export class ModelPlace implements LockPlace {
  readonly name = "model";
  readonly lives = new Set<string>();
  readonly #service: ModelService;
  readonly #listeners = new Set<() => void>();
  #cut = false;
  #heal: (() => void)[] = [];
  #session = { end: new AbortController(), provedMs: 0, cutMs: Number.POSITIVE_INFINITY };
  #holding: ModelHolding | undefined;

  constructor(service: ModelService) {
    this.#service = service;
    this.#open();
  }

  get isCut(): boolean {
    return this.#cut;
  }

  /**
   * Ms until this process ends its session by its own clock: after three quarters of the timeout that the service applies, counted from the
   * cut, or from now while it is not cut; 0 if the session has ended.
   */
  get remainingMs(): number {
    const { end, provedMs } = this.#session;
    if (end.signal.aborted) return 0;
    const since = this.#cut ? provedMs : this.#service.clock.monotonic();
    return Math.max(0, since + this.#service.timeoutMs * 0.75 - this.#service.clock.monotonic());
  }

  get signal(): AbortSignal {
    return this.#session.end.signal;
  }

  cut(): void {
    if (this.#cut) return;
    this.#cut = true;
    const session = this.#session;
    session.provedMs = this.#service.clock.monotonic();
    const holding = this.#holding;
    // The connection may have been restored and cut again meanwhile; then these timers have no effect.
    const { provedMs } = session;
    const lasts = () => this.#cut && session.provedMs === provedMs;
    this.#service.clock.after(this.#service.timeoutMs * 0.75, () => lasts() && session.end.abort());
    this.#service.clock.after(this.#service.timeoutMs, () => {
      if (!lasts() || this.#session !== session) return;
      session.end.abort();
      if (holding) this.#service.vacate(holding);
    });
  }

  heal(): void {
    if (!this.#cut) return;
    this.#cut = false;
    if (this.signal.aborted) {
      // As the real client does, the old session is closed before the new one begins.
      if (this.#holding) this.#service.vacate(this.#holding);
      this.#open();
    }
    for (const go of this.#heal.splice(0)) go();
    this.tell();
  }

  /** The service ends the session of this process although it is connected. */
  expire(): void {
    if (this.#cut) return;
    const [session, holding] = [this.#session, this.#holding];
    this.#open();
    session.end.abort();
    if (holding) this.#service.vacate(holding);
    this.tell();
  }

  tell(): void {
    if (!this.#cut) for (const listener of [...this.#listeners]) listener();
  }

  watch(changed: () => void): () => void {
    this.#listeners.add(changed);
    return () => this.#listeners.delete(changed);
  }

  async look(signal?: AbortSignal): Promise<Sight> {
    await this.#connected(signal);
    const { record, version, holder } = this.#service;
    return { held: holder !== undefined, record, version: String(version), holder } as Sight;
  }

  async take(sight: Sight, record: LockRecord): Promise<Holding | undefined> {
    const session = this.#session;
    await this.#connected(session.end.signal);
    const service = this.#service;
    const { holder } = sight as Sight & { holder?: ModelHolding };
    if (session.end.signal.aborted || service.holder !== holder || String(service.version) !== sight.version) return;
    if (holder) service.vacate(holder);
    const holding = new ModelHolding(service, this, session.end.signal, service.nextFence());
    const vacantMs = service.record && !service.record.released ? service.vacantMs : undefined;
    const { owner, life } = record;
    const atMs = service.clock.monotonic();
    service.takes.push({ owner, life, atMs, fence: holding.fence, previous: service.record, vacantMs });
    service.record = record;
    service.version += 1;
    service.holder = holding;
    this.#holding = holding;
    service.tell();
    return holding;
  }

  async #connected(signal?: AbortSignal): Promise<void> {
    await Promise.resolve();
    while (this.#cut && !signal?.aborted) {
      await new Promise<void>((resolve) => {
        this.#heal.push(resolve);
        signal?.addEventListener("abort", () => resolve(), { once: true });
      });
    }
  }

  /** Resolves when the connection is restored or `signal` aborts, like a write that waits for its answer. */
  connected(signal: AbortSignal): Promise<void> {
    return this.#connected(signal);
  }

  #open(): void {
    this.#holding = undefined;
    this.#session = { end: new AbortController(), provedMs: 0, cutMs: Number.POSITIVE_INFINITY };
  }
}

class ModelHolding implements Holding {
  readonly fence: bigint;
  readonly signal: AbortSignal;
  readonly #service: ModelService;
  readonly #place: ModelPlace;

  constructor(service: ModelService, place: ModelPlace, signal: AbortSignal, fence: bigint) {
    this.#service = service;
    this.#place = place;
    this.signal = signal;
    this.fence = fence;
  }

  get remainingMs(): number {
    return this.signal.aborted ? 0 : this.#place.remainingMs;
  }

  seenIn(sight: Sight): boolean {
    return (sight as Sight & { holder?: ModelHolding }).holder === this;
  }

  async write(record: LockRecord): Promise<boolean> {
    await this.#place.connected(this.signal);
    if (this.signal.aborted || this.#service.holder !== this) return false;
    this.#service.record = record;
    this.#service.version += 1;
    return true;
  }

  async release(record: LockRecord): Promise<boolean> {
    if (!(await this.write(record))) return false;
    this.#service.holder = undefined;
    this.#service.vacantMs = undefined;
    this.#service.tell();
    return true;
  }
}
