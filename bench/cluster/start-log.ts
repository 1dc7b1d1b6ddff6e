import { closeSync, openSync, readSync } from "node:fs";

/** One start of a handler, as the handler itself logged it. */
export interface NotedStart {
  attempt: number;
  /** Epoch ms on this machine's clock. */
  atMs: number;
}

/** The log of handler starts of all nodes; `read` adds the lines that were written since the last call. */
export class StartLog {
  readonly path: string;
  readonly #file: number;
  #position = 0;
  #rest = "";
  /** The starts by `task slot`, where the slot is in epoch ms. */
  readonly starts = new Map<string, NotedStart[]>();

  constructor(path: string) {
    this.path = path;
    this.#file = openSync(path, "a+");
  }

  read(): void {
    const buffer = Buffer.alloc(1 << 20);
    for (let size = 1; size > 0; ) {
      size = readSync(this.#file, buffer, 0, buffer.length, this.#position);
      this.#position += size;
      const lines = (this.#rest + buffer.toString("latin1", 0, size)).split("\n");
      this.#rest = lines.pop() ?? "";
      for (const line of lines) {
        const [task, slot, attempt, atMs] = line.split(" ");
        const key = `${task} ${slot}`;
        const start = { attempt: Number(attempt), atMs: Number(atMs) };
        const known = this.starts.get(key);
        if (known) known.push(start);
        else this.starts.set(key, [start]);
      }
    }
  }

  /** Drops the starts of slots before `beforeMs`, to free memory. */
  forget(beforeMs: number): void {
    for (const key of this.starts.keys()) if (Number(key.split(" ")[1]) < beforeMs) this.starts.delete(key);
  }

  close(): void {
    closeSync(this.#file);
  }
}
