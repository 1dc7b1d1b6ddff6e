import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface, type Interface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { mortal } from "../../src/testing/afterlife.ts";

export interface HolderOptions {
  readonly hosts: string;
  readonly recipe: "mutex" | "read" | "write" | "semaphore";
  readonly path: string;
  readonly sessionTimeoutMs: number;
}

/** Holds a lock in a child process until the process is killed. */
export class LockHolder {
  readonly #child: ChildProcessByStdio<null, Readable, null>;
  readonly #lines: Interface;
  readonly #gone: Promise<void>;
  fence = 0n;

  private constructor(options: HolderOptions) {
    const program = fileURLToPath(new URL("programs/lock-holder.mjs", import.meta.url));
    const env = { ...process.env, CARILLON_TEST_LOCK: JSON.stringify(options) };
    this.#child = mortal(spawn(process.execPath, [program], { env, stdio: ["ignore", "pipe", "inherit"] }));
    this.#lines = createInterface(this.#child.stdout);
    this.#gone = new Promise((resolve) => this.#child.once("exit", () => resolve()));
  }

  /** Starts the process; resolves when it holds the lock. */
  static async start(options: HolderOptions): Promise<LockHolder> {
    const holder = new LockHolder(options);
    holder.fence = BigInt(await holder.says("held"));
    return holder;
  }

  /** Waits for the next line that begins with `word`. @returns the rest of the line @throws if the process ends first */
  async says(word: string): Promise<string> {
    const said = new Promise<string>((resolve) => {
      const hear = (line: string) => {
        if (!line.startsWith(`${word} `)) return;
        this.#lines.off("line", hear);
        resolve(line.slice(word.length + 1));
      };
      this.#lines.on("line", hear);
    });
    return Promise.race([
      said,
      this.#gone.then(() => {
        throw new Error(`the lock's holder ended before it said ${word}`);
      }),
    ]);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Kills the process by SIGKILL. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#gone;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill();
  }
}
