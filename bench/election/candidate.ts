import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

/** The configuration of a candidate's process. */
export interface Candidacy {
  url: string;
  path: string;
  id: string;
  sessionTimeoutMs: number;
}

/** One event that a candidate printed, with its time. */
export interface Told {
  what: string;
  /** Time of the event in ns, on the monotonic clock that all processes of the machine share (on Linux, Java's System.nanoTime too). */
  atNs: bigint;
  more: string;
}

const patienceMs = 120_000;

/** The current time in ns, on the same clock as the times of the candidates' events. */
export const now = (): bigint => process.hrtime.bigint();

export const msBetween = (from: bigint, to: bigint): number => Number(to - from) / 1e6;

/**
 * A process that stands for election. It reads the commands `join`, `leave`, `watch` and `belief`, and prints lines of the form
 * `WHAT NANOSECONDS [MORE]`, where WHAT is ready, joined, leads, leaving, left or belief.
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
    this.#child.stdin.on("error", () => undefined); // A write fails only when the process has ended; its exit code gives the reason.
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

  /**
   * Waits for an event of the kind `what`, ignoring the first `since` events, and returns it.
   * @throws after the time limit, or if the candidate's process ends first
   */
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
