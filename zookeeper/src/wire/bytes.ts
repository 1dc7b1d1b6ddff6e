/** Jute's encoding: big-endian, texts and buffers with a 4-byte length before them, −1 for none. */

const chunkBytes = 64 * 1024;

/** Encodes frames one behind the other; `take` hands over what was finished since the last time. */
export class Writer {
  #buffer = Buffer.allocUnsafeSlow(chunkBytes);
  #taken = 0;
  #at = 0;
  #frame = 0;

  beginFrame(): void {
    this.#frame = this.#at;
    this.int(0);
  }

  /** @returns the frame's length with its prefix */
  endFrame(): number {
    const bytes = this.#at - this.#frame;
    this.#buffer.writeInt32BE(bytes - 4, this.#frame);
    return bytes;
  }

  /** Forgets the frame that was begun. */
  dropFrame(): void {
    this.#at = this.#frame;
  }

  /** The finished frames. Nothing is written into these bytes again. */
  take(): Buffer {
    const taken = this.#buffer.subarray(this.#taken, this.#at);
    this.#taken = this.#at;
    return taken;
  }

  /** Bytes that were not taken yet. */
  get pending(): number {
    return this.#at - this.#taken;
  }

  int(value: number): void {
    this.#reserve(4);
    this.#at = this.#buffer.writeInt32BE(value, this.#at);
  }

  long(value: bigint): void {
    this.#reserve(8);
    this.#at = this.#buffer.writeBigInt64BE(value, this.#at);
  }

  bool(value: boolean): void {
    this.#reserve(1);
    this.#at = this.#buffer.writeUInt8(value ? 1 : 0, this.#at);
  }

  string(text: string): void {
    this.#reserve(4 + 3 * text.length);
    const bytes = this.#buffer.write(text, this.#at + 4);
    this.#buffer.writeInt32BE(bytes, this.#at);
    this.#at += 4 + bytes;
  }

  /** A text is written as UTF-8; undefined as no buffer at all. */
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
    // What was taken may still be on its way to the socket, so a new buffer, never the same again from its start.
    const kept = this.#at - this.#taken;
    const next = Buffer.allocUnsafeSlow(Math.max(chunkBytes, 2 * (kept + bytes)));
    this.#buffer.copy(next, 0, this.#taken, this.#at);
    this.#frame -= this.#taken;
    this.#at = kept;
    this.#taken = 0;
    this.#buffer = next;
  }
}

const empty = Buffer.alloc(0);

/** Decodes one frame. Reading beyond its end throws a RangeError, which the connection takes as a broken protocol. */
export class Reader {
  #buffer: Buffer = empty;
  #at = 0;
  #end = 0;

  over(buffer: Buffer, start: number, end: number): this {
    this.#buffer = buffer;
    this.#at = start;
    this.#end = end;
    return this;
  }

  get left(): number {
    return this.#end - this.#at;
  }

  int(): number {
    return this.#buffer.readInt32BE(this.#step(4));
  }

  long(): bigint {
    return this.#buffer.readBigInt64BE(this.#step(8));
  }

  bool(): boolean {
    return this.#buffer.readUInt8(this.#step(1)) !== 0;
  }

  string(): string {
    const bytes = Math.max(0, this.int());
    const start = this.#step(bytes);
    return this.#buffer.toString("utf8", start, start + bytes);
  }

  /** A copy: the frame's memory is not kept alive by it. No buffer at all reads as an empty one. */
  buffer(): Buffer {
    const bytes = Math.max(0, this.int());
    const start = this.#step(bytes);
    return Buffer.from(this.#buffer.subarray(start, start + bytes));
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
