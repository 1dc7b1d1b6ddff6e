import type { Call } from "../requests/call.ts";

/** The largest number of empty entries at the front before the array is compacted. */
const mostEmpty = 1_024;

/**
 * The calls that wait for a connection, oldest first. A call that settles, for example because its caller aborts it, leaves the list at
 * once. The calls are stored in an array with entries that become empty: removing the first of 200,000 calls from a set, or building a new
 * set of the rest, would block the event loop.
 */
export class WaitingCalls {
  #places: (Call | undefined)[] = [];
  #head = 0;
  #size = 0;
  #bytes = 0;

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(call: Call): void {
    call.bytes = call.question.dataBytes ?? 0;
    call.place = this.#places.length;
    call.onSettled = this.#leave;
    this.#places.push(call);
    this.#size += 1;
    this.#bytes += call.bytes;
    if (this.#places.length > mostEmpty && this.#places.length > 2 * this.#size) this.#moveUp();
  }

  /** Removes and returns all calls, or only the calls that were made until `untilMs` (monotonic ms), oldest first. */
  take(untilMs = Number.POSITIVE_INFINITY): Call[] {
    const taken: Call[] = [];
    for (let call = this.shift(untilMs); call; call = this.shift(untilMs)) taken.push(call);
    return taken;
  }

  /** Removes and returns the oldest call; undefined if there is none that was made until `untilMs` (monotonic ms). */
  shift(untilMs = Number.POSITIVE_INFINITY): Call | undefined {
    for (; this.#head < this.#places.length; this.#head++) {
      const call = this.#places[this.#head];
      if (!call) continue;
      if (call.sentAt > untilMs) return undefined;
      this.#leave(call);
      return call;
    }
    this.#places = [];
    this.#head = 0;
    return undefined;
  }

  readonly #leave = (call: Call): void => {
    if (this.#places[call.place] !== call) return;
    this.#places[call.place] = undefined;
    this.#size -= 1;
    this.#bytes -= call.bytes;
  };

  /** Removes the empty entries from the array. The cost is proportional to the number of calls that have left since the last time. */
  #moveUp(): void {
    this.#places = this.#places.filter((call) => call !== undefined);
    this.#head = 0;
    for (const [place, call] of this.#places.entries()) (call as Call).place = place;
  }
}
