/** The most early messages that are kept; if more arrive, a full read replaces them. */
const earlyMost = 1_000;

/**
 * The sessions that are shown, updated by messages that each carry one change and its number. A duplicate is ignored, an early
 * message waits, and a lost one leaves a gap that only a full read closes. `version` is the number of the last change applied.
 */
export class RedisMembers {
  readonly shown = new Set<number>();
  readonly #log: (line: string) => void;
  readonly #early = new Map<number, readonly string[]>();
  /** -1 before the first reading. */
  #version = -1;

  constructor(log: (line: string) => void) {
    this.#log = log;
  }

  get version(): number {
    return this.#version;
  }

  /** @returns true if a session is no longer shown */
  message(text: string): boolean {
    const [number, ...events] = text.split("\n");
    const version = Number(number);
    if (version > this.#version && this.#early.size < earlyMost) this.#early.set(version, events);
    return this.#catchUp();
  }

  /** Replaces the whole list by `all`, the sessions shown at `version`. */
  reset(version: number, all: readonly number[]): void {
    this.shown.clear();
    for (const sessionId of all) this.shown.add(sessionId);
    this.#version = version;
    this.#catchUp();
  }

  /** Forgets the list, because the service began again and its versions are not comparable with the former ones. */
  forget(): void {
    this.#early.clear();
    this.#version = -1;
  }

  #catchUp(): boolean {
    let gone = false;
    for (const version of this.#early.keys()) if (version <= this.#version) this.#early.delete(version);
    if (this.#version < 0) return false;
    for (;;) {
      const events = this.#early.get(this.#version + 1);
      if (!events) return gone;
      this.#early.delete(++this.#version);
      for (const event of events) gone = this.#apply(event) || gone;
    }
  }

  #apply(event: string): boolean {
    const sessionId = Number(event.slice(1));
    if (/^[+-]\d+$/.test(event)) {
      if (event.startsWith("-")) return this.shown.delete(sessionId);
      this.shown.add(sessionId);
    } else this.#log(`Redis tells of members what cannot be read: ${event.slice(0, 200)}`);
    return false;
  }
}
