import type { Socket } from "node:net";

/** The most bytes that wait in a lane before it stops reading; TCP then holds back the peer that writes. */
const mostHeld = 4 * 1024 * 1024;

/** `end` closes the connection: it is queued like bytes, so a paused lane delays it too. */
type Held = { readonly due: number } & ({ readonly bytes: Buffer } | { readonly end: () => void });

/**
 * One direction of a proxied connection: splits the bytes into ZooKeeper's frames, or takes chunks as they arrive, calls `passing`
 * to find out how many bytes of each may pass, and forwards these.
 */
export class Lane {
  delayMs = 0;
  bytesPerSecond = Number.POSITIVE_INFINITY;
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #passing: (frame: Buffer | undefined) => number;
  readonly #framed: boolean;
  #unframed: Buffer[] = [];
  #unframedBytes = 0;
  #first = true;
  readonly #held: Held[] = [];
  #heldBytes = 0;
  #paused = false;
  /** Monotonic ms at which throttling allows the next bytes. */
  #free = 0;
  #dead = false;
  /** Set once a frame was cut: the connection ends after the frame's first part, and no later bytes pass. */
  #cut = false;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param passing how many bytes of a frame with its length may pass: all for Infinity, none for 0; after a part of it
   *   the connection ends. It is given the frame without its length, and undefined for the first: that has no header.
   *   Without frames it is given each piece whole.
   */
  constructor(from: Socket, to: Socket, passing: (frame: Buffer | undefined) => number, framed = true) {
    this.#framed = framed;
    this.#from = from;
    this.#to = to;
    this.#passing = passing;
    from.on("data", (bytes) => this.#arrive(bytes));
    from.on("close", () => this.#hold({ due: performance.now() + this.delayMs, end: () => to.end() }));
    to.on("drain", () => this.#flow());
  }

  pause(paused: boolean): void {
    this.#paused = paused;
    this.#flow();
  }

  /** Drops all held bytes. */
  abandon(): void {
    this.#dead = true;
    clearTimeout(this.#timer);
    this.#held.length = 0;
  }

  #arrive(bytes: Buffer): void {
    if (this.#cut) return;
    if (!this.#framed) {
      this.#let(bytes, this.#passing(bytes));
      return;
    }
    this.#unframed.push(bytes);
    this.#unframedBytes += bytes.length;
    let rest = this.#unframed[0] ?? bytes;
    // The chunks are joined only once a frame is complete, because a reply of many megabytes arrives in a thousand chunks.
    if (rest.length < 4 || this.#unframedBytes >= 4 + rest.readUInt32BE(0)) rest = Buffer.concat(this.#unframed);
    else return;
    while (rest.length >= 4) {
      const size = 4 + rest.readUInt32BE(0);
      if (rest.length < size) break;
      const frame = rest.subarray(0, size);
      rest = rest.subarray(size);
      const passing = this.#passing(this.#first ? undefined : frame.subarray(4));
      this.#first = false;
      if (this.#dead) return;
      this.#let(frame, passing);
      if (this.#cut) return;
    }
    this.#unframed = rest.length > 0 ? [rest] : [];
    this.#unframedBytes = rest.length;
  }

  #let(bytes: Buffer, passing: number): void {
    const due = performance.now() + this.delayMs;
    if (passing > 0) this.#hold({ due, bytes: bytes.subarray(0, passing) });
    if (passing <= 0 || passing >= bytes.length) return;
    this.#cut = true;
    this.#hold({ due, end: () => this.#from.resetAndDestroy() });
  }

  #hold(held: Held): void {
    if (this.#dead) return;
    this.#held.push(held);
    if ("bytes" in held) this.#heldBytes += held.bytes.length;
    this.#flow();
  }

  #flow(): void {
    clearTimeout(this.#timer);
    while (!this.#dead && !this.#paused && !this.#to.writableNeedDrain) {
      const next = this.#held[0];
      if (next === undefined) break;
      const early = Math.max(next.due, this.#free) - performance.now();
      if (early > 0) {
        this.#timer = setTimeout(() => this.#flow(), Math.ceil(early));
        break;
      }
      this.#held.shift();
      if ("end" in next) next.end();
      else this.#pass(next.bytes);
    }
    if (this.#heldBytes >= mostHeld) this.#from.pause();
    else this.#from.resume();
  }

  #pass(bytes: Buffer): void {
    const now = bytes.subarray(0, Math.max(1, Math.floor(this.bytesPerSecond / 50)));
    this.#heldBytes -= now.length;
    if (this.#to.writable) this.#to.write(now); // otherwise its `close` event is about to end the other lane as well
    if (now.length < bytes.length) this.#held.unshift({ due: 0, bytes: bytes.subarray(now.length) });
    this.#free = performance.now() + (1_000 * now.length) / this.bytesPerSecond;
  }
}
