import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** Runs this harness again in a child process, which can be killed. */
export class OwnProcess {
  readonly #child: ChildProcess;
  /** Resolves with the first line that the process writes; rejects if the process ends before. */
  readonly ready: Promise<string>;

  /**
   * @param name the name of the process in error messages
   * @param flag the command-line option that starts the work; `options` follow it as JSON
   */
  constructor(name: string, flag: string, options: object) {
    const child = spawn(process.execPath, [process.argv[1] as string, flag, JSON.stringify(options)], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#child = child;
    const lines = createInterface({ input: child.stdout as NonNullable<typeof child.stdout> });
    const ended = once(child, "exit").then(() => {
      throw new Error(`${name} ended before it was ready`);
    });
    ended.catch(() => undefined); // once the process is ready, its end is expected
    this.ready = Promise.race([once(lines, "line").then(([line]) => line as string), ended]);
  }

  /** Kills the process with SIGKILL. Resolves once it has ended, even if it had ended before. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  }
}
