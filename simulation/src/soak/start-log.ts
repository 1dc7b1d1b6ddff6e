import { closeSync, openSync, readSync } from "node:fs";
import type { Execution } from "../history.ts";
import type { Noted } from "./order.ts";

/** Reads the log of all processes' handlers as the file grows, and turns it into executions. */
export class StartLog {
  readonly path: string;
  readonly #file: number;
  #position = 0;
  #rest = "";
  #lateness: number[] = [];
  readonly executions: Execution[] = [];
  readonly #byFence = new Map<number, Execution>();

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
      for (const line of lines) this.#take(JSON.parse(line) as Noted);
    }
  }

  takeLateness(): number[] {
    this.read();
    const taken = this.#lateness;
    this.#lateness = [];
    return taken;
  }

  close(): void {
    closeSync(this.#file);
  }

  #take(noted: Noted): void {
    if (noted.n === "end") {
      const execution = this.#byFence.get(noted.fence);
      if (!execution) return;
      execution.endMs = noted.at;
      execution.how = noted.how;
      execution.stoppedWhy = noted.why;
      return;
    }
    const { node, pid, run, task, attempt, fence, slot, due, at } = noted;
    const execution: Execution = {
      node,
      life: pid,
      run,
      task,
      attempt,
      fence,
      slotMs: slot,
      dueMs: due,
      // Store, processes and harness run on one machine and share its clock. The processes do not record their estimate of the store's
      // time, so `believedMs` has no limit.
      startMs: at,
      startStoreMs: at,
      believedMs: Number.POSITIVE_INFINITY,
      endMs: null,
      how: null,
      stoppedWhy: null,
      deaf: false,
    };
    this.executions.push(execution);
    this.#byFence.set(fence, execution);
    if (attempt === 1) this.#lateness.push(at - due);
  }
}
