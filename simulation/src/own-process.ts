import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** Runs this harness again in a child process, which can be killed. */
export class OwnProcess {
  readonly #child: ChildProcess;
  /** Resolves with the first line that the process writes; rejects if it ends before. */
  readonly ready: Promise<string>;

  /** @param name for the error @param flag the option that begins its work, given these options as JSON */
  constructor(name: string, flag: string, options: object) {
    const child = spawn(process.execPath, [process.argv[1] as string, flag, JSON.stringify(options)], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#child = child;
    const lines = createInterface({ input: child.stdout as NonNullable<typeof child.stdout> });
    const ended = once(child, "exit").then(() => {
      throw new Error(`${name} ended before it was ready`);
    });
    ended.catch(() => undefined); // after `ready`, the end is expected
    this.ready = Promise.race([once(lines, "line").then(([line]) => line as string), ended]);
  }

  /** Kills the process (kill -9). Resolves once it has ended, also if it had ended before. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  }
}
