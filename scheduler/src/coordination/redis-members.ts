import type { Shown } from "../witness.ts";

/** Messages that came before the ones they follow; more are made up for by reading everything. */
const earlyMost = 1_000;

/**
 * The members shown, by messages that each tell a change and carry its number: a doubled one is known, an early one
 * waits, and a lost one leaves a gap that only a reading of everything closes. `version` says how far this has come.
 */
export class RedisMembers {
  readonly shown = new Map<number, Shown>();
  readonly #log: (line: string) => void;
  readonly #early = new Map<number, readonly string[]>();
  /** None before the first reading. */
  #version = -1;

  constructor(log: (line: string) => void) {
    this.#log = log;
  }

  get version(): number {
    return this.#version;
  }

  /** @returns the contenders who became first, whether or not it was their turn to be told */
  message(text: string): { first: readonly string[]; changed: boolean } {
    const [number, ...events] = text.split("\n");
    const version = Number(number);
    const first = events.filter((event) => event.startsWith("!")).map((event) => event.slice(1));
    if (version > this.#version && this.#early.size < earlyMost) this.#early.set(version, events);
    return { first, changed: this.#catchUp() };
  }

  /** Everything, as it was at `version`. */
  reset(version: number, all: readonly string[]): void {
    this.shown.clear();
    for (const text of all) this.#show(text);
    this.#version = version;
    this.#catchUp();
  }

  /** What was known is no longer comparable: the service began anew. */
  forget(): void {
    this.#early.clear();
    this.#version = -1;
  }

  #catchUp(): boolean {
    let changed = false;
    for (const version of this.#early.keys()) if (version <= this.#version) this.#early.delete(version);
    if (this.#version < 0) return false;
    for (;;) {
      const events = this.#early.get(this.#version + 1);
      if (!events) return changed;
      this.#early.delete(++this.#version);
      for (const event of events) changed = this.#apply(event) || changed;
    }
  }

  #apply(event: string): boolean {
    if (event.startsWith("+")) return this.#show(event.slice(1));
    return event.startsWith("-") && this.shown.delete(Number(event.slice(1)));
  }

  #show(text: string): boolean {
    try {
      const shown = JSON.parse(text) as Shown;
      if (!Number.isSafeInteger(shown.sessionId)) throw new Error("it has no session");
      this.shown.set(shown.sessionId, shown);
      return true;
    } catch (error) {
      this.#log(`Redis shows a member that cannot be read (${String(error)}): ${text.slice(0, 200)}`);
      return false;
    }
  }
}
