/**
 * How much this process, which has nothing much to do, has to wait for a processor. Where the machine has no room, runs are
 * late and processes are taken for dead without any fault of the cluster's: then nobody is judged by the clock.
 */
export class MachineLoad {
  readonly #timer: NodeJS.Timeout;
  #lookedMono = performance.now();
  #stoodMs = 0;
  /** The longest wait of all. */
  worstMs = 0;

  constructor() {
    this.#timer = setInterval(() => this.#look(), lookMs);
    this.#timer.unref();
  }

  /** All that it waited, in ms, since the last time that it was asked. */
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
