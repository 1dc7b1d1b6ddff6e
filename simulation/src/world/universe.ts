import { createHash } from "node:crypto";
import { tripwire } from "./tripwire.ts";

interface Event {
  readonly atMs: number;
  readonly order: number;
  fire: (() => void | Promise<void>) | undefined;
}

/** The most events at one time; a small cluster never has as many in a millisecond, so more mean an endless loop. */
const mostEventsAtOnce = 20_000;
/** Events processed in a row, with only their microtasks between. */
const eventsAtOnce = 32;
const traceChunk = 1 << 16;

/**
 * The only clock of a simulation, and its future events. Time moves from event to event. The next event is processed only when all
 * consequences of the last one have run: every microtask, and the statement at the server, if the event sent one.
 */
export class Universe {
  #nowMs = 0;
  #order = 0;
  #events: Event[] = [];
  #since = { atMs: 0, events: 0 };
  /** True if `run` gave up because events followed each other without any time passing. */
  spun = false;
  readonly #trace = createHash("sha256");
  #fresh = "";
  readonly #lines: string[] | undefined;

  /** @param traced records the trace itself beside its hash */
  constructor(traced = false) {
    this.#lines = traced ? [] : undefined;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Calls `fire` in `ms`. If `fire` returns a promise, time stands still until it settles. @returns cancels the call */
  after(ms: number, fire: () => void | Promise<void>): () => void {
    const event: Event = { atMs: this.#nowMs + Math.max(0, ms), order: this.#order++, fire };
    this.#push(event);
    return () => {
      event.fire = undefined;
    };
  }

  /** Adds a line to the trace, in order: two runs of one seed have the same trace. */
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

  /** Runs until no event is left before `untilMs`. */
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

  /** The next event; undefined: there is none, or the simulation spins. */
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

  // A binary heap by time, then by the order of the calls.

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
