/**
 * Records every start and end as a line of a file, which the executing node writes directly with write(2). A written line survives the kill
 * of its writer, and is independent of Carillon's store.
 */
import { closeSync, openSync, readSync, writeSync } from "node:fs";

export interface Seen {
  kind: "start" | "end" | "failed";
  task: string;
  run: number;
  attempt: number;
  /** null for a command, because the worker's reports about commands do not contain the fence. */
  fence: number | null;
  /** The slot's nominal time in epoch ms; null for an enqueued run. */
  slot: number | null;
  node: string;
  /** Time of the event in epoch ms, on the machine's clock. */
  at: number;
}

export interface Said {
  kind: "said";
  node: string;
  at: number;
  text: string;
}

export class Recorder {
  readonly #file: number;
  readonly #node: string;

  constructor(path: string, node: string) {
    this.#file = openSync(path, "a");
    this.#node = node;
  }

  write(what: Omit<Seen, "node" | "at"> | Omit<Said, "node" | "at">): void {
    const at = Date.now();
    // A single write with O_APPEND for each line keeps lines of several processes apart.
    writeSync(this.#file, `${JSON.stringify({ ...what, node: this.#node, at })}\n`);
  }
}

/** Reads the file as it grows. */
export class RecordReader {
  readonly #file: number;
  readonly #buffer = Buffer.alloc(64 * 1024);
  #rest = Buffer.alloc(0);

  constructor(path: string) {
    closeSync(openSync(path, "a"));
    this.#file = openSync(path, "r");
  }

  /** Returns the lines written since the last call. */
  read(): (Seen | Said)[] {
    const records: (Seen | Said)[] = [];
    for (;;) {
      const length = readSync(this.#file, this.#buffer);
      if (length === 0) return records;
      const text = Buffer.concat([this.#rest, this.#buffer.subarray(0, length)]);
      const end = text.lastIndexOf(0x0a) + 1;
      this.#rest = Buffer.from(text.subarray(end));
      for (const line of text.toString("utf8", 0, end).split("\n")) if (line !== "") records.push(JSON.parse(line));
    }
  }

  close(): void {
    closeSync(this.#file);
  }
}
