import { createHash } from "node:crypto";
import { tripwire } from "./tripwire.ts";

interface Event {
  readonly atMs: number;
  readonly order: number;
  fire: (() => void | Promise<void>) | undefined;
}

/** More than ever happen in one millisecond of a small cluster. */
const mostEventsAtOnce = 20_000;

/**
 * The one time of a simulation, and all that is to happen in it. Time moves from event to event; the next one comes
 * only when all that the last one set going has run: every microtask, and the one statement at the server, if it was one.
 */
export class Universe {
  #nowMs = 0;
  #order = 0;
  #events: Event[] = [];
  #since = { atMs: 0, events: 0 };
  /** Something went on and on without any time passing: `run` gave it up. */
  spun = false;
  readonly #trace = createHash("sha256");
  readonly #lines: string[] | undefined;

  /** @param traced keeps the trace itself beside its hash */
  constructor(traced = false) {
    this.#lines = traced ? [] : undefined;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Calls `fire` in so many ms. A promise that it gives is waited for, with time standing still. @returns takes it back */
  after(ms: number, fire: () => void | Promise<void>): () => void {
    const event: Event = { atMs: this.#nowMs + Math.max(0, ms), order: this.#order++, fire };
    this.#push(event);
    return () => {
      event.fire = undefined;
    };
  }

  /** What happened, in order: two runs of one seed have the same. */
  note(line: string): void {
    const text = `${this.#nowMs.toFixed(3)} ${line}\n`;
    this.#trace.update(text);
    this.#lines?.push(text);
  }

  get trace(): readonly string[] {
    return this.#lines ?? [];
  }

  hash(): string {
    return this.#trace.copy().digest("hex").slice(0, 16);
  }

  /** Until nothing is left to happen before `untilMs`. */
  async run(untilMs: number): Promise<void> {
    for (;;) {
      const next = this.#events[0];
      if (!next || next.atMs > untilMs) break;
      this.#pop();
      if (!next.fire) continue;
      this.#nowMs = next.atMs;
      if (next.atMs - this.#since.atMs >= 1) this.#since = { atMs: next.atMs, events: 0 };
      if (++this.#since.events > mostEventsAtOnce) {
        this.spun = true;
        break;
      }
      tripwire.armed = true;
      const working = next.fire();
      if (working) {
        tripwire.armed = false;
        await working;
        tripwire.armed = true;
      }
      await tripwire.microtasks();
      tripwire.armed = false;
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
  }

  // A binary heap by time, then by when it was asked for.

  #push(event: Event): void {
    const events = this.#events;
    let i = events.length;
    events.push(event);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!before(event, events[parent] as Event)) break;
      events[i] = events[parent] as Event;
      i = parent;
    }
    events[i] = event;
  }

  #pop(): void {
    const events = this.#events;
    const last = events.pop() as Event;
    if (events.length === 0) return;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= events.length) break;
      if (child + 1 < events.length && before(events[child + 1] as Event, events[child] as Event)) child++;
      if (!before(events[child] as Event, last)) break;
      events[i] = events[child] as Event;
      i = child;
    }
    events[i] = last;
  }
}

const before = (a: Event, b: Event): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
