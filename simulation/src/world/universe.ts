import { createHash } from "node:crypto";
import { tripwire } from "./tripwire.ts";

interface Event {
  readonly atMs: number;
  readonly order: number;
  fire: (() => void | Promise<void>) | undefined;
}

/** The most events within one ms of simulated time. A small cluster has fewer, so a larger number means an endless loop. */
const mostEventsAtOnce = 20_000;
/** How many events are processed in a row, with only microtasks in between. */
const eventsAtOnce = 32;
const traceChunk = 1 << 16;

/**
 * The only clock of a simulation, and the queue of its future events. Time jumps from event to event. An event is processed only after
 * all consequences of the previous one: every microtask, and the statement at the server, if the event sent one.
 */
export class Universe {
  #nowMs = 0;
  #order = 0;
  #events: Event[] = [];
  #since = { atMs: 0, events: 0 };
  /** True if `run` stopped because too many events happened within one ms. */
  spun = false;
  readonly #trace = createHash("sha256");
  #fresh = "";
  readonly #lines: string[] | undefined;

  /** @param traced true: stores the lines of the trace, not only their hash */
  constructor(traced = false) {
    this.#lines = traced ? [] : undefined;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Calls `fire` after `ms`. If `fire` returns a promise, time stands still until it settles. @returns a function that cancels the call */
  after(ms: number, fire: () => void | Promise<void>): () => void {
    const event: Event = { atMs: this.#nowMs + Math.max(0, ms), order: this.#order++, fire };
    this.#push(event);
    return () => {
      event.fire = undefined;
    };
  }

  /** Appends a line to the trace. Two simulations of one seed have the same trace. */
  note(line: string): void {
    const text = `${this.#nowMs.toFixed(3)} ${line}\n`;
    this.#fresh += text;
    if (this.#fresh.length > traceChunk) this.#flush();
    this.#lines?.push(text);
  }

  get trace(): readonly string[] {
    return this.#lines ?? [];
  }

  hash(): string {
    this.#flush();
    return this.#trace.copy().digest("hex").slice(0, 16);
  }

  /**
   * Processes all events up to `untilMs`, and resolves when simulated time has reached that moment, or earlier if too many events
   * happen within one ms (`spun`). Rejects if the promise of an event rejects.
   */
  run(untilMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      let state: "going" | "waiting" | "over" = "going";
      const over = () => {
        if (state === "over") return;
        state = "over";
        this.#nowMs = Math.max(this.#nowMs, untilMs);
        resolve();
      };
      // Between two immediates set together, Node runs every microtask, and does not poll for input or output.
      const step = () => {
        if (state !== "going") return;
        tripwire.armed = false;
        const event = this.#next(untilMs);
        if (!event) return over();
        tripwire.armed = true;
        const working = event();
        if (!working) return;
        tripwire.armed = false;
        state = "waiting";
        working.then(
          () => {
            tripwire.armed = true;
            state = "going";
            goOn();
          },
          (error) => {
            state = "over";
            reject(error);
          },
        );
      };
      let asked = false;
      const goOn = () => {
        if (asked) return;
        asked = true;
        for (let i = 0; i < eventsAtOnce; i++) tripwire.next(step);
        tripwire.next(() => {
          asked = false;
          if (state === "going") goOn();
        });
      };
      goOn();
    });
  }

  /** Returns the next event; undefined if there is none until `untilMs`, or if too many events happen within one ms. */
  #next(untilMs: number): Event["fire"] {
    for (;;) {
      const next = this.#events[0];
      if (!next || next.atMs > untilMs) return undefined;
      this.#pop();
      if (!next.fire) continue;
      this.#nowMs = next.atMs;
      if (next.atMs - this.#since.atMs >= 1) this.#since = { atMs: next.atMs, events: 0 };
      if (++this.#since.events > mostEventsAtOnce) {
        this.spun = true;
        return undefined;
      }
      return next.fire;
    }
  }

  #flush(): void {
    this.#trace.update(this.#fresh);
    this.#fresh = "";
  }

  // A binary heap, ordered by time; events at the same time are ordered by the order of the calls.

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
