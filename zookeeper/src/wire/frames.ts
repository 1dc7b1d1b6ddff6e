/**
 * Receives the frames into which a `FrameReader` splits a connection's bytes. Each connection has its own reader, so that part of a frame
 * of a lost connection cannot mix with the next connection's bytes.
 */
export interface FrameSink {
  /** Called with a frame: the bytes of `buffer` from `start` to `end`. The buffer may be used again after the call. */
  frame(buffer: Buffer, start: number, end: number): void;
  /** Called with only the first bytes of a frame that exceeds the limit, enough for a reply's header. The rest is skipped. */
  oversized(head: Buffer, bytes: number): void;
}

/** The length of a reply's header: xid, zxid and err. */
export const headerBytes = 16;
const lengthBytes = 4;

export class FrameReader {
  readonly #maxBytes: number;
  readonly #sink: FrameSink;
  /** The received part of a frame: of its length prefix, or of its bytes. */
  readonly #prefix = Buffer.alloc(lengthBytes);
  #prefixFilled = 0;
  #partial: Buffer | undefined;
  #filled = 0;
  /** How many bytes of an oversized frame must still be skipped, and how long the whole frame is. */
  #skip = 0;
  #oversized = 0;

  constructor(maxBytes: number, sink: FrameSink) {
    this.#maxBytes = maxBytes;
    this.#sink = sink;
  }

  /** True if the length of a frame has been received, but not all of its bytes. */
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
