import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export interface ContenderOptions {
  readonly hosts: string;
  readonly recipe: "latch" | "selector";
  readonly path: string;
  readonly id: string;
  readonly sessionTimeoutMs: number;
}

/** A contender in a child process, so that it can be killed or stopped. */
export class Contender {
  readonly lines: string[] = [];
  readonly #child: ChildProcess;
  readonly #gone: Promise<unknown>;
  #complaints = "";
  #tell: () => void = () => undefined;

  private constructor(options: ContenderOptions) {
    this.#child = spawn(process.execPath, [fileURLToPath(new URL("programs/contender.mjs", import.meta.url))], {
      env: { ...process.env, CARILLON_TEST_CONTENDER: JSON.stringify(options) },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#gone = once(this.#child, "exit").then(() => this.#tell());
    this.#child.stderr?.on("data", (text) => {
      this.#complaints += text;
    });
    if (!this.#child.stdout) throw new Error("its output is not piped");
    createInterface({ input: this.#child.stdout }).on("line", (line) => {
      this.lines.push(line);
      this.#tell();
    });
  }

  /**
   * Starts the process; resolves when a latch is in the queue, or when a selector has begun to enter it.
   * @throws if the process ends first
   */
  static async start(options: ContenderOptions): Promise<Contender> {
    const contender = new Contender(options);
    await contender.said("ready");
    return contender;
  }

  /** Waits for a line of output that begins with `start`. @returns the first such line @throws if the process ends first */
  async said(start: string): Promise<string> {
    for (;;) {
      const line = this.lines.find((one) => one.startsWith(start));
      if (line !== undefined) return line;
      if (this.#child.exitCode !== null || this.#child.signalCode !== null) {
        throw new Error(`it ended before it said ${start}: ${this.#complaints}`);
      }
      await new Promise<void>((resolve) => {
        this.#tell = resolve;
      });
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#gone;
  }
}
