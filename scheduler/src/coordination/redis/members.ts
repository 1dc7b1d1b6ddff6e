/**
 * The maximum number of messages that are cached because an earlier one is missing. Further messages are dropped until a full
 * read.
 */
const earlyMost = 1_000;

/**
 * The listed sessions, kept current by messages. Each message carries its number and the changes. A duplicate is ignored, an early message
 * is cached, and a lost message leaves a gap that only a full read closes. `version` is the number of the last applied message.
 */
export class RedisMembers {
  readonly shown = new Set<number>();
  readonly #log: (line: string) => void;
  readonly #early = new Map<number, readonly string[]>();
  /** The number of the last applied message; -1 before the first full read. */
  #version = -1;

  constructor(log: (line: string) => void) {
    this.#log = log;
  }

  get version(): number {
    return this.#version;
  }

  /** Applies a message, or caches it until the messages before it have arrived. @returns true if a session is no longer listed */
  message(text: string): boolean {
    const [number, ...events] = text.split("\n");
    const version = Number(number);
    if (version > this.#version && this.#early.size < earlyMost) this.#early.set(version, events);
    return this.#catchUp();
  }

  /** Replaces the list by `all`, the sessions that were listed at `version`. */
  reset(version: number, all: readonly number[]): void {
    this.shown.clear();
    for (const sessionId of all) this.shown.add(sessionId);
    this.#version = version;
    this.#catchUp();
  }

  /**
   * Prepares for a full read after the service may have lost its data, and may number its messages from the beginning; `shown`
   * stays until then.
   */
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
