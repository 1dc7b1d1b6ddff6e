/** Encoding and decoding of Jute: numbers are big-endian; strings and buffers follow a 4-byte length, which is −1 for a missing value. */

const chunkBytes = 64 * 1024;
/** For ASCII strings up to this length, copying character by character is faster than a call of native code. */
const shortText = 128;

const viewOf = (buffer: Buffer) => new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);

/**
 * Encodes frames one after another; `take` returns the frames that were finished since its last call. Numbers are written through a
 * DataView, because V8 optimises it better than Buffer's methods.
 */
export class Writer {
  #buffer = Buffer.allocUnsafeSlow(chunkBytes);
  #view = viewOf(this.#buffer);
  #taken = 0;
  #at = 0;
  #frame = 0;

  beginFrame(): void {
    this.#frame = this.#at;
    this.int(0);
  }

  /** @returns the frame's length in bytes, including its length prefix */
  endFrame(): number {
    const bytes = this.#at - this.#frame;
    this.#view.setInt32(this.#frame, bytes - 4);
    return bytes;
  }

  /** Discards the unfinished frame. */
  dropFrame(): void {
    this.#at = this.#frame;
  }

  /** Returns the finished frames. The returned bytes are never overwritten. */
  take(): Buffer {
    const taken = this.#buffer.subarray(this.#taken, this.#at);
    this.#taken = this.#at;
    return taken;
  }

  /** Number of bytes that `take` has not returned yet. */
  get pending(): number {
    return this.#at - this.#taken;
  }

  int(value: number): void {
    this.#reserve(4);
    this.#view.setInt32(this.#at, value);
    this.#at += 4;
  }

  long(value: bigint): void {
    this.#reserve(8);
    this.#view.setBigInt64(this.#at, value);
    this.#at += 8;
  }

  bool(value: boolean): void {
    this.#reserve(1);
    this.#buffer[this.#at++] = value ? 1 : 0;
  }

  string(text: string): void {
    this.#reserve(4 + 3 * text.length);
    const start = this.#at + 4;
    const bytes = this.#writeAscii(text, start) ? text.length : this.#buffer.write(text, start);
    this.#view.setInt32(this.#at, bytes);
    this.#at = start + bytes;
  }

  /** Writes a short ASCII string. @returns false, without effect, if the string is too long or not ASCII */
  #writeAscii(text: string, start: number): boolean {
    if (text.length > shortText) return false;
    const buffer = this.#buffer;
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index);
      if (code > 127) return false;
      buffer[start + index] = code;
    }
    return true;
  }

  /** Writes a buffer; a string is encoded as UTF-8; undefined becomes a missing buffer (length −1). */
  buffer(data: Uint8Array | string | undefined): void {
    if (typeof data === "string") this.string(data);
    else if (data === undefined) this.int(-1);
    else {
      this.int(data.length);
      this.#reserve(data.length);
      this.#buffer.set(data, this.#at);
      this.#at += data.length;
    }
  }

  list<T>(items: readonly T[], write: (item: T) => void): void {
    this.int(items.length);
    for (const item of items) write(item);
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return;
    // A new buffer is used, and the old one is never used again, because the socket may still be sending the bytes that were taken.
    const kept = this.#at - this.#taken;
    const next = Buffer.allocUnsafeSlow(Math.max(chunkBytes, 2 * (kept + bytes)));
    this.#buffer.copy(next, 0, this.#taken, this.#at);
    this.#frame -= this.#taken;
    this.#at = kept;
    this.#taken = 0;
    this.#buffer = next;
    this.#view = viewOf(next);
  }
}

/** Writes the header that precedes each part of a multi or multiRead. */
export function writeMultiHeader(writer: Writer, code: number): void {
  writer.int(code);
  writer.bool(false);
  writer.int(-1);
}

/** Writes the header that ends a multi or multiRead. */
export function writeMultiEnd(writer: Writer): void {
  writer.int(-1);
  writer.bool(true);
  writer.int(-1);
}

const empty = Buffer.alloc(0);

/** Decodes one frame. Reading beyond its end throws a RangeError, which ends the connection. */
export class Reader {
  #buffer: Buffer = empty;
  #view = viewOf(empty);
  #at = 0;
  #end = 0;

  over(buffer: Buffer, start: number, end: number): this {
    if (buffer !== this.#buffer) {
      this.#buffer = buffer;
      this.#view = viewOf(buffer);
    }
    this.#at = start;
    this.#end = end;
    return this;
  }

  get left(): number {
    return this.#end - this.#at;
  }

  int(): number {
    return this.#view.getInt32(this.#step(4));
  }

  long(): bigint {
    return this.#view.getBigInt64(this.#step(8));
  }

  /** Reads a 64-bit integer that a number can represent exactly, such as a time. This is faster than a bigint. */
  time(): number {
    const start = this.#step(8);
    return this.#view.getInt32(start) * 2 ** 32 + this.#view.getUint32(start + 4);
  }

  bool(): boolean {
    return this.#buffer[this.#step(1)] !== 0;
  }

  string(): string {
    const bytes = Math.max(0, this.int());
    const start = this.#step(bytes);
    return this.#buffer.toString("utf8", start, start + bytes);
  }

  /** Reads a buffer as a copy, so that it does not keep the whole frame in memory. A missing buffer is returned as an empty one. */
  buffer(): Buffer {
    const bytes = Math.max(0, this.int());
    const start = this.#step(bytes);
    const copy = Buffer.allocUnsafe(bytes);
    this.#buffer.copy(copy, 0, start, start + bytes);
    return copy;
  }

  list<T>(read: () => T): T[] {
    const count = this.int();
    const items: T[] = [];
    for (let index = 0; index < count; index++) items.push(read());
    return items;
  }

  #step(bytes: number): number {
    const start = this.#at;
    if (start + bytes > this.#end) throw new RangeError(`${bytes} bytes wanted, ${this.left} left`);
    this.#at = start + bytes;
    return start;
  }
}
