import type { Socket } from "node:net";

/** The largest number of bytes that a lane holds before it stops reading. TCP then slows down the sender. */
const mostHeld = 4 * 1024 * 1024;

/** `end` closes the connection. It is queued like bytes, so that a paused lane delays it too. */
type Held = { readonly due: number } & ({ readonly bytes: Buffer } | { readonly end: () => void });

/**
 * One direction of a proxied connection. It splits the bytes into ZooKeeper's frames, or takes chunks as they arrive. For each frame or
 * chunk it calls `passing`, which returns how many of its bytes may pass, and forwards these bytes.
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
  /** Monotonic ms; until then, the throttling allows no more bytes. */
  #free = 0;
  #dead = false;
  /** Set once a frame was cut: its first part is forwarded, then the connection ends, and no later bytes are forwarded. */
  #cut = false;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param passing returns how many bytes of a frame, including its length prefix, are forwarded: Infinity forwards the whole frame, and 0
   * drops it; after a positive number that is smaller than the frame's length, the connection ends. It gets the frame without its length
   * prefix, but undefined for a connection's first frame, which has no header.
   * @param framed if false, `passing` gets each chunk as it arrives
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

  /** Discards all held bytes and forwards nothing more. */
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
    // The chunks are joined only when a frame is complete, because a reply of many megabytes arrives in a thousand chunks.
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
    if (this.#to.writable) this.#to.write(now); // otherwise the socket's `close` event will end the other lane too
    if (now.length < bytes.length) this.#held.unshift({ due: 0, bytes: bytes.subarray(now.length) });
    this.#free = performance.now() + (1_000 * now.length) / this.bytesPerSecond;
  }
}
