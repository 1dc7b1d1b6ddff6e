import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

/** The orders for a candidate at its start. */
export interface Candidacy {
  url: string;
  path: string;
  id: string;
  sessionTimeoutMs: number;
}

/** One event that a candidate reported, and its time. */
export interface Told {
  what: string;
  /** The time on the monotonic clock that all processes of the machine share; Java's System.nanoTime reads the same on Linux. */
  atNs: bigint;
  more: string;
}

const patienceMs = 120_000;

/** The current time in ns, on the clock of the candidates' events. */
export const now = (): bigint => process.hrtime.bigint();

export const msBetween = (from: bigint, to: bigint): number => Number(to - from) / 1e6;

/**
 * A process that stands for election. It receives `join`, `leave`, `watch` and `belief`, and prints lines `WHAT NANOSECONDS [MORE]`: ready,
 * joined, leads, leaving, left, belief.
 */
export class Candidate {
  readonly id: string;
  readonly told: Told[] = [];
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #exit: Promise<void>;
  #tell: () => void = () => undefined;
  #gone = false;

  constructor(id: string, command: string[]) {
    this.id = id;
    const [program = "", ...words] = command;
    this.#child = spawn(program, words, { stdio: ["pipe", "pipe", "inherit"] });
    this.#child.stdin.on("error", () => undefined); // The process has ended, and its exit code says why.
    this.#exit = new Promise((resolve) => this.#child.once("close", () => resolve()));
    void this.#exit.then(() => {
      this.#gone = true;
      this.#tell();
    });
    createInterface({ input: this.#child.stdout }).on("line", (line) => {
      const [what = "", atNs = "0", more = ""] = line.split(" ");
      this.told.push({ what, atNs: BigInt(atNs), more });
      this.#tell();
    });
  }

  ask(word: "join" | "leave" | "watch" | "belief"): void {
    this.#child.stdin.write(`${word}\n`);
  }

  /** The first event of this kind after its first `since` events. */
  async says(what: string, since: number): Promise<Told> {
    const deadline = performance.now() + patienceMs;
    for (;;) {
      const found = this.told.slice(since).find((one) => one.what === what);
      if (found) return found;
      if (this.#gone) throw new Error(`candidate ${this.id} ended before it said ${what}`);
      if (performance.now() > deadline) throw new Error(`candidate ${this.id} did not say ${what} in ${patienceMs} ms`);
      await new Promise<void>((resolve) => {
        const late = setTimeout(resolve, 1_000);
        this.#tell = () => {
          clearTimeout(late);
          resolve();
        };
      });
    }
  }

  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    this.#child.kill(signal);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exit;
  }
}
