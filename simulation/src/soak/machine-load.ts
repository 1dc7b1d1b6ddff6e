/**
 * Measures how long this mostly idle process waits for a processor. On an overloaded machine, runs are late and live processes are
 * declared dead through no fault of the cluster, so checks of times do not apply then.
 */
export class MachineLoad {
  readonly #timer: NodeJS.Timeout;
  #lookedMono = performance.now();
  #stoodMs = 0;
  /** The longest single wait since the start, in ms. */
  worstMs = 0;

  constructor() {
    this.#timer = setInterval(() => this.#look(), lookMs);
    this.#timer.unref();
  }

  /** Returns the sum, in ms, of the waits since the last call; waits shorter than `noticedMs` do not count. */
  take(): number {
    const taken = Math.round(this.#stoodMs);
    this.#stoodMs = 0;
    return taken;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const nowMono = performance.now();
    const lateMs = nowMono - this.#lookedMono - lookMs;
    this.#lookedMono = nowMono;
    if (lateMs < noticedMs) return;
    this.#stoodMs += lateMs;
    this.worstMs = Math.max(this.worstMs, Math.round(lateMs));
  }
}

const lookMs = 100;
const noticedMs = 50;
