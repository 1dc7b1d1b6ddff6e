/**
 * The starts that handlers record when slots are counted in millions: 16 bytes each, in a file of each process. A handler returns only when
 * its record is written. So even if the process is killed, a record exists of each start whose run may have ended.
 */
import { closeSync, openSync, readdirSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { ManySlots } from "./many-slots.ts";

const recordBytes = 16;
const prefix = "starts-of-";
/** Records wait this long (ms) for others, so that a write has many. */
const waitMs = 3;

/** Writes the records of one process. */
export class StartWriter {
  readonly #file: number;
  #parts: Buffer[] = [];
  #written: Promise<void> | undefined;

  constructor(folder: string, name: string) {
    this.#file = openSync(join(folder, `${prefix}${name}-${process.pid}`), "a");
  }

  /** Records a start. Resolves when the record is in the file. */
  note(task: number, slotMs: number, atMs: number): Promise<void> {
    const record = Buffer.allocUnsafe(recordBytes);
    record.writeUInt32LE(task, 0);
    // Bytes 4 to 11: the slot's time in whole ms. Bytes 12 to 15: the lateness in ms, which may be negative.
    record.writeDoubleLE(slotMs, 4);
    record.writeInt32LE(Math.min(2 ** 31 - 1, atMs - slotMs), 12);
    this.#parts.push(record);
    this.#written ??= new Promise((resolve) => setTimeout(() => this.#write(resolve), waitMs));
    return this.#written;
  }

  #write(resolve: () => void): void {
    const all = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#written = undefined;
    for (let from = 0; from < all.length; ) from += writeSync(this.#file, all, from);
    resolve();
  }
}

/** Reads the records of all processes while they are written. A record that a killed process left incomplete is not read. */
export class StartReader {
  readonly #folder: string;
  readonly #read = new Map<string, { file: number; position: number }>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Gives all new records to `slots`. */
  take(slots: ManySlots): void {
    for (const name of readdirSync(this.#folder)) {
      if (!name.startsWith(prefix)) continue;
      const reading = this.#read.get(name) ?? { file: openSync(join(this.#folder, name), "r"), position: 0 };
      this.#read.set(name, reading);
      const buffer = Buffer.allocUnsafe(recordBytes << 16);
      for (;;) {
        const size = readSync(reading.file, buffer, 0, buffer.length, reading.position);
        const whole = size - (size % recordBytes);
        for (let at = 0; at < whole; at += recordBytes) {
          const slotMs = buffer.readDoubleLE(at + 4);
          slots.start(buffer.readUInt32LE(at), slotMs, slotMs + buffer.readInt32LE(at + 12));
        }
        reading.position += whole;
        if (whole === 0) break;
      }
    }
  }

  close(): void {
    for (const { file } of this.#read.values()) closeSync(file);
    this.#read.clear();
  }
}
