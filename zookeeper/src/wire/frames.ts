/**
 * Cuts a connection's bytes into frames. Each connection has its own instance: a half-read frame of a lost connection must not mix
 * with the next connection's bytes.
 */
export interface FrameSink {
  /** Receives a frame, which lies in `buffer` from `start` to `end`. It must be read during the call, because the buffer is reused. */
  frame(buffer: Buffer, start: number, end: number): void;
  /** Receives only the first bytes of a frame over the limit, enough for a reply's header. The rest is skipped. */
  oversized(head: Buffer, bytes: number): void;
}

/** A reply's header: xid, zxid, err. */
export const headerBytes = 16;
const lengthBytes = 4;

export class FrameReader {
  readonly #maxBytes: number;
  readonly #sink: FrameSink;
  /** A partly received frame: its length prefix, or its bytes. */
  readonly #prefix = Buffer.alloc(lengthBytes);
  #prefixFilled = 0;
  #partial: Buffer | undefined;
  #filled = 0;
  /** The bytes of an oversized frame that are still to be skipped, and its whole length. */
  #skip = 0;
  #oversized = 0;

  constructor(maxBytes: number, sink: FrameSink) {
    this.#maxBytes = maxBytes;
    this.#sink = sink;
  }

  /** True if a frame has begun and not ended. */
  get inside(): boolean {
    return this.#partial !== undefined || this.#skip > 0;
  }

  /** Processes received bytes. @throws RangeError if the bytes cannot be frames */
  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#partial || this.#skip > 0) at = this.#continue(chunk, at);
      else if (this.#prefixFilled > 0 || chunk.length - at < lengthBytes) at = this.#prefixBytes(chunk, at);
      else {
        const bytes = this.#checked(chunk.readInt32BE(at));
        at += lengthBytes;
        if (bytes <= this.#maxBytes && chunk.length - at >= bytes) {
          this.#sink.frame(chunk, at, at + bytes);
          at += bytes;
        } else this.#begin(bytes);
      }
    }
  }

  #prefixBytes(chunk: Buffer, at: number): number {
    const copied = chunk.copy(this.#prefix, this.#prefixFilled, at);
    this.#prefixFilled += copied;
    if (this.#prefixFilled === lengthBytes) {
      this.#prefixFilled = 0;
      this.#begin(this.#checked(this.#prefix.readInt32BE(0)));
    }
    return at + copied;
  }

  #begin(bytes: number): void {
    this.#oversized = bytes > this.#maxBytes ? bytes : 0;
    this.#partial = Buffer.allocUnsafeSlow(this.#oversized ? headerBytes : bytes);
    this.#filled = 0;
  }

  #continue(chunk: Buffer, at: number): number {
    if (!this.#partial) {
      const passed = Math.min(this.#skip, chunk.length - at);
      this.#skip -= passed;
      return at + passed;
    }
    const copied = chunk.copy(this.#partial, this.#filled, at);
    this.#filled += copied;
    if (this.#filled === this.#partial.length) {
      const whole = this.#partial;
      this.#partial = undefined;
      if (this.#oversized) {
        this.#skip = this.#oversized - headerBytes;
        this.#sink.oversized(whole, this.#oversized);
      } else this.#sink.frame(whole, 0, whole.length);
    }
    return at + copied;
  }

  #checked(bytes: number): number {
    if (bytes < headerBytes) throw new RangeError(`a frame of ${bytes} bytes`);
    return bytes;
  }
}
